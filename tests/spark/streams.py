"""Streams of files for the tests of deduplication, and the model for comparisons."""

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SCHEMA = pa.schema(
    [("number", pa.int64()), ("id", pa.string()), ("part", pa.int32()), ("at", pa.timestamp("us", "UTC"))]
)  # fmt: skip
COLUMNS = "number bigint, id string, part int, at timestamp"
Rows = list[tuple[int, str | None, int | None, int | None]]
"""A unique number for each row, two columns that make an id, and a time in microseconds."""

Operator = Callable[["DataFrame"], "DataFrame"]


class Crash(Exception):
    """The sink failed after its effect."""


class Stream:
    """A folder whose files are micro-batches, a checkpoint, and the sink's rows by batch id."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        self.effects: list[tuple[int, list[int]]] = []
        (folder / "input").mkdir()

    def add(self, *batches: Rows) -> None:
        for rows in batches:
            columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)
            ]
            path = self.folder / "input" / f"{self.files:04}.parquet"
            pq.write_table(pa.table(arrays, SCHEMA), path)
            os.utime(path, (1_700_000_000 + self.files,) * 2)  # files are read by age
            self.files += 1

    def run(self, operator: Operator, *, crash_after: int | None = None) -> None:
        """Process the added rows; with `crash_after`, fail after the effect of that micro-batch."""

        def sink(df: "DataFrame", batch_id: int) -> None:
            self.effects.append((batch_id, [row.number for row in df.select("number").collect()]))
            if batch_id == crash_after:
                raise Crash

        self._await(self._frame(operator).writeStream.foreachBatch(sink))

    def run_without_effects(self, operator: Operator) -> None:
        """Process the added rows, with a sink of Spark's own."""
        self._await(self._frame(operator).writeStream.format("noop"))

    def _frame(self, operator: Operator) -> "DataFrame":
        source = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return operator(source.parquet(str(self.folder / "input")))

    def _await(self, writer: "DataStreamWriter") -> None:
        checkpoint = str(self.folder / "checkpoint")
        query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
        query.awaitTermination()

    def numbers(self) -> list[int]:
        """Every row that reached the sink, as often as it did."""
        return sorted(number for _, numbers in self.effects for number in numbers)


def rows_of(start: int, ids: Sequence[tuple[str | None, int | None]]) -> Rows:
    return [(start + at, one, part, None) for at, (one, part) in enumerate(ids)]


def random_batches(seed: int, *sizes: int) -> list[Rows]:
    choose, batches, start = random.Random(seed), [], 0
    for size in sizes:
        ids = [
            (choose.choice([None, "", *"abcdefgh"]), choose.choice([None, 0, 1]))
            for _ in range(size)
        ]
        batches.append(rows_of(start, ids))
        start += size
    return batches


def check_replay(stream: Stream, operator: Operator) -> None:
    """Check that two batches whose sinks fail are repeated with the same rows."""
    batches = random_batches(5, 20, 20)
    stream.add(*batches)
    for crash_after in (0, 1):
        with pytest.raises(StreamingQueryException):
            stream.run(operator, crash_after=crash_after)
    stream.run(operator)
    assert [batch for batch, _ in stream.effects] == [0, 0, 1, 1]
    for batch in (0, 1):
        once, again = [sorted(numbers) for at, numbers in stream.effects if at == batch]
        assert once == again
    by_batch = dict(stream.effects)  # a sink that uses the batch's number has each row once
    assert sorted(by_batch[0] + by_batch[1]) == first_of_each(batches, [1])


def first_of_each(batches: Sequence[Rows], columns: Sequence[int]) -> list[int]:
    """The model: return the numbers of the rows whose id is new or contains a null."""
    seen, kept = set(), []
    for row in (row for rows in batches for row in rows):
        one = tuple(row[column] for column in columns)
        if None in one or one not in seen:
            kept.append(row[0])
        seen.add(one)
    return kept
