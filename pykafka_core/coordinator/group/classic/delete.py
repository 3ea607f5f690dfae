"""DeleteGroups: removes a group and its offsets."""

from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.classic.session import drop_pending_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.delete import delete_consumer_group
from pykafka_core.coordinator.group.offsets.deletion import delete_with_group
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError, NonEmptyGroupError


def delete_group(
    group_id: str, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Remove a group without members, and then its offsets; the response is the group id.

    Raises:
        GroupIdNotFoundError: There is no such group.
        NonEmptyGroupError: It has members, or a rebalance is about to remove the last member.
        BatchFullError: Its records do not fit into one batch.
    """
    if group_id in state.consumer_groups:
        delete_consumer_group(state.consumer_groups[group_id], state, waiter, result)
        return
    group = state.groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError
    if group.state is not ClassicGroupState.EMPTY:
        raise NonEmptyGroupError
    result.append([group_tombstone(group_id)])
    for member_id in list(group.pending_members):
        drop_pending_member(state, group, member_id)
    group.move_to(ClassicGroupState.DEAD, result.now_ms)
    del state.groups[group_id]
    delete_with_group(state, group_id, waiter, result)
