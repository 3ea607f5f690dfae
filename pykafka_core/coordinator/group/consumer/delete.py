"""DeleteGroups of a consumer group."""

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.records import group_tombstones
from pykafka_core.coordinator.group.offsets.deletion import MORE, remove_some
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.errors import NonEmptyGroupError


def delete_consumer_group(
    group: ConsumerGroup, state: GroupState, waiter: Waiter, turn: Turn
) -> None:
    """Remove a group without members; answered with its id, or with `MORE` when some of its offsets are left.

    Raises:
        NonEmptyGroupError: It has members.
        RecordListTooLargeError: Its records do not fit into one batch.
    """
    if group.has_members:
        raise NonEmptyGroupError
    # Its own records have a turn of their own: an operation that is refused has changed nothing.
    had_offsets = next(state.offsets.places(group.group_id), None) is not None
    if had_offsets:
        remove_some(state, group.group_id, turn)
        turn.answer(waiter, MORE)
        return
    turn.append(list(group_tombstones(group)))
    del state.consumer_groups[group.group_id]
    turn.answer(waiter, group.group_id)
