"""The metadata image: the state after all committed records, as one value."""

from collections.abc import Mapping, MutableMapping
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
    """One partition as committed. ``leader`` is `NO_LEADER` if it has no leader."""

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
    """A topic; ``partitions`` by index. Only the draft that created this object may change it."""

    name: str
    topic_id: bytes
    partitions: MutableMapping[int, Partition]


class Endpoint(NamedTuple):
    """Address of a broker's or controller's listener. ``security_protocol`` is 0 for PLAINTEXT."""

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
    cordoned: tuple[bytes, ...] | None = None
    """Directories that accept no new replicas (KIP-1066); None until the broker reports them."""

    @property
    def is_cordoned(self) -> bool:
        """Whether it accepts no new replicas, because each of its directories is cordoned."""
        return bool(self.cordoned) and set(self.directories) <= set(self.cordoned or ())

    @property
    def is_active(self) -> bool:
        """Whether it may lead and be in an ISR: unfenced, and not shutting down (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown


class Controller(NamedTuple):
    """A controller's registration."""

    node_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]


class QuotaKey(NamedTuple):
    """A quota's entity and limit; entity: sorted ``((type, name or None for the default), …)``."""

    entity: tuple[tuple[str, str | None], ...]
    limit: str


class Topics(NamedTuple):
    """The topics, by id and by name."""

    by_id: MutableMapping[bytes, Topic]
    by_name: MutableMapping[str, Topic]


class Configs(NamedTuple):
    """Settings from ConfigRecords, by resource. A resource without settings has no entry."""

    by_resource: MutableMapping[ConfigResource, MutableMapping[str, str]]

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """Return the settings of one resource, empty if it has none; read-only."""
        return self.by_resource.get(ConfigResource(kind, name), _NOTHING)

    def names(self, kind: int) -> list[str]:
        """Return the resources of a kind that have settings, sorted."""
        return sorted(resource.name for resource in self.by_resource if resource.kind == kind)


class MetadataImage:
    """The state of the metadata log up to and including ``offset``. Read-only: see `draft.Draft`.

    Attributes:
        features_epoch: Offset of the last change of ``features``; ApiVersions returns it as their
            epoch.
        scram_credentials: By user and mechanism.
    """

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "features_epoch",
        "next_producer_id",
        "offset",
        "scram_credentials",
        "topics",
        "zk_migration_state",
    )

    def __init__(
        self,
        *,
        topics: Topics | None = None,
        configs: Configs | None = None,
        brokers: dict[int, Broker] | None = None,
    ) -> None:
        self.offset = -1
        self.topics = topics or Topics({}, {})
        self.configs = configs or Configs({})
        self.brokers = brokers or {}
        self.controllers: dict[int, Controller] = {}
        self.features: dict[str, int] = {}
        self.features_epoch = -1
        self.next_producer_id = 0
        self.client_quotas: dict[QuotaKey, float] = {}
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self.zk_migration_state = 0

    def __eq__(self, other: object) -> bool:
        """Compare by value, including offsets."""
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # drafts change theirs

    def partition(self, topic: str, index: int) -> Partition | None:
        """Return a partition by topic name and index, or None."""
        found = self.topics.by_name.get(topic)
        return found.partitions.get(index) if found else None
