"""Fencing of brokers whose session has ended, or whose process has ended.

``ReplicationControlManager.maybeFenceOneStaleBroker`` in Kafka, which only has sessions.
"""

from pykafka_core.handlers.cluster.broker_records import fence
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import BrokerHeartbeatResponse


def fence_one(context: Context) -> Work[MetadataWrite]:
    """Fence the broker with the oldest heartbeat, if its session has ended at ``context.now_ns``.

    One broker at a time, so that the next decision includes the changes of its partitions. While
    there are more brokers, or one batch is too small for its partitions,
    `BrokerSessions.deadline_ns` remains in the past.

    Raises:
        NotControllerError: This node is not the active controller.
    """
    active = context.controller()
    broker = active.sessions.stale(context.image.brokers.values(), context.now_ns)
    if broker is None:
        return MetadataWrite(
            (), lambda code: BrokerHeartbeatResponse(error_code=code, is_fenced=False)
        )
    return (yield from _fenced(context, broker))


def fence_gone(broker_id: int, broker_epoch: int, context: Context) -> Work[MetadataWrite]:
    """Fence a broker whose process has ended, and end its session.

    It does nothing if another process has registered. If one batch is too small for the broker's
    partitions, the response is not fenced, and the caller has to repeat the request.

    Raises:
        NotControllerError: This node is not the active controller.
    """
    active = context.controller()
    broker = context.image.brokers.get(broker_id)
    if broker is not None and broker.epoch == broker_epoch and not broker.fenced:
        return (yield from _fenced(context, broker))
    active.sessions = active.sessions.ended(broker_id, broker_epoch)
    return MetadataWrite((), lambda code: BrokerHeartbeatResponse(error_code=code, is_fenced=True))


def _fenced(context: Context, broker: Broker) -> Work[MetadataWrite]:
    active = context.controller()
    gathered = yield from fence(context, broker)

    def reply(code: int) -> BrokerHeartbeatResponse:
        if not code and gathered.is_complete:
            active.sessions = active.sessions.ended(broker.node_id, broker.epoch)
        return BrokerHeartbeatResponse(error_code=code, is_fenced=gathered.is_complete)

    return MetadataWrite(gathered.records, reply)
