"""The epoch that a group comes to next. Kafka does not look for the end of them: its epochs become negative."""

from pykafka_core.coordinator.group.consumer.draft import Draft
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.records import epoch_record
from pykafka_core.coordinator.group.history import What
from pykafka_core.errors import UnknownServerError

EPOCH_MAX = 2**31 - 1
"""The last one that a record can hold. No group lives long enough to come to it; a damaged record may have it."""


def next_epoch(group: ConsumerGroup) -> int:
    """The one for another assignment.

    Raises:
        UnknownServerError: There is none. The group has to be deleted, for which its members have to leave.
    """
    if group.epoch >= EPOCH_MAX:
        raise UnknownServerError(f"Group {group.group_id} is in the last epoch there is.")
    return group.epoch + 1


def epoch_after_removal(group: ConsumerGroup) -> int:
    """The one after members have left: that must always be possible, also in the last epoch."""
    return min(group.epoch + 1, EPOCH_MAX)


def begin_epoch(draft: Draft, epoch: int, topics_hash: int, cause: str) -> None:
    """Bring the group to an epoch; its history says why."""
    draft.add([epoch_record(draft.group.group_id, epoch, topics_hash)])
    draft.note(What.REBALANCE, cause)
    draft.note(What.GENERATION, f"epoch {epoch} began with {len(draft.group.members)} members")
