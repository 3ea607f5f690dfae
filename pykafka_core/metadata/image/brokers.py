"""Registration records of brokers and controllers: their effects on an image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import Broker, Controller, Endpoint

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import (
        BrokerRegistrationChangeRecord,
        FenceBrokerRecord,
        RegisterBrokerRecord,
        RegisterControllerRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
        UnregisterControllerRecord,
    )


def apply_register_broker(draft: Draft, record: "RegisterBrokerRecord") -> None:
    """Register a broker's process; an earlier registration is replaced."""
    _brokers(draft)[record.broker_id] = Broker(
        node_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(record.log_dirs),
        features=_features(record.features),
        cordoned=_directories(record.cordoned_log_dirs),
    )


def apply_unregister_broker(draft: Draft, record: "UnregisterBrokerRecord") -> None:
    """Remove a broker from the cluster."""
    _registered(draft, record.broker_id, record.broker_epoch, "UnregisterBrokerRecord")
    del draft.image.brokers[record.broker_id]


def apply_fence_broker(draft: Draft, record: "FenceBrokerRecord") -> None:
    """Set the flag ``fenced`` of a registration, which must have the record's epoch."""
    broker = _registered(draft, record.id, record.epoch, "FenceBrokerRecord")
    draft.image.brokers[record.id] = broker._replace(fenced=True)


def apply_unfence_broker(draft: Draft, record: "UnfenceBrokerRecord") -> None:
    """Clear the flag ``fenced`` of a registration, which must have the record's epoch."""
    broker = _registered(draft, record.id, record.epoch, "UnfenceBrokerRecord")
    draft.image.brokers[record.id] = broker._replace(fenced=False)


def apply_broker_registration_change(
    draft: Draft, record: "BrokerRegistrationChangeRecord"
) -> None:
    """Change the fields that are set; in flags 1 sets, -1 clears, 0 leaves unchanged."""
    what = "BrokerRegistrationChangeRecord"
    broker = _registered(draft, record.broker_id, record.broker_epoch, what)
    if record.fenced:
        broker = broker._replace(fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = broker._replace(in_controlled_shutdown=record.in_controlled_shutdown > 0)
    if record.log_dirs:
        broker = broker._replace(directories=tuple(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = broker._replace(cordoned=tuple(record.cordoned_log_dirs))
    draft.image.brokers[record.broker_id] = broker


def apply_register_controller(draft: Draft, record: "RegisterControllerRecord") -> None:
    """Register a controller's process."""
    image = draft.image
    image.controllers = table = draft.own("controllers", image.controllers)
    table[record.controller_id] = Controller(
        node_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )


def apply_unregister_controller(draft: Draft, record: "UnregisterControllerRecord") -> None:
    """Remove a controller from the cluster."""
    image = draft.image
    if record.controller_id not in image.controllers:
        raise MetadataError(
            f"UnregisterControllerRecord names controller {record.controller_id}, which is not registered"
        )
    image.controllers = table = draft.own("controllers", image.controllers)
    del table[record.controller_id]


def _brokers(draft: Draft) -> dict[int, Broker]:
    draft.image.brokers = draft.own("brokers", draft.image.brokers)
    draft.changes.brokers = True
    return draft.image.brokers


def _registered(draft: Draft, node_id: int, epoch: int, what: str) -> Broker:
    broker = _brokers(draft).get(node_id)
    if broker is None or broker.epoch != epoch:
        raise MetadataError(
            f"{what} names broker {node_id} of epoch {epoch}, which is not registered"
        )
    return broker


def _endpoints(
    endpoints: "Sequence[RegisterBrokerRecord.BrokerEndpoint | RegisterControllerRecord.ControllerEndpoint]",
) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in endpoints)


def _directories(directories: Sequence[bytes] | None) -> tuple[bytes, ...] | None:
    return None if directories is None else tuple(directories)


def _features(
    features: "Sequence[RegisterBrokerRecord.BrokerFeature | RegisterControllerRecord.ControllerFeature]",
) -> dict[str, tuple[int, int]]:
    return {f.name: (f.min_supported_version, f.max_supported_version) for f in features}
