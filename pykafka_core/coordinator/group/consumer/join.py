"""Who may send a heartbeat: members, and those who join."""

from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.beat import Heartbeat
from pykafka_core.coordinator.group.consumer.draft import Draft
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup, check_epoch
from pykafka_core.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
)
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from pykafka_core.coordinator.group.consumer.topics import TopicsView
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.migration.upgrade import upgraded
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.errors import (
    GroupIdNotFoundError,
    UnreleasedInstanceIdError,
)


def opened(group_id: str, member_epoch: int, view: TopicsView, state: GroupState) -> Draft:
    """A draft of the group; of a new one for who joins, also in the place of a classic one, whose members it gets.

    Raises:
        GroupIdNotFoundError: There is none, or it is a classic one that stays so.
    """
    group = state.consumer_groups.get(group_id)
    if group is not None:
        return Draft(group)
    classic = state.groups.get(group_id)
    if member_epoch != JOIN_EPOCH:
        raise GroupIdNotFoundError
    if classic is not None and classic.state is not ClassicGroupState.EMPTY:
        return upgraded(classic, view, state)
    first = [] if classic is None else [group_tombstone(group_id)]
    history = None if classic is None else classic.history
    return Draft(ConsumerGroup(group_id, state.member_memory, history), first)


def admitted(
    beat: Heartbeat, member_id: str, draft: Draft, state: GroupState
) -> tuple[ConsumerMember, str | None]:
    """The member before this heartbeat; a new one is not in the group yet.

    Returns:
        The member, and the id of the one whose place it takes as a static member that comes back.

    Raises:
        GroupMaxSizeReachedError: The group has members enough.
        UnknownMemberIdError: It is none.
        UnreleasedInstanceIdError: Another member has the instance id, and has not left.
        FencedInstanceIdError: The same, of a member that has joined already.
        FencedMemberEpochError: It is in another epoch.
    """
    group = draft.group
    group.check_size(member_id, beat.instance_id, state.settings.consumer.max_size)
    if beat.member_epoch == JOIN_EPOCH:
        return _joined(beat, member_id, draft)
    member = group.member_of(member_id, beat.instance_id)
    check_epoch(member, beat.member_epoch, beat.owned)
    return member, None


def _joined(beat: Heartbeat, member_id: str, draft: Draft) -> tuple[ConsumerMember, str | None]:
    group = draft.group
    known = group.members.get(member_id) or ConsumerMember(member_id)
    if beat.instance_id is None:
        return known, None
    existing = group.static_member(beat.instance_id)
    if existing is None or existing.member_id == member_id:
        return known, None
    if existing.epoch != LEAVE_STATIC_EPOCH and existing.classic is None:
        raise UnreleasedInstanceIdError
    return replaced_static(existing, member_id, draft), existing.member_id


def replaced_static(existing: ConsumerMember, member_id: str, draft: Draft) -> ConsumerMember:
    """Give all that a static member had to the one that comes back."""
    group_id = draft.group.group_id
    target = draft.group.target(existing.member_id)
    member = existing._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    draft.add(
        [
            *member_tombstones(group_id, existing.member_id),
            member_record(group_id, member),
            target_record(group_id, member_id, target),
            current_record(group_id, member),
        ]
    )
    draft.note(What.MEMBER, f"static member {existing.instance_id} came back as {member_id}")
    return member
