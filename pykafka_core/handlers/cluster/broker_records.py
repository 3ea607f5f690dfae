"""What requests of brokers have in common: who asks, and the records that follow when a broker comes or goes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import InvalidRequestError, StaleBrokerEpochError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import RECORDS_MAX, Slices
from pykafka_core.metadata.broker_changes import fenced
from pykafka_core.metadata.image.features import CORDONED_DIRECTORIES_LEVEL, METADATA_VERSION
from pykafka_core.metadata.image.image import Broker, MetadataImage
from pykafka_core.protocol.messages import (
    BrokerRegistrationChangeRecord,
    Message,
    PartitionChangeRecord,
)
from pykafka_core.quorum.values import LISTENERS_MAX

T = TypeVar("T")

SET = 1
CLEAR = -1
"""Of the flags of a BrokerRegistrationChangeRecord."""


class Gathered(NamedTuple):
    """Records of one batch. Unless ``is_complete`` there are more, which the same decision gives after the commit."""

    records: Sequence[Message]
    is_complete: bool


def check_listener_count(listeners: Sequence[object]) -> None:
    """Refuse more listeners than a node can have.

    Raises:
        InvalidRequestError: There are more than `LISTENERS_MAX`.
    """
    if len(listeners) > LISTENERS_MAX:
        raise InvalidRequestError(f"A node has at most {LISTENERS_MAX} listeners")


def endpoints_as(of: Callable[..., T], listeners: Iterable[Any]) -> list[T]:
    """Listeners of a registration, as its record has them."""
    return [
        of(name=at.name, host=at.host, port=at.port, security_protocol=at.security_protocol)
        for at in listeners
    ]


def features_as(of: Callable[..., T], features: Iterable[Any]) -> list[T]:
    """Features of a registration, as its record has them."""
    return [
        of(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=feature.max_supported_version,
        )
        for feature in features
    ]


def registered_broker(context: Context, broker_id: int, broker_epoch: int) -> Broker:
    """The registration of the process that asks.

    Raises:
        StaleBrokerEpochError: It is not the one that is registered.
    """
    broker = context.image.brokers.get(broker_id)
    if broker is None:
        raise StaleBrokerEpochError(f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpochError(
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        )
    return broker


def gather(changes: Iterable[PartitionChangeRecord | None]) -> Slices[Gathered]:
    """The first `RECORDS_MAX` records of ``changes``: a broker may take part in more partitions than a batch holds."""
    records: list[Message] = []
    for record in changes:
        yield
        if record is None:
            continue
        if len(records) == RECORDS_MAX:
            return Gathered(records, is_complete=False)
        records.append(record)
    return Gathered(records, is_complete=True)


def fence(context: Context, broker: Broker) -> Slices[Gathered]:
    """The records that take partitions from a broker and, when those are all, fence it."""
    changes = yield from gather(fenced(context.image, context.settings, broker))
    if not changes.is_complete:
        return changes
    return Gathered([*changes.records, registration_change(broker, fenced=SET)], is_complete=True)


def cordoned_directories(
    image: MetadataImage, settings: BrokerConfigs, directory_id: bytes
) -> tuple[bytes, ...] | None:
    """This broker's directories that take no new replicas (KIP-1066); None below their level."""
    if image.features.get(METADATA_VERSION, 0) < CORDONED_DIRECTORIES_LEVEL:
        return None
    return (directory_id,) if settings.cordons_log_dir else ()


def registration_change(
    broker: Broker,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: Sequence[bytes] = (),
    cordoned: Sequence[bytes] | None = None,
) -> BrokerRegistrationChangeRecord:
    """The record that changes a registration; no ``log_dirs`` and a ``cordoned`` of None change none."""
    return BrokerRegistrationChangeRecord(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=list(log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )
