"""Fencing of brokers whose session ended, or whose process is gone.

``ReplicationControlManager.maybeFenceOneStaleBroker`` in Kafka, which knows of sessions alone.
"""

from pykafka_core.handlers.cluster.broker_records import fence
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose, Slices
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import BrokerHeartbeatResponse


def fence_one(context: Context) -> Slices[Propose]:
    """Fence the broker not heard of for longest, if its session has ended at ``context.now_ns``.

    One at a time, so that what follows for its partitions is known before the next one is judged. While there are more,
    or one batch is not enough for the partitions of this one, `BrokerSessions.deadline_ns` stays in the past.

    Raises:
        NotControllerError: This node is not the active controller.
    """
    active = context.controller()
    broker = active.sessions.stale(context.image.brokers.values(), context.now_ns)
    if broker is None:
        return Propose((), lambda code: BrokerHeartbeatResponse(error_code=code, is_fenced=False))
    return (yield from _fenced(context, broker))


def fence_gone(broker_id: int, broker_epoch: int, context: Context) -> Slices[Propose]:
    """Fence a broker whose process is gone, and end its session; nothing if another process has registered.

    The answer is not fenced where one batch is not enough for its partitions: it has to be asked for again.

    Raises:
        NotControllerError: This node is not the active controller.
    """
    active = context.controller()
    broker = context.image.brokers.get(broker_id)
    if broker is not None and broker.epoch == broker_epoch and not broker.fenced:
        return (yield from _fenced(context, broker))
    active.sessions = active.sessions.ended(broker_id, broker_epoch)
    return Propose((), lambda code: BrokerHeartbeatResponse(error_code=code, is_fenced=True))


def _fenced(context: Context, broker: Broker) -> Slices[Propose]:
    active = context.controller()
    gathered = yield from fence(context, broker)

    def reply(code: int) -> BrokerHeartbeatResponse:
        if not code and gathered.is_complete:
            active.sessions = active.sessions.ended(broker.node_id, broker.epoch)
        return BrokerHeartbeatResponse(error_code=code, is_fenced=gathered.is_complete)

    return Propose(gathered.records, reply)
