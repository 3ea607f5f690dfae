"""Where Spark began to read, held against the ledger: records that were passed over are an error, not a silence.

Spark goes on where its checkpoint says, and begins a new checkpoint where `startingOffsets` says, by default at the
end. It knows topics by name, and of the ledger nothing. So records can be passed over in three ways:

- A new checkpoint begins after the group's mark.
- A checkpoint is ahead of the ledger: the database was put back from a backup, is another one, or the group has
  another name.
- The topic was deleted and recreated while no query ran. The old checkpoint's offset means nothing in the new log; if
  that is longer already, Spark goes on in its middle.

The broker can also lose the end of a log, as in a power cut, or when its data are put back from a copy. Then it gives
offsets below the marks to new records. A log that ends before a mark says so, until it is longer than the mark again:
later the records cannot be told from those that were lost.

The rows cannot tell: filters before the ledger leave gaps too. What Spark planned can. Each commit therefore sets the
marks of all planned partitions to the end of the plan, which is where the next batch starts: a batch that starts after
a mark passes over what is between, whatever its number is. Rows that are given by hand have no plan: what
they stand for goes from the first row of a partition to the last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykafka_core.errors import ConsumerError, DataLossError
from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink.places import Place, Range, name
from spark_udfs.sink.planned import Planned

_NAMED_MAX = 5
"""Partitions that an error names; of some hundreds a few are enough to act on."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What the group has read.

    Attributes:
        group: Its name.
        ledger: What errors call its ledger.
        marks: All of the group's, of earlier lives of the topics too.
        ids: The topics' present ids.
        logs: Of batch 0, what the broker has of the planned partitions; those that are not there begin at 0.
    """

    group: str
    ledger: str
    marks: Mapping[PartitionKey, int]
    ids: Mapping[str, bytes]
    logs: Mapping[Place, Range]

    def key(self, place: Place) -> PartitionKey:
        """The partition's name in the ledger."""
        return PartitionKey(self.ids[place[0]], *place)

    def mark(self, place: Place) -> int:
        """The next offset to process; 0 where nothing was."""
        return self.marks.get(self.key(place), 0)

    def redelivered(self, plan: Planned) -> dict[Place, int]:
        """The marks of partitions whose batch begins before them."""
        return {
            place: self.mark(place)
            for place, at in plan.ranges.items()
            if at.start < min(at.end, self.mark(place))
        }

    def advanced(self, ends: Mapping[Place, int]) -> dict[PartitionKey, int]:
        """The marks of these partitions once everything before ``ends`` is processed."""
        return {self.key(place): max(end, self.mark(place)) for place, end in ends.items()}

    def beyond(self, logs: Mapping[Place, Range]) -> dict[Place, Range]:
        """Of these logs, those that end before their marks."""
        return {place: log for place, log in logs.items() if log.end < self.mark(place)}

    def check_ends(self, logs: Mapping[Place, Range]) -> None:
        """The logs have all that was processed.

        Raises:
            DataLossError: One ends before. There is no going on with this group, as its marks never go back.
        """
        short = self.beyond(logs)
        if short:
            named = [
                f"{name(place)} ends at offset {log.end}, and all before {self.mark(place)} was processed"
                for place, log in sorted(short.items())
            ]
            raise DataLossError(
                f"{_first_of(named)}: the broker lost the end of the log, or brokers is another cluster. New records "
                "get these offsets again and would be taken for processed. Put the broker's data back; or go on with "
                "a new group and a new checkpoint, whose startingOffsets say from which offset of each partition on "
                "the records are new; or delete and recreate the topic. fail_on_data_loss=False changes nothing here"
            )

    def check_lives(self, plan: Planned, batch_id: int) -> None:
        """The topics that a checkpoint goes on with are those that the group read.

        Raises:
            ConsumerError: One was recreated, and Spark would not begin at its beginning.
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
        """The batch starts at the marks or before.

        Args:
            batch_id: Spark's; None for rows by hand.

        Raises:
            DataLossError: It starts later.
        """
        lost = self.passed_over(plan, batch_id)
        deleted = {place: at for place, at in lost.items() if self._log_start(place) >= at.end}
        if lost and lost == deleted:
            raise DataLossError(
                f"{_said(deleted)} were deleted, by retention or on request, before the group processed them. No "
                "checkpoint brings them back: fail_on_data_loss=False goes on without them"
            )
        if lost:
            raise DataLossError(
                f"{_said(lost)} would be lost: the batch begins after them, and the group has not processed them. "
                f"{self._why(batch_id)}, which costs time and counts nothing twice; fail_on_data_loss=False goes on "
                "without them"
            )

    def passed_over(self, plan: Planned, batch_id: int | None) -> dict[Place, Range]:
        """The offsets before the batch that the group has not processed, by partition.

        Batch 0 begins a checkpoint, and rows by hand (None) are like it. A topic that the group never read may begin
        anywhere then; partitions without a mark, of topics that it knows, begin at their first record. Later batches
        go on behind a commit of the group's, which marked each partition that they begin in.
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

    def _log_start(self, place: Place) -> int:
        return self.logs[place].start if place in self.logs else 0

    def _why(self, batch_id: int | None) -> str:
        """The cause, and what to do."""
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


def check_logs(plan: Planned, logs: Mapping[Place, Range]) -> None:
    """The logs reach to the end of the plan.

    A batch that was planned before a crash is read again after it, from what may be another log by then. Its marks
    would cover records that are yet to come.

    Raises:
        ConsumerError: One ends before.
    """
    for place, log in logs.items():
        planned = plan.ranges[place]
        if planned.end > log.end:
            raise ConsumerError(
                f"{name(place)} ends at offset {log.end}, and the batch was planned up to {planned.end}: the topic was "
                "deleted and recreated, or its log was cut, since the checkpoint was written; start with a new "
                "checkpoint and startingOffsets=earliest"
            )


def _said(lost: Mapping[Place, Range]) -> str:
    return _first_of([f"offsets {lost[place]} of {name(place)}" for place in sorted(lost)])


def _first_of(named: Sequence[str]) -> str:
    more = len(named) - _NAMED_MAX
    first = ", ".join(named[:_NAMED_MAX])
    return first if more <= 0 else f"{first} and of {more} more partitions"
