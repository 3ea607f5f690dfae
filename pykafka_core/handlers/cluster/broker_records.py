"""Common parts of the requests of brokers: the registration, and the records of its changes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import InvalidRequestError, StaleBrokerEpochError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import RECORDS_MAX, Work
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
"""The value that clears a flag of a BrokerRegistrationChangeRecord."""


class Gathered(NamedTuple):
    """The records of one batch.

    Unless ``is_complete``, the same decision gives more records after the commit.
    """

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
    """Return the listeners of a registration in the type of its record."""
    return [
        of(name=at.name, host=at.host, port=at.port, security_protocol=at.security_protocol)
        for at in listeners
    ]


def features_as(of: Callable[..., T], features: Iterable[Any]) -> list[T]:
    """Return the features of a registration in the type of its record."""
    return [
        of(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=feature.max_supported_version,
        )
        for feature in features
    ]


def registered_broker(context: Context, broker_id: int, broker_epoch: int) -> Broker:
    """Return the registration of the process that sent the request.

    Raises:
        StaleBrokerEpochError: Another process is registered, or none.
    """
    broker = context.image.brokers.get(broker_id)
    if broker is None:
        raise StaleBrokerEpochError(f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpochError(
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        )
    return broker


def gather(changes: Iterable[PartitionChangeRecord | None]) -> Work[Gathered]:
    """Return the first `RECORDS_MAX` records of ``changes``.

    A broker may have more partitions than a batch can hold.
    """
    records: list[Message] = []
    for record in changes:
        yield
        if record is None:
            continue
        if len(records) == RECORDS_MAX:
            return Gathered(records, is_complete=False)
        records.append(record)
    return Gathered(records, is_complete=True)


def fence(context: Context, broker: Broker) -> Work[Gathered]:
    """Return the records that move partitions away from a broker.

    If they are complete, they also fence the broker.
    """
    changes = yield from gather(fenced(context.image, context.settings, broker))
    if not changes.is_complete:
        return changes
    return Gathered([*changes.records, registration_change(broker, fenced=SET)], is_complete=True)


def cordoned_directories(
    image: MetadataImage, settings: BrokerConfigs, directory_id: bytes
) -> tuple[bytes, ...] | None:
    """Return this broker's cordoned directories, which take no new replicas (KIP-1066).

    None below the level of the feature.
    """
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
    """Return the record that changes a registration.

    Empty ``log_dirs`` and a ``cordoned`` of None change nothing.
    """
    return BrokerRegistrationChangeRecord(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=list(log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )
