"""DeleteGroups of a consumer group."""

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.records import group_tombstones
from pykafka_core.coordinator.group.offsets.deletion import delete_with_group
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import NonEmptyGroupError


def delete_consumer_group(
    group: ConsumerGroup, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Remove a group without members, and then its offsets; respond with its id.

    Raises:
        NonEmptyGroupError: The group has members.
        BatchFullError: The group's records do not fit into one batch.
    """
    if group.has_members:
        raise NonEmptyGroupError
    result.append(list(group_tombstones(group)))
    del state.consumer_groups[group.group_id]
    delete_with_group(state, group.group_id, waiter, result)
