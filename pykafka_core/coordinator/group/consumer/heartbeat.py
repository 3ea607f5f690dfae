"""ConsumerGroupHeartbeat: a member joins, keeps its session alive, reports the partitions that it
owns, and gets its assignment.

`steps` has the changes of the group.
"""

from typing import TypeVar

from pykafka_core.coordinator.group.consumer.heartbeat_request import NO_TIMEOUT, Heartbeat
from pykafka_core.coordinator.group.consumer.join import admitted, opened
from pykafka_core.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    ConsumerMember,
)
from pykafka_core.coordinator.group.consumer.member_update import put_member, reconcile, renew
from pykafka_core.coordinator.group.consumer.regexes import check_regex
from pykafka_core.coordinator.group.consumer.timers.session import (
    forget_deadlines,
    touch,
)
from pykafka_core.coordinator.group.consumer.topics import (
    TopicsView,
)
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import FencedInstanceIdError, UnreleasedInstanceIdError
from pykafka_core.protocol.messages import ConsumerGroupHeartbeatResponse

T = TypeVar("T")

_Response = ConsumerGroupHeartbeatResponse


def consumer_heartbeat(
    beat: Heartbeat, view: TopicsView, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with a `ConsumerGroupHeartbeatResponse`, with the assignment if it has changed.

    Raises:
        GroupIdNotFoundError: There is no such group, or it is a classic group with members.
        GroupMaxSizeReachedError: The group is full.
        CoordinatorNotAvailableError: The memory limit of all groups is reached.
        UnknownMemberIdError: There is no such member.
        UnreleasedInstanceIdError: Another member has the instance id, and has not left.
        FencedInstanceIdError: The same, for a member that has already joined.
        FencedMemberEpochError: The member is in another epoch: it must revoke its partitions and
            rejoin.
        InvalidRegularExpressionError: The group has too many of them.
        UnknownServerError: A new epoch is needed, but the group is in the last one.
        BatchFullError: The changes do not fit into one batch.
    """
    draft = opened(beat.group_id, beat.member_epoch, view, state)
    check_regex(beat.topic_regex, beat.member_id, draft.group)
    member_id = beat.member_id or (state.new_uuid() if beat.member_epoch == JOIN_EPOCH else "")
    try:
        before, replaced = admitted(beat, member_id, draft, state)
    except (UnreleasedInstanceIdError, FencedInstanceIdError):
        text = f"member {member_id}: another one has the instance id {beat.instance_id}"
        draft.group.history.note(What.FENCED, text, result.now_ms)
        raise
    changed = put_member(draft, before, _updated(beat, before), state)
    renew(draft, view, state, changed, result.now_ms)
    after = reconcile(draft, member_id, beat.owned, state, result)
    if replaced is not None:
        forget_deadlines(state, beat.group_id, replaced)
    draft.group.topics_version = view.version
    touch(state, beat.group_id, member_id, result.now_ns, beat.session_timeout_ms)
    is_news = beat.is_full or before.assigned != after.assigned
    result.respond(waiter, _respond(beat, after, is_news=is_news))


def _updated(beat: Heartbeat, member: ConsumerMember) -> ConsumerMember:
    timeout_ms = beat.rebalance_timeout_ms
    return member._replace(
        instance_id=_said(beat.instance_id, member.instance_id),
        rack_id=_said(beat.rack_id, member.rack_id),
        client_id=beat.client_id,
        client_host=beat.client_host,
        topic_names=_said(beat.topic_names, member.topic_names),
        topic_regex=_said(beat.topic_regex, member.topic_regex) or None,
        rebalance_timeout_ms=_said(
            None if timeout_ms == NO_TIMEOUT else timeout_ms, member.rebalance_timeout_ms
        ),
        server_assignor=_said(beat.server_assignor, member.server_assignor),
        classic=None,
    )


def _said(value: T | None, before: T) -> T:
    return before if value is None else value


def _respond(beat: Heartbeat, member: ConsumerMember, *, is_news: bool) -> _Response:
    rows = [
        _Response.TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
        for topic_id, numbers in sorted(member.assigned.items())
    ]
    return _Response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=beat.heartbeat_interval_ms,
        assignment=_Response.Assignment(topic_partitions=rows) if is_news else None,
    )
