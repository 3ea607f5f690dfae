"""BrokerRegistration (62): KIP-631, KIP-858, KIP-966.

``ClusterControlManager.registerBroker`` in Kafka.
"""

from pykafka_core.errors import (
    BrokerIdNotRegisteredError,
    DuplicateBrokerRegistrationError,
    InconsistentClusterIdError,
    InvalidRegistrationError,
    KafkaError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from pykafka_core.handlers.cluster.broker_records import (
    Gathered,
    check_listener_count,
    endpoints_as,
    features_as,
    gather,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work
from pykafka_core.metadata.broker_changes import restarted
from pykafka_core.metadata.directories import is_reserved
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    RegisterBrokerRecord,
)

VERSION_WITH_PREVIOUS_EPOCH = 3
"""From this version on a broker sends the epoch of its last clean stop; the stop of an older broker
counts as clean.
"""

FIRST_METADATA_VERSION = 1
"""The ``metadata.version`` of a broker that does not send one: 3.0-IV1."""


def handle(context: Context, request: BrokerRegistrationRequest) -> Work[Outcome]:
    """Register a process of a broker as fenced, and remove its id from every ISR.

    The same process keeps its epoch and state (KAFKA-16952). REQUEST_TIMED_OUT requests another
    request: one batch is too small to take all partitions from the previous process.
    """
    try:
        active = context.controller()
        existing = context.image.brokers.get(request.broker_id)
        _check(context, request, existing)
    except KafkaError as error:
        return BrokerRegistrationResponse(error_code=error.code, broker_epoch=-1)
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        epoch = existing.epoch
        gathered = Gathered([_record(request, epoch, existing)], is_complete=True)
    else:
        is_clean = _stopped_cleanly(context, request, existing)
        gathered = yield from gather(
            restarted(context.image, context.settings, request.broker_id, clean=is_clean)
        )
        epoch = context.next_offset + len(gathered.records)
        if gathered.is_complete:
            record = _record(request, epoch, None)
            gathered = Gathered([*gathered.records, record], is_complete=True)

    def reply(code: int) -> BrokerRegistrationResponse:
        if code or not gathered.is_complete:
            code = code or RequestTimedOutError.code
            return BrokerRegistrationResponse(error_code=code, broker_epoch=-1)
        active.sessions = active.sessions.registered(request.broker_id, epoch, context.arrived_ns)
        return BrokerRegistrationResponse(broker_epoch=epoch)

    return MetadataWrite(gathered.records, reply)


def _check(context: Context, request: BrokerRegistrationRequest, existing: Broker | None) -> None:
    """Refuse a process that must not have the id, or that does not support the cluster's features.

    Raises:
        KafkaError: The process is refused; the text states the reason.
    """
    if request.cluster_id != context.node.cluster_id:
        raise InconsistentClusterIdError(
            f"Expected cluster ID {context.node.cluster_id}, but got cluster ID {request.cluster_id}"
        )
    if request.broker_id < 0:
        raise InvalidRegistrationError(f"{request.broker_id} is not a broker id")
    _check_listeners(request)
    if _is_alive_elsewhere(context, request, existing):
        raise DuplicateBrokerRegistrationError("Another broker is registered with that broker id.")
    if request.is_migrating_zk_broker:
        raise BrokerIdNotRegisteredError("Controller does not support registering ZK brokers.")
    _check_directories(context, request)
    _check_features(context, request)


def _check_listeners(request: BrokerRegistrationRequest) -> None:
    """Check that the listeners, which clients receive, are addresses."""
    check_listener_count(request.listeners)
    names = [listener.name for listener in request.listeners]
    if not names or len(set(names)) < len(names):
        raise InvalidRegistrationError("A broker has listeners, each of another name")
    for listener in request.listeners:
        if not listener.host or not listener.host.isprintable() or not listener.port:
            raise InvalidRegistrationError(f"Listener {listener.name!r} is at no address")


def _is_alive_elsewhere(
    context: Context, request: BrokerRegistrationRequest, existing: Broker | None
) -> bool:
    """Return whether another process, which is registered with the id, may still run.

    A new active controller has had no heartbeat yet, and restarts all sessions
    (contract/replication.md#39). A broker without a heartbeat soon after that is replaced by a
    process with exactly its directories: only one process at a time can lock them, so it is the
    next one.
    """
    if existing is None or existing.incarnation_id == request.incarnation_id:
        return False
    sessions = context.controller().sessions
    is_same_place = set(request.log_dirs) == set(existing.directories)
    heartbeat_ns = context.settings.int("broker.heartbeat.interval.ms") * 1_000_000
    if is_same_place and sessions.is_hearsay(existing, context.arrived_ns, heartbeat_ns):
        return False
    return not sessions.may_be_succeeded(existing, context.arrived_ns)


def _check_directories(context: Context, request: BrokerRegistrationRequest) -> None:
    directories = set(request.log_dirs)
    if not directories:
        raise InvalidRegistrationError("No directories specified in request")
    if any(is_reserved(directory) for directory in directories):
        raise InvalidRegistrationError("Reserved directory ID in request")
    if len(directories) != len(request.log_dirs):
        raise InvalidRegistrationError("Duplicate directory ID in request")
    for broker in context.image.brokers.values():
        if broker.node_id != request.broker_id and directories.intersection(broker.directories):
            raise InvalidRegistrationError(
                f"Broker {broker.node_id} is already registered with a directory of the request"
            )


def _check_features(context: Context, request: BrokerRegistrationRequest) -> None:
    """Check that the broker supports each finalized level.

    A feature that it does not name is supported at 0.
    """
    supported = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    supported.setdefault(METADATA_VERSION, (FIRST_METADATA_VERSION, FIRST_METADATA_VERSION))
    finalized = context.image.features
    for name in supported.keys() | finalized.keys():
        low, high = supported.get(name, (0, 0))
        level = finalized.get(name, FIRST_METADATA_VERSION if name == METADATA_VERSION else 0)
        if not low <= level <= high:
            raise UnsupportedVersionError(
                "Unable to register because the broker does not support finalized version "
                f"{level} of {name}. The broker wants a version between {low} and {high}, inclusive."
            )


def _stopped_cleanly(
    context: Context, request: BrokerRegistrationRequest, existing: Broker | None
) -> bool:
    """Return whether the broker's logs certainly contain all that it acknowledged."""
    if context.caller.api_version < VERSION_WITH_PREVIOUS_EPOCH:
        return True
    return existing is not None and existing.epoch == request.previous_broker_epoch


def _record(
    request: BrokerRegistrationRequest, epoch: int, existing: Broker | None
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=endpoints_as(RegisterBrokerRecord.BrokerEndpoint, request.listeners),
        features=features_as(RegisterBrokerRecord.BrokerFeature, request.features),
        rack=request.rack,
        fenced=existing is None or existing.fenced,
        in_controlled_shutdown=existing is not None and existing.in_controlled_shutdown,
        log_dirs=list(request.log_dirs),
        cordoned_log_dirs=_cordoned(existing),
    )


def _cordoned(existing: Broker | None) -> list[bytes] | None:
    """Return the cordoned directories; a new process reports its own in its heartbeats."""
    if existing is None or existing.cordoned is None:
        return None
    return list(existing.cordoned)
