"""Removes a consumer group without members when all its offsets have expired."""

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.records import group_tombstones
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult


def remove_empty_consumer_group(
    group: ConsumerGroup, state: GroupState, result: CoordinatorResult
) -> bool:
    """Remove a group if it has no members; return False if the records do not fit."""
    if group.has_members:
        return True
    try:
        result.append(list(group_tombstones(group)))
    except BatchFullError:
        return False
    del state.consumer_groups[group.group_id]
    return True
