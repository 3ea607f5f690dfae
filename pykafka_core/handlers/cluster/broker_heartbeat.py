"""BrokerHeartbeat (63): KIP-631, KIP-841, KIP-858.

``ReplicationControlManager.processBrokerHeartbeat`` in Kafka.
"""

from functools import partial
from typing import NamedTuple

from pykafka_core.errors import KafkaError, RequestTimedOutError
from pykafka_core.handlers.cluster.broker_records import (
    CLEAR,
    SET,
    Gathered,
    gather,
    registered_broker,
    registration_change,
)
from pykafka_core.handlers.context import ActiveController, Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work
from pykafka_core.metadata.broker_changes import (
    directories_lost,
    fenced,
    leads_any,
    shutting_down,
    unfenced,
)
from pykafka_core.metadata.broker_sessions import BrokerState, Wish, next_state, state_of
from pykafka_core.metadata.image.features import CORDONED_DIRECTORIES_LEVEL, METADATA_VERSION
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    Message,
)


class _Beat(NamedTuple):
    """One heartbeat: its broker, and the broker's state before and after it."""

    broker: Broker
    before: BrokerState
    after: BrokerState
    lost: frozenset[bytes]
    """The registered directories that are offline."""
    cordoned: tuple[bytes, ...] | None
    """The directories that take no new replicas from now on; None if they have not changed."""

    @property
    def changes_directories(self) -> bool:
        """Return whether it reports another state of the broker's directories."""
        return bool(self.lost) or self.cordoned is not None

    @property
    def directories(self) -> tuple[bytes, ...]:
        """Return the broker's directories that are still online."""
        return tuple(found for found in self.broker.directories if found not in self.lost)


def handle(context: Context, request: BrokerHeartbeatRequest) -> Work[Outcome]:
    """Renew the session, and change the state of the broker if the request allows it.

    The response is sent when the change is committed. REQUEST_TIMED_OUT requests another heartbeat:
    one batch is too small for all partitions of the broker.
    """
    try:
        active = context.controller()
        broker = registered_broker(context, request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return BrokerHeartbeatResponse(error_code=error.code)
    offset = request.current_metadata_offset
    active.sessions = active.sessions.touched(
        broker.node_id, broker.epoch, context.arrived_ns, offset
    )
    wish = yield from _wish(context, active, broker, request)
    before = state_of(broker)
    lost = frozenset(request.offline_log_dirs) & frozenset(broker.directories)
    beat = _Beat(
        broker, before, next_state(before, wish), lost, _newly_cordoned(context, broker, request)
    )
    gathered = yield from _records(context, beat)
    if beat.after is BrokerState.CONTROLLED_SHUTDOWN and not gathered.records:
        _wait_for(active, broker, context.next_offset - 1)

    def reply(code: int) -> BrokerHeartbeatResponse:
        if code or not gathered.is_complete:
            return BrokerHeartbeatResponse(error_code=code or RequestTimedOutError.code)
        if beat.after is BrokerState.SHUTDOWN_NOW:
            active.sessions = active.sessions.ended(broker.node_id, broker.epoch)
        elif beat.after is BrokerState.CONTROLLED_SHUTDOWN and gathered.records:
            last_offset = context.next_offset + len(gathered.records) - 1
            active.sessions = active.sessions.shutting_down(
                broker.node_id, broker.epoch, last_offset
            )
        return BrokerHeartbeatResponse(
            is_caught_up=wish.is_caught_up,
            is_fenced=beat.after.is_fenced,
            should_shut_down=beat.after is BrokerState.SHUTDOWN_NOW,
        )

    return MetadataWrite(gathered.records, reply)


def _wish(
    context: Context, active: ActiveController, broker: Broker, request: BrokerHeartbeatRequest
) -> Work[Wish]:
    is_caught_up = request.current_metadata_offset >= broker.epoch
    wish = Wish(request.want_fence, request.want_shut_down, is_caught_up)
    if not request.want_shut_down and not broker.in_controlled_shutdown:
        return wish
    leads = yield from leads_any(context.image, broker.node_id)
    offset = active.sessions.shutdown_offset(broker)
    others = context.image.brokers.values()
    others_know = offset is not None and active.sessions.has_applied(others, offset)
    return wish._replace(leads_any=leads, others_know=others_know)


def _newly_cordoned(
    context: Context, broker: Broker, request: BrokerHeartbeatRequest
) -> tuple[bytes, ...] | None:
    level = context.image.features.get(METADATA_VERSION, 0)
    if request.cordoned_log_dirs is None or level < CORDONED_DIRECTORIES_LEVEL:
        return None
    cordoned = tuple(request.cordoned_log_dirs)
    return None if cordoned == broker.cordoned else cordoned


def _records(context: Context, beat: _Beat) -> Work[Gathered]:
    """Return the records of the heartbeat: the registration, and each partition at most once."""
    image, settings, broker = context.image, context.settings, beat.broker
    rest = beat.directories if beat.lost else ()
    changed = partial(registration_change, broker, log_dirs=rest, cordoned=beat.cordoned)
    if beat.after.is_fenced and not broker.fenced:
        changes = yield from gather(fenced(image, settings, broker))
        return _then(changes, changed(fenced=SET))
    if beat.after is BrokerState.UNFENCED and broker.fenced:
        back = broker._replace(directories=beat.directories)
        changes = yield from gather(unfenced(image, settings, back))
        # A partition that does not fit into the batch is elected later, with other partitions
        # without a leader.
        return Gathered([changed(fenced=CLEAR), *changes.records], is_complete=True)
    if beat.after is BrokerState.CONTROLLED_SHUTDOWN:
        changes = yield from gather(shutting_down(image, settings, broker))
        if broker.in_controlled_shutdown and not beat.changes_directories:
            return Gathered(changes.records, is_complete=True)
        change = changed(in_controlled_shutdown=SET)
        return Gathered([change, *changes.records], is_complete=True)
    if beat.changes_directories:
        changes = yield from gather(directories_lost(image, settings, broker, beat.lost))
        return _then(changes, changed())
    return Gathered((), is_complete=True)


def _then(changes: Gathered, change: Message) -> Gathered:
    """Change the registration last, so that the remaining partitions are found again."""
    if not changes.is_complete:
        return changes
    return Gathered([*changes.records, change], is_complete=True)


def _wait_for(active: ActiveController, broker: Broker, offset: int) -> None:
    """Record an offset from which the broker leads nothing.

    A new active controller lacks this offset; ``offset`` is the latest possible one.
    """
    if active.sessions.shutdown_offset(broker) is None:
        active.sessions = active.sessions.shutting_down(broker.node_id, broker.epoch, offset)
