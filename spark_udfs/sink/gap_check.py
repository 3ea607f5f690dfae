"""Checks of Spark's start offsets against the ledger: skipped records are an error.

Spark continues where its checkpoint says; a new checkpoint starts at `startingOffsets`, by default
at the end. Spark identifies topics by name and does not use the ledger. So records can be skipped
in three ways:

- A new checkpoint starts after the group's mark.
- A checkpoint is ahead of the ledger: the database was restored from a backup, is another one, or
  the group has another name.
- The topic was deleted and recreated while no query ran. The old checkpoint's offset means nothing
  in the new log; if the new log is already longer, Spark continues in the middle of it.

The broker can also lose the end of a log, for example in a power failure or when its data are
restored from a copy. It then assigns offsets below the marks to new records. This is detected while
the log ends before a mark; once the log is longer than the mark, the new records cannot be
distinguished from the lost ones.

The offsets of the rows do not show skipped records, because filters before the ledger leave gaps,
too. Spark's plan does: each commit sets the marks of all planned partitions to the end of the plan,
where the next batch starts. So a batch that starts after a mark skips the records in between,
whatever its number. Rows outside of a query have no plan: their range is from the first row of a
partition to the last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykafka_core.errors import ConsumerError, DataLossError
from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink.micro_batch_plan import Planned
from spark_udfs.sink.topic_partition import Range, TopicPartition, name

_NAMED_MAX = 5
"""Number of partitions that an error names; a few of some hundreds are enough to act on."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """The progress of the group and the ids of its topics, as they were read for one batch.

    Attributes:
        group: Its name.
        ledger: Name of its ledger in errors.
        marks: All marks of the group, including those of deleted topics of the same names.
        ids: The topics' current ids.
        logs: For batch 0 and for rows outside of a query, the log ranges of the planned partitions;
            missing ones start at 0.
    """

    group: str
    ledger: str
    marks: Mapping[PartitionKey, int]
    ids: Mapping[str, bytes]
    logs: Mapping[TopicPartition, Range]

    def key(self, place: TopicPartition) -> PartitionKey:
        """Return the partition's key in the ledger."""
        return PartitionKey(self.ids[place[0]], *place)

    def mark(self, place: TopicPartition) -> int:
        """Return the next offset to process; 0 if nothing was processed."""
        return self.marks.get(self.key(place), 0)

    def redelivered(self, plan: Planned) -> dict[TopicPartition, int]:
        """Return the marks of partitions whose batch starts before the mark."""
        return {
            place: self.mark(place)
            for place, at in plan.ranges.items()
            if at.start < min(at.end, self.mark(place))
        }

    def advanced(self, ends: Mapping[TopicPartition, int]) -> dict[PartitionKey, int]:
        """Return the marks of these partitions once everything before ``ends`` is processed."""
        return {self.key(place): max(end, self.mark(place)) for place, end in ends.items()}

    def beyond(self, logs: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Range]:
        """Return those of the logs that end before their mark."""
        return {place: log for place, log in logs.items() if log.end < self.mark(place)}

    def check_ends(self, logs: Mapping[TopicPartition, Range]) -> None:
        """Check that no log ends before its mark.

        Raises:
            DataLossError: A log ends before its mark. The group cannot continue, because marks
                never decrease.
        """
        short = self.beyond(logs)
        if short:
            named = [
                f"{name(place)} ends at offset {log.end}, and all before {self.mark(place)} was processed"
                for place, log in sorted(short.items())
            ]
            raise DataLossError(
                f"{_first_of(named)}: the broker lost the end of the log, or brokers is another cluster. New records "
                "get these offsets again and would count as processed. Restore the broker's data; or continue with "
                "a new group and a new checkpoint, whose startingOffsets say from which offset of each partition on "
                "the records are new; or delete and recreate the topic. fail_on_data_loss=False changes nothing here"
            )

    def check_topic_ids(self, plan: Planned, batch_id: int) -> None:
        """Check that a checkpoint continues with the topics that the group has read.

        Raises:
            ConsumerError: A topic was recreated, and Spark would not start at offset 0.
        """
        if batch_id == 0:
            return
        read = {key.topic for key in self.marks}
        present = {key.topic for key in self.marks if self.ids.get(key.topic) == key.topic_id}
        begun = {topic for (topic, _), at in plan.ranges.items() if at.start > 0}
        recreated = sorted((read - present) & begun)
        if recreated:
            raise ConsumerError(
                f"{', '.join(recreated)}: deleted and recreated since the checkpoint was written, whose offsets are "
                "the old topic's; start with a new checkpoint and startingOffsets=earliest"
            )

    def check_gaps(self, plan: Planned, batch_id: int | None) -> None:
        """Check that the batch does not start after the marks.

        Args:
            batch_id: Spark's number; None for rows outside of a query.

        Raises:
            DataLossError: The batch starts after a mark.
        """
        lost = self.passed_over(plan, batch_id)
        deleted = {place: at for place, at in lost.items() if self._log_start(place) >= at.end}
        if lost and lost == deleted:
            raise DataLossError(
                f"{_said(deleted)} were deleted, by retention or on request, before the group processed them. No "
                "checkpoint brings them back: fail_on_data_loss=False continues without them"
            )
        if lost:
            raise DataLossError(
                f"{_said(lost)} would be lost: the batch begins after them, and the group has not processed them. "
                f"{self._why(batch_id)}, which costs time and counts nothing twice; fail_on_data_loss=False continues "
                "without them"
            )

    def passed_over(self, plan: Planned, batch_id: int | None) -> dict[TopicPartition, Range]:
        """Return the offsets before the batch that the group has not processed, by partition.

        Batch 0 starts a checkpoint; rows outside of a query (None) are treated the same. A topic
        that the group has never read may then start anywhere; a partition without a mark, of a
        topic that the group has read, must start at its first record. Later batches follow a commit
        of the group, which set a mark for each of their partitions.
        """
        known = {key.topic for key in self.marks}
        expected = {}
        for place, at in plan.ranges.items():
            expected[place] = self.mark(place)
            if not batch_id and self.key(place) not in self.marks:
                expected[place] = self._log_start(place) if place[0] in known else at.start
        return {
            place: Range(expected[place], at.start)
            for place, at in plan.ranges.items()
            if at.start > expected[place]
        }

    def _log_start(self, place: TopicPartition) -> int:
        return self.logs[place].start if place in self.logs else 0

    def _why(self, batch_id: int | None) -> str:
        """Return the cause, and what to do."""
        restart = "with a new checkpoint and startingOffsets=earliest"
        if batch_id is None:
            return (
                "Outside of a query the first row of a partition says where the batch begins: give rows that begin "
                "there or before, and filter them in the effect. Rows do not tell whether these offsets hold any (a "
                "transaction's marker has one, and compaction leaves gaps): where they hold none, begin with the "
                "last record before them"
            )
        if batch_id == 0:
            return (
                f"This checkpoint is new and does not begin at the earliest: start again {restart}"
            )
        if not self.marks:
            return (
                f"The checkpoint is an old one, and {self.ledger} has no marks of group {self.group!r}: use the "
                f"database and the group that the query had before. If they are gone, start {restart}"
            )
        restored = "as after a database was restored from a backup"
        return f"The checkpoint is ahead of {self.ledger}, {restored}: start {restart}"


def check_logs(plan: Planned, logs: Mapping[TopicPartition, Range]) -> None:
    """Check that no log ends before the end of the plan.

    A batch that was planned before a crash is read again after it, maybe from another log of that
    name. Its marks would cover records that do not exist yet.

    Raises:
        ConsumerError: A log ends before the end of the plan.
    """
    for place, log in logs.items():
        planned = plan.ranges[place]
        if planned.end > log.end:
            raise ConsumerError(
                f"{name(place)} ends at offset {log.end}, and the batch was planned up to {planned.end}: the topic was "
                "deleted and recreated, or its log was cut, since the checkpoint was written; start with a new "
                "checkpoint and startingOffsets=earliest"
            )


def _said(lost: Mapping[TopicPartition, Range]) -> str:
    return _first_of([f"offsets {lost[place]} of {name(place)}" for place in sorted(lost)])


def _first_of(named: Sequence[str]) -> str:
    more = len(named) - _NAMED_MAX
    first = ", ".join(named[:_NAMED_MAX])
    return first if more <= 0 else f"{first} and of {more} more partitions"
