"""Finds the member of a heartbeat, and admits consumers that join."""

from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup, check_epoch
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.heartbeat_request import Heartbeat
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
    """Return a draft of the group. A consumer that joins creates the group, or converts a classic
    group with its members.

    Raises:
        GroupIdNotFoundError: There is no such group, or it is a classic group that cannot be
            converted.
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
    """Return the member as it was before this heartbeat; a new member is not in the group yet.

    Returns:
        The member, and, for a static member that rejoins, the member id that it replaces.

    Raises:
        GroupMaxSizeReachedError: The group is full.
        UnknownMemberIdError: There is no such member.
        UnreleasedInstanceIdError: Another member has the instance id, and has not left.
        FencedInstanceIdError: The same, for a member that has already joined.
        FencedMemberEpochError: The member is in another epoch.
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
    """Replace a static member by the one that rejoins, which gets its partitions and its target."""
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
    draft.note(What.MEMBER, f"static member {existing.instance_id} rejoined as {member_id}")
    return member
