"""Heartbeat (12): extends a member's session, and shows whether it must rejoin."""

from functools import partial

from pykafka_core.coordinator.group.classic.heartbeat import heartbeat
from pykafka_core.errors import NONE, CoordinatorLoadInProgressError, InvalidGroupIdError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate
from pykafka_core.handlers.outcome import ShardCalls
from pykafka_core.protocol.messages import HeartbeatRequest, HeartbeatResponse, Message


def handle(context: Context, request: HeartbeatRequest) -> ShardCalls | Message:
    """Respond at once."""
    if not request.group_id:
        return _refused(InvalidGroupIdError.code)
    return coordinate(context, request.group_id, partial(heartbeat, request), _refused)


def _refused(code: int) -> HeartbeatResponse:
    # Sessions do not expire while groups are loaded, so the heartbeat succeeds, as in Kafka.
    loading = code == CoordinatorLoadInProgressError.code
    return HeartbeatResponse(error_code=NONE if loading else code)
