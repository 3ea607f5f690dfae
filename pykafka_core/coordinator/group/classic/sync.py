"""SyncGroup in a classic group."""

from collections.abc import Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.rebalance import (
    drop_assignment,
    rebalance_or_complete,
    refuse_sync,
    synced,
)
from pykafka_core.coordinator.group.classic.records import group_record, stored_member
from pykafka_core.coordinator.group.classic.session import touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.migration.requests import sync_consumers
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult, Waiter
from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownServerError,
)


class Sync(NamedTuple):
    """A SyncGroup request.

    Args:
        protocol_type: None if the client does not send it.
        protocol_name: None if the client does not send it.
        assignments: By member id; only the leader's are used, and unknown member ids are ignored.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


def sync_group(sync: Sync, state: GroupState, waiter: Waiter, result: CoordinatorResult) -> None:
    """Return a member's assignment in a `SyncGroupResponse`, when the leader has sent it.

    Raises:
        UnknownMemberIdError: The group or the member does not exist.
        FencedInstanceIdError: Another member id has the instance id.
        IllegalGenerationError: The member is in another generation.
        InconsistentGroupProtocolError: The group has another protocol.
        RebalanceInProgressError: The member must join again.
    """
    consumers = state.consumer_groups.get(sync.group_id)
    if consumers is not None:
        sync_consumers(sync, consumers, state, waiter, result)
        return
    group = state.groups.get(sync.group_id)
    if group is None:
        raise UnknownMemberIdError
    group.check_generation(sync.member_id, sync.group_instance_id, sync.generation_id)
    if _differ(sync.protocol_type, group.protocol_type) or _differ(
        sync.protocol_name, group.protocol_name
    ):
        raise InconsistentGroupProtocolError
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        raise RebalanceInProgressError
    member = group.members[sync.member_id]
    _note_sync(state, group, member)
    if group.state is ClassicGroupState.STABLE:
        result.respond(waiter, synced(group, member))
        return
    refuse_sync(member, RebalanceInProgressError.code, result)
    member.sync_waiter = waiter
    if group.leader_id == member.member_id:
        _assign(state, group, sync.assignments, result)


def _differ(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known


def _note_sync(state: GroupState, group: ClassicGroup, member: Member) -> None:
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        state.deadlines.cancel(group.sync_key)


def _assign(
    state: GroupState,
    group: ClassicGroup,
    assignments: Mapping[str, bytes],
    result: CoordinatorResult,
) -> None:
    """Store the leader's assignment and complete the pending SyncGroup requests."""
    if not _has_room(state, group, assignments):
        drop_assignment(state, group, CoordinatorNotAvailableError.code, result)
        rebalance_or_complete(state, group, "there is no room for the assignment", result)
        return
    try:
        result.append([_assigned_record(group, assignments)])
    except BatchFullError:
        drop_assignment(state, group, UnknownServerError.code, result)
        rebalance_or_complete(state, group, "the group is too large to be stored", result)
        return
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        waiter = member.sync_waiter
        if waiter is not None:
            member.sync_waiter = None
            result.respond(waiter, synced(group, member))
            touch_member(state, member, result.now_ns)
    group.move_to(ClassicGroupState.STABLE, result.now_ms)
    group.history.note(
        What.ASSIGNED, f"leader {group.leader_id} brought the assignment", result.now_ms
    )


def _has_room(state: GroupState, group: ClassicGroup, assignments: Mapping[str, bytes]) -> bool:
    """Return whether the memory limit allows the assignments; those no larger than the last ones
    always fit.
    """
    if state.member_memory.has_room(sum(map(len, assignments.values()))):
        return True  # no need to look at each member
    growth = sum(
        len(assignments.get(member.member_id, b"")) - len(member.assignment)
        for member in group.members.values()
    )
    return state.member_memory.has_room(growth)


def _assigned_record(
    group: ClassicGroup, assignments: Mapping[str, bytes]
) -> tuple[bytes, bytes | None]:
    members = [
        stored_member(member, group.protocol_name, assignments.get(member.member_id, b""))
        for member in group.members.values()
    ]
    return group_record(group, members, group.leader_id)
