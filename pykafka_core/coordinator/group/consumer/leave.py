"""Removes members: on their request, or after a deadline."""

from collections.abc import Iterable

from pykafka_core.coordinator.group.consumer.assignment.epochs import (
    begin_epoch,
    epoch_after_removal,
)
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.member import (
    HOLDS_NOTHING,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    held_since,
)
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    member_tombstones,
    target_epoch_record,
)
from pykafka_core.coordinator.group.consumer.regexes import unused_regexes
from pykafka_core.coordinator.group.consumer.timers.session import (
    forget_deadlines,
    watch_revocation,
)
from pykafka_core.coordinator.group.consumer.topics import (
    NO_METADATA_HASH,
    TopicsView,
    found_topics,
    metadata_hash,
)
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.migration.downgrade import is_downgraded
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError
from pykafka_core.protocol.messages import ConsumerGroupHeartbeatRequest as Request
from pykafka_core.protocol.messages import ConsumerGroupHeartbeatResponse


def consumer_leave(
    request: Request, view: TopicsView, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Remove a member, or mark a static member as away; respond with a
    `ConsumerGroupHeartbeatResponse`.

    Raises:
        GroupIdNotFoundError: There is no such group.
        UnknownMemberIdError: There is no such member.
        FencedInstanceIdError: Another member id has the instance id.
    """
    group = state.consumer_groups.get(request.group_id)
    if group is None:
        raise GroupIdNotFoundError
    member = group.member_of(request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        _go_away(state, group, member, result)
    else:
        cause = f"member {member.member_id} left"
        remove_members(state, group, [member.member_id], view, cause, result)
    result.respond(
        waiter,
        ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        ),
    )


def _go_away(
    state: GroupState, group: ConsumerGroup, member: ConsumerMember, result: CoordinatorResult
) -> None:
    """Keep the assigned partitions of a static member until its session ends; those that it had to
    revoke are released.

    Its successor may be in any epoch, so the epochs of its partitions become 0, as in Kafka.
    """
    kept = held_since(0, member.assigned)
    away = member._replace(epoch=LEAVE_STATIC_EPOCH, assigned=kept, revoking=HOLDS_NOTHING)
    draft = Draft(group)
    draft.note(What.MEMBER, f"static member {member.instance_id} left temporarily")
    draft.commit(state, result, [current_record(group.group_id, away)])
    watch_revocation(state, group.group_id, away, result.now_ns)


def remove_members(
    state: GroupState,
    group: ConsumerGroup,
    member_ids: Iterable[str],
    view: TopicsView | None,
    cause: str,
    result: CoordinatorResult,
) -> None:
    """Remove members. The group gets a new epoch, and the next heartbeat a new assignment.

    If only classic members remain, the group becomes a classic group.

    Args:
        state: State of the shard.
        group: The group of these members.
        member_ids: At least one.
        view: The current topics; None if they are unknown, and the next heartbeat checks them.
        cause: Reason of the removal, for the history.
        result: Gets the records.
    """
    group_id, draft = group.group_id, Draft(group)
    for member_id in member_ids:
        draft.add(member_tombstones(group_id, member_id))
    if is_downgraded(state, draft.group, group, cause, result):
        return
    draft.add(unused_regexes(draft.group))
    found, epoch = _hash(draft.group, view), epoch_after_removal(group)
    begin_epoch(draft, epoch, found, cause)
    if not draft.group.members:
        # The assignment of an empty group is complete at once, as in Kafka since 4.4.
        draft.add([target_epoch_record(group_id, epoch)])
    draft.commit(state, result)
    draft.group.topics_version = None if view is None else view.version
    for member_id in member_ids:
        forget_deadlines(state, group_id, member_id)


def _hash(group: ConsumerGroup, view: TopicsView | None) -> int:
    if not group.members:
        return NO_METADATA_HASH
    if view is None:
        return group.metadata_hash
    return metadata_hash(found_topics(view, set(group.subscribed_names())).values())
