"""SyncGroup (14): the leader sends the assignment of a generation, and members get their parts."""

from functools import partial

from pykafka_core.coordinator.group.classic.sync import Sync, sync_group
from pykafka_core.errors import InconsistentGroupProtocolError, InvalidGroupIdError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate
from pykafka_core.handlers.outcome import ShardCalls, Work
from pykafka_core.protocol.messages import Message, SyncGroupRequest, SyncGroupResponse

NAMED_VERSION = 5
"""From this version on a request has a protocol name and a protocol type."""


def handle(context: Context, request: SyncGroupRequest) -> Work[ShardCalls | Message]:
    """Respond when the leader has sent the assignment."""
    unnamed = request.protocol_type is None or request.protocol_name is None
    if unnamed and context.caller.api_version >= NAMED_VERSION:
        return _refused(InconsistentGroupProtocolError.code)
    if not request.group_id:
        return _refused(InvalidGroupIdError.code)
    assignments: dict[str, bytes] = {}
    for assigned in request.assignments:
        yield
        assignments[assigned.member_id] = assigned.assignment
    sync = Sync(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=assignments,
    )
    return coordinate(context, request.group_id, partial(sync_group, sync), _refused)


def _refused(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
