"""Micro-batches as Spark's engine plans and reads them, without its JVM."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from spark_udfs.sink import micro_batch_plan, sink
from spark_udfs.sink.micro_batch_plan import Planned, StreamPlan
from spark_udfs.sink.topic_partition import Range, TopicPartition
from tests.spark.sink.histories.cluster import TOPICS, Cluster, Partition

SCHEMA = (
    StructType()
    .add("topic", "string")
    .add("partition", "integer")
    .add("offset", "long")
    .add("topic_id", "binary")
    .add("id", "binary")
)
COLUMNS = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "topic_id": pa.binary(),
    "id": pa.binary(),
}
Offsets = dict[TopicPartition, int]
Row = tuple[str, int, int, bytes, bytes]
"""A row of `SCHEMA`. ``topic_id`` is part of the record, so its real topic is always known."""


class SourceError(Exception):
    """Error of Spark's Kafka source: planned records are missing, with failOnDataLoss=true."""


class TaskFailedError(Exception):
    """Error of a Spark job."""


@dataclass
class Checkpoint:
    """A checkpoint: planned batches, with the end of each stream, and the number that are done.

    Attributes:
        start: startingOffsets; "middle" means a JSON text with an offset for each partition.
        lives: The topics' ids when ``initial`` and each of ``ends`` were written. Spark does not
            have them.
    """

    start: str
    initial: list[Offsets] | None = None
    ends: list[list[Offsets]] = field(default_factory=list)
    lives: list[Mapping[str, bytes]] = field(default_factory=list)
    done: int = 0

    def lose(self, entries: int, *, repeats: bool) -> None:
        """Lose the last planned batches, as in a power cut.

        Args:
            repeats: The last remaining batch was not marked as done; Spark repeats only that one.
        """
        kept = max(0, len(self.ends) - entries)
        del self.ends[kept:], self.lives[kept + 1 :]
        self.done = max(0, kept - 1) if repeats else min(self.done, kept)


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else repeat(())
    return pa.table(
        {
            name: pa.array(column, kind)
            for (name, kind), column in zip(COLUMNS.items(), columns, strict=False)
        }
    )


@dataclass(frozen=True)
class Frame:
    """A micro-batch with the interface that the sink uses. Its rows are read from the current logs.

    Attributes:
        lives: The topics' ids when its start was written to the checkpoint, and when its end was.
        below: Rows below these offsets were filtered out.
    """

    spark: "Spark"
    streams: Sequence[StreamPlan]
    lives: Sequence[Mapping[str, bytes]]
    below: Mapping[TopicPartition, int] = field(default_factory=dict)
    schema = SCHEMA

    def places(self) -> Iterator[tuple[TopicPartition, Range]]:
        for stream in self.streams:
            yield from stream.items()

    def rows(self, place: TopicPartition | None = None) -> list[Row]:
        """Return the rows of one partition, or all.

        Raises:
            SourceError: Planned rows are missing.
        """
        parts = [list(self._rows_of(stream, place)) for stream in self.streams]
        if self.spark.joins:  # on the place and the offset
            return sorted(set.intersection(*map(set, parts)))
        return [row for part in parts for row in part]

    def _rows_of(self, stream: StreamPlan, wanted: TopicPartition | None) -> Iterator[Row]:
        for place, at in stream.items():
            if wanted in (None, place):
                for offset in self.spark.offsets(place, at):
                    if offset >= self.below.get(place, 0):
                        partition = self.spark.cluster.partitions[place]
                        yield (*place, offset, partition.uid[0], partition.ids[offset])


class Spark:
    """Plans like MicroBatchExecution and KafkaMicroBatchStream.

    Args:
        subscriptions: The topics of each stream of the query; missing ones are found once they
            exist.
        limit: Like maxOffsetsPerTrigger, per partition.
        joins: Join the streams, on place and offset, instead of a union.
        filters: Filter some records before the sink: see `wants`.
        fails_on_data_loss: The source's failOnDataLoss.
    """

    def __init__(
        self,
        cluster: Cluster,
        subscriptions: list[set[str]],
        limit: int,
        *,
        joins: bool,
        filters: bool,
        fails_on_data_loss: bool,
    ) -> None:
        self.cluster, self.subscriptions, self._limit = cluster, subscriptions, limit
        self.joins, self._filters, self.fails_on_data_loss = joins, filters, fails_on_data_loss
        self.once_read: Callable[[], None] | None = None
        """Called once, after the next rows were read."""

    def are_read(self) -> None:
        """Call `once_read`."""
        happens, self.once_read = self.once_read, None
        if happens:
            happens()

    def wants(self, offset: int) -> bool:
        """Return whether the query passes the record to the sink."""
        return not self._filters or offset % 3 != 1

    def next_batch(self, checkpoint: Checkpoint, arrive: int = 0) -> Frame | None:
        """Return the planned batch that is not done, or a new one; None without new records.

        Args:
            checkpoint: Written before this returns.
            arrive: Number of records that are added to the first topic after each stream's plan.
        """
        if checkpoint.initial is None:
            checkpoint.initial = [
                self._initial(topics, checkpoint.start) for topics in self.subscriptions
            ]
            checkpoint.lives.append(dict(self.cluster.ids))
        begins = checkpoint.ends[-1] if checkpoint.ends else checkpoint.initial
        if checkpoint.done == len(checkpoint.ends):
            ends = []
            for topics, begin in zip(self.subscriptions, begins, strict=True):
                ends.append(self._plan(topics, begin))
                if partition := self.cluster.partitions.get((TOPICS[0], 0)):
                    self.cluster.produce(partition, arrive)
            if ends == begins:
                return None
            checkpoint.ends.append(ends)
            checkpoint.lives.append(dict(self.cluster.ids))
        begins = [checkpoint.initial, *checkpoint.ends][checkpoint.done]
        streams = [
            {place: Range(begin.get(place, 0), offset) for place, offset in end.items()}
            for begin, end in zip(begins, checkpoint.ends[checkpoint.done], strict=True)
        ]
        return Frame(self, streams, checkpoint.lives[checkpoint.done : checkpoint.done + 2])

    def offsets(self, place: TopicPartition, planned: Range) -> Iterator[int]:
        """Yield the offsets of the rows that reading ``planned`` gives.

        Raises:
            SourceError: There are fewer than planned.
        """
        partition = self.cluster.partitions.get(place, Partition((b"", 0)))
        start, end = (
            max(planned.start, partition.start),
            min(planned.end, partition.end),
        )
        if self.fails_on_data_loss and planned.start < planned.end and (start, end) != planned:
            raise SourceError(f"{place}: {planned} was planned, {start} to {end} are there")
        return filter(self.wants, range(start, end))

    def _places(self, topics: set[str]) -> dict[TopicPartition, Partition]:
        return {at: p for at, p in self.cluster.partitions.items() if at[0] in topics}

    def _initial(self, topics: set[str], start: str) -> Offsets:
        places = self._places(topics).items()
        at = {"earliest": 0, "middle": 1, "latest": 2}[start]
        return {place: p.start + (p.end - p.start) * at // 2 for place, p in places}

    def _plan(self, topics: set[str], begins: Offsets) -> Offsets:
        ends = {}
        for place, partition in self._places(topics).items():
            begin = begins.get(place, partition.start)
            ends[place] = max(begin, min(partition.end, begin + self._limit))
        return ends


def _without_redelivered(
    frame: Frame, marks: Mapping[TopicPartition, int]
) -> tuple[Frame, Callable[[], int]]:
    return replace(frame, below=marks), lambda: 0


@contextmanager
def without_a_jvm() -> Iterator[pytest.MonkeyPatch]:
    """Make the sink accept a `Frame` as Spark's DataFrame."""

    @contextmanager
    def rows(frame: Frame, _: Planned) -> Iterator[pa.Table]:
        table = table_of(frame.rows())
        frame.spark.are_read()
        yield table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sink, "planned", lambda frame: micro_batch_plan.agreed(frame.streams))
        patch.setattr(sink, "_rows", rows)
        patch.setattr(sink, "_query_id", lambda _: "query")
        patch.setattr(sink, "run_of", lambda _: "run")
        patch.setattr(sink, "check_pickled", lambda **_: None)
        patch.setattr(sink, "without_redelivered", _without_redelivered)
        yield patch
