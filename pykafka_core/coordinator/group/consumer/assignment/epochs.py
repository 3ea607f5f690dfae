"""The next epoch of a group. Kafka does not check for the last one: its epochs become negative."""

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.records import epoch_record
from pykafka_core.coordinator.group.history import What, members_text
from pykafka_core.errors import UnknownServerError

EPOCH_MAX = 2**31 - 1
"""The largest epoch that a record can hold. No group lives long enough to reach it, but a damaged
record may contain it."""


def next_epoch(group: ConsumerGroup) -> int:
    """Return the epoch for a new assignment.

    Raises:
        UnknownServerError: The group is in the last epoch. Its members must leave, and the group
            must be deleted.
    """
    if group.epoch >= EPOCH_MAX:
        raise UnknownServerError(f"Group {group.group_id} is in the last epoch there is.")
    return group.epoch + 1


def epoch_after_removal(group: ConsumerGroup) -> int:
    """Return the epoch after members have left, which must be possible even in the last epoch."""
    return min(group.epoch + 1, EPOCH_MAX)


def begin_epoch(draft: Draft, epoch: int, topics_hash: int, cause: str) -> None:
    """Set the group's epoch; ``cause`` is added to its history."""
    draft.add([epoch_record(draft.group.group_id, epoch, topics_hash)])
    draft.note(What.REBALANCE, cause)
    draft.note(
        What.GENERATION, f"epoch {epoch} began with {members_text(len(draft.group.members))}"
    )
