"""JoinGroup (11): a client becomes a member of a group, or of its next generation."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.join import Join, join_group
from pykafka_core.errors import (
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    UnknownServerError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate
from pykafka_core.handlers.groups.consumer_topics import ImageTopics
from pykafka_core.handlers.outcome import ShardCalls, ShardResult
from pykafka_core.protocol.messages import JoinGroupRequest, JoinGroupResponse, Message

NULL_PROTOCOL_VERSION = 7
"""From this version on the name of the protocol may be null."""
PROTOCOLS_MAX = 100
"""Maximum number of protocols of one member. Clients have up to five; Kafka has no limit."""
PROTOCOLS_BYTES_MAX = 1024 * 1024
"""Maximum size of the protocols of one member. A group with a larger member cannot be stored and
never becomes stable. Kafka returns the same error only when the leader syncs, and keeps everything
in memory until then."""


def handle(context: Context, request: JoinGroupRequest) -> ShardCalls | Message:
    """Respond when the group's next generation starts, within the rebalance timeout."""
    settings = context.settings
    shortest = settings.int("group.min.session.timeout.ms")
    longest = settings.int("group.max.session.timeout.ms")

    member_id, api_version = request.member_id, context.caller.api_version

    def refused(code: int) -> JoinGroupResponse:
        return _named(JoinGroupResponse(error_code=code, member_id=member_id), api_version)

    if not request.group_id:
        return refused(InvalidGroupIdError.code)
    if not shortest <= request.session_timeout_ms <= longest:
        return refused(InvalidSessionTimeoutError.code)
    if len(request.protocols) > PROTOCOLS_MAX:
        return refused(InconsistentGroupProtocolError.code)
    size = sum(len(protocol.name) + len(protocol.metadata) for protocol in request.protocols)
    if size > PROTOCOLS_BYTES_MAX:
        return refused(UnknownServerError.code)
    view = ImageTopics(context.image.topics, context.image.offset)
    run = partial(join_group, _join(context, request), view)
    found = coordinate(context, request.group_id, run, refused)
    if isinstance(found, Message):
        return found

    def reply(results: Sequence[ShardResult]) -> JoinGroupResponse:
        response = found.reply(results)
        assert isinstance(response, JoinGroupResponse), "a group answers a join with a response"
        return _named(response, api_version)

    return found._replace(reply=reply)


def _named(response: JoinGroupResponse, api_version: int) -> JoinGroupResponse:
    """Set the protocol of an error to null, in versions that allow it."""
    if response.error_code and api_version >= NULL_PROTOCOL_VERSION:
        response.protocol_name = None
    return response


def _join(context: Context, request: JoinGroupRequest) -> Join:
    caller, session_timeout_ms = context.caller, request.session_timeout_ms
    return Join(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        session_timeout_ms=session_timeout_ms,
        # Version 0 has only one timeout.
        rebalance_timeout_ms=request.rebalance_timeout_ms
        if caller.api_version
        else session_timeout_ms,
        client_id=caller.client_id,
        client_host=f"/{caller.client_host}",  # as Java prints an address without a name
        reason=request.reason or "",
        api_version=caller.api_version,
    )
