"""The metadata image: what the committed records say, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pykafka_core.types import ConfigResource

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import (
        AccessControlEntryRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
    )

NO_LEADER = -1

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Partition(NamedTuple):
    """One partition as committed. ``leader`` is `NO_LEADER` when nobody leads it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    recovering: bool = False
    """The leader was elected uncleanly and has not recovered (``leader_recovery_state``)."""
    directories: tuple[bytes, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class Topic(NamedTuple):
    """A topic; ``partitions`` by index. Changed only by the draft that made this object."""

    name: str
    topic_id: bytes
    partitions: dict[int, Partition]


class Endpoint(NamedTuple):
    """Where a broker or controller listens. ``security_protocol`` is 0 for PLAINTEXT."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class Broker(NamedTuple):
    """A broker's registration. ``epoch`` is the offset of its record."""

    node_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[bytes, ...]
    features: Mapping[str, tuple[int, int]]


class Controller(NamedTuple):
    """A controller's registration."""

    node_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]


class QuotaKey(NamedTuple):
    """Who is limited (``((entity type, name; None is the default), …)``, sorted), and in what."""

    entity: tuple[tuple[str, str | None], ...]
    limit: str


@dataclass(slots=True)
class Topics:
    """The same topics under both their names."""

    by_id: dict[bytes, Topic] = field(default_factory=dict)
    by_name: dict[str, Topic] = field(default_factory=dict)


@dataclass(slots=True)
class Configs:
    """Settings made by ConfigRecords, by resource. A resource without any has no entry."""

    by_resource: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """Settings of one resource, empty when it has none; read only."""
        return self.by_resource.get(ConfigResource(kind, name), _NOTHING)

    def names(self, kind: int) -> list[str]:
        """Resources of a kind that have settings, sorted."""
        return sorted(resource.name for resource in self.by_resource if resource.kind == kind)


@dataclass(slots=True)
class MetadataImage:
    """Everything the metadata log says up to and with ``offset``. Read only: see `draft.Draft`."""

    offset: int = -1
    topics: Topics = field(default_factory=Topics)
    configs: Configs = field(default_factory=Configs)
    brokers: dict[int, Broker] = field(default_factory=dict)
    controllers: dict[int, Controller] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    features_epoch: int = -1
    """Offset of the step that last changed ``features``; ApiVersions calls it their epoch."""
    next_producer_id: int = 0
    client_quotas: dict[QuotaKey, float] = field(default_factory=dict)
    scram_credentials: "dict[tuple[str, int], UserScramCredentialRecord]" = field(
        default_factory=dict
    )
    """By user and mechanism."""
    acls: "dict[bytes, AccessControlEntryRecord]" = field(default_factory=dict)
    delegation_tokens: "dict[str, DelegationTokenRecord]" = field(default_factory=dict)
    zk_migration_state: int = 0

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition of a topic's name, or None."""
        found = self.topics.by_name.get(topic)
        return found.partitions.get(index) if found else None
