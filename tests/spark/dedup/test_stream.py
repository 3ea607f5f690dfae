"""`dedup_stream` in Spark, compared with a set, over restarts, replays, retries and changes."""

import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from spark_udfs import dedup_stream, fingerprint
from spark_udfs.dedup import stream as streams
from spark_udfs.dedup.disk import StoreError
from tests.spark.dedup.files import Query, new_worker
from tests.spark.streams import (
    COLUMNS,
    Operator,
    Rows,
    Stream,
    check_replay,
    first_of_each,
    random_batches,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = 60_000_000


@pytest.fixture
def stream(spark: "SparkSession", tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def unique(stream: Stream, ids: Any = "id", **settings: Any) -> Operator:
    return lambda df: dedup_stream(df, ids, store=stream.folder / "ids", **settings)


@pytest.mark.parametrize(
    ("ids", "columns", "buckets"),
    [
        ("id", [1], None),
        (["id", "part"], [1, 2], 1),
        ("part", [2], 3),
        (lambda: F.upper("id"), [1], 2),
        (lambda: ["part", F.col("id").cast("binary")], [1, 2], 4),
        (lambda: fingerprint("id", "part"), [1, 2], 2),
    ],
)
def test_the_first_row_of_each_id_is_kept_over_batches_and_a_restart(
    stream: Stream, ids: Any, columns: list[int], buckets: int | None
) -> None:
    if callable(ids):  # a column can only be made in a session
        ids = ids()
    batches = random_batches(len(columns), 0, 30, 0, 20, 30)
    stream.add(*batches[:4])
    stream.run(unique(stream, ids, buckets=buckets))
    stream.add(batches[4])
    stream.run(unique(stream, ids))
    assert stream.numbers() == first_of_each(batches, columns)


def test_replayed_batches_give_the_same_rows(stream: Stream) -> None:
    check_replay(stream, unique(stream))


def test_replay_without_a_row_of_the_failed_attempt_forgets_its_id(
    stream: Stream,
) -> None:
    """The user fixed the filter in between; ids of the failed attempt never reached the sink."""
    stream.add([(0, "X", 0, None)])
    with pytest.raises(StreamingQueryException):
        stream.run(unique(stream, buckets=4), crash_after=0)
    stream.add([(1, "X", 1, None)])
    stream.run(lambda df: unique(stream)(df.where("part = 1")))
    assert stream.effects[1:] == [(0, []), (1, [1])]


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_replay_for_which_spark_plans_no_tasks_forgets_the_ids_of_the_failed_attempt(
    stream: Stream, is_adaptive: bool
) -> None:
    """Regression: after a shuffle without rows no task ran, so the failed attempt counted."""

    def operator(part: int) -> Operator:
        return lambda df: unique(stream, buckets=3)(
            df.repartition(2, "part").where(f"part = {part}")
        )

    stream.add([(0, "X", 0, None)])
    with pytest.raises(StreamingQueryException):
        stream.run(operator(0), crash_after=0)
    with adaptive_execution(stream.spark, is_adaptive):
        stream.run_without_effects(operator(1))
    stream.add([(1, "X", 0, None)])
    stream.run(operator(0))
    assert stream.effects == [(0, [0]), (1, [1])]


@contextmanager
def adaptive_execution(spark: "SparkSession", is_on: bool) -> Iterator[None]:
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    assert before is not None, "Spark has a default"
    spark.conf.set(name, is_on)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def test_a_frame_may_be_used_twice_in_one_query(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0), ("b", 1), ("a", 1)]), rows_of(3, [("b", 0), ("c", 1)]))

    def operator(df: "DataFrame") -> "DataFrame":
        new = unique(stream, buckets=2)(df)
        return new.where("part = 0").union(new.where("part = 1"))

    stream.run(operator)
    assert stream.numbers() == [0, 1, 4]


def test_two_dedup_streams_in_one_query_need_two_folders(stream: Stream) -> None:
    stream.add([(0, "1", 2, None)])
    twice = unique(stream, F.col("part").cast("string"), buckets=1)
    with pytest.raises(StreamingQueryException, match="each needs its own folder"):
        stream.run(lambda df: twice(unique(stream, buckets=1)(df)))


def test_rows_without_an_event_time_before_any_other_count_as_rows_of_now(stream: Stream) -> None:
    now = time.time_ns() // 1_000
    stream.add([(0, "x", 0, None)], [(1, "y", 0, now)], [(2, "x", 0, None)])
    stream.run(unique(stream, buckets=1, horizon="100 days", event_time="at"))
    assert stream.numbers() == [0, 1]


@pytest.mark.parametrize("by_spark", [False, True])
def test_removing_duplicate_rows_alone_does_not_make_effects_happen_once(
    stream: Stream, by_spark: bool
) -> None:
    operator = (lambda df: df.dropDuplicates(["id"])) if by_spark else unique(stream)
    stream.add(rows_of(0, [("a", 0), ("b", 0), ("a", 0)]))
    with pytest.raises(StreamingQueryException):
        stream.run(operator, crash_after=0)
    stream.run(operator)
    assert [len(numbers) for _, numbers in stream.effects] == [2, 2]  # two effects, each done twice


def test_failed_task_is_retried_with_the_same_result(stream: Stream) -> None:
    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        rows = list(batches)
        assert context is not None
        if context.attemptNumber() == 0:
            raise RuntimeError("after the ids were remembered")
        yield from rows

    def operator(df: "DataFrame") -> "DataFrame":
        return unique(stream)(df).mapInArrow(fails_once, df.schema)

    batches = random_batches(3, 20, 20)
    stream.add(*batches)
    stream.run(operator)
    assert stream.numbers() == first_of_each(batches, [1])


def test_actions_of_one_micro_batch_see_the_same_rows(stream: Stream) -> None:
    counts = []

    def sink(df: "DataFrame", _: int) -> None:
        counts.append([df.count(), df.where("part = 0").count() + df.where("part = 1").count()])

    stream.add(rows_of(0, [("a", 0), ("b", 1), ("a", 0)]), rows_of(3, [("b", 0), ("c", 1)]))
    source = stream.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    df = unique(stream)(source.parquet(str(stream.folder / "input")))
    writer = df.writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer.option(
        "checkpointLocation", str(stream.folder / "checkpoint")
    ).start().awaitTermination()
    assert counts == [[2, 2], [1, 1]]


def test_rows_that_are_filtered_out_later_are_remembered(stream: Stream) -> None:
    stream.add(
        rows_of(0, [("a", 0), ("b", 0)]),
        rows_of(2, [("a", 1), ("b", 1), ("c", 1)]),
        rows_of(5, [("d", 1), ("a", 1)]),
    )
    stream.run(lambda df: unique(stream)(df).where("part = 1").where(F.length("id") == 1))
    assert stream.numbers() == [4, 5]


def test_rows_that_a_limit_cuts_off_are_remembered(stream: Stream) -> None:
    numbers = []

    def sink(df: "DataFrame", _: int) -> None:
        numbers.append([row.number for row in df.limit(1).collect()])

    stream.add(
        rows_of(0, [("a", 0), ("b", 0), ("c", 0)]), rows_of(3, [("c", 0), ("b", 0), ("d", 0)])
    )
    source = stream.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    df = unique(stream, buckets=1)(source.parquet(str(stream.folder / "input")))
    writer = df.writeStream.foreachBatch(sink).trigger(availableNow=True)
    checkpoint = str(stream.folder / "checkpoint")
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()
    assert numbers == [[0], [5]]


def test_plan_shuffles_once_and_calls_python_once_after_the_shuffle(stream: Stream) -> None:
    """A deterministic function would be moved above the user's filter, or the filter below it."""
    stream.add(rows_of(0, [("a", 0)]))
    source = stream.spark.readStream.schema(COLUMNS).parquet(str(stream.folder / "input"))
    df = unique(stream)(source).where("part = 0").select("number")
    writer = df.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(stream.folder / "checkpoint")).start()
    query.awaitTermination()
    plan = query._jsq.explainInternal(False).partition("Initial Plan")[2]
    kinds = re.findall(r"^[ +\-:*()\d]*(ArrowEvalPython|Exchange|Filter)\b", plan, re.MULTILINE)
    assert kinds == ["Filter", "Filter", "ArrowEvalPython", "Exchange"], plan


def test_a_duplicate_past_the_horizon_of_event_time_is_passed_on(stream: Stream) -> None:
    batches: list[Rows] = [
        [(0, "a", 0, 0), (1, "a", 0, 100 * MINUTE), (2, "b", 0, 95 * MINUTE)],
        [
            (3, "a", 0, MINUTE),
            (4, "b", 0, 96 * MINUTE),
            (5, "c", 0, 106 * MINUTE),
            (6, "d", 0, None),
        ],
        [(7, "b", 0, 106 * MINUTE), (8, "c", 0, 106 * MINUTE), (9, "d", 0, 106 * MINUTE)],
        [(10, "b", 0, 0)],
    ]
    stream.add(*batches)
    stream.run(unique(stream, horizon="8 minutes", buckets=1, event_time="at"))
    # "a" is older than the horizon (0: 100 minutes), so it passes once in each batch. "b" is 11
    # minutes old when batch 2 starts, and new again; so is its own time of 106 then.
    assert stream.numbers() == [0, 2, 3, 5, 6, 7]


def test_row_of_the_distant_future_forgets_nothing(stream: Stream) -> None:
    century = 100 * 365 * 86_400 * 1_000_000
    now = time.time_ns() // 1_000
    stream.add(
        [(0, "a", 0, now), (1, "b", 0, now + century)],
        [(2, "a", 0, now), (3, "b", 0, now), (4, "c", 0, now)],
        [(5, "a", 0, now), (6, "b", 0, now + century), (7, "c", 0, now)],
    )
    stream.run(unique(stream, horizon="1 hour", buckets=1, event_time="at"))
    assert stream.numbers() == [0, 1, 4]


@pytest.mark.parametrize(("horizon", "numbers"), [("1 hour", [0, 2]), ("1 millisecond", [0, 1, 2])])
def test_without_event_time_the_horizon_counts_from_the_time_of_the_micro_batch(
    stream: Stream, horizon: str, numbers: list[int]
) -> None:
    stream.add(rows_of(0, [("a", 0)]), rows_of(1, [("a", 0), ("b", 0)]))
    stream.run(unique(stream, horizon=horizon, buckets=1))
    assert stream.numbers() == numbers


@pytest.mark.parametrize("is_before", [False, True])
def test_a_watermark_set_before_or_afterwards_closes_windows(
    stream: Stream, is_before: bool
) -> None:
    stream.add(
        [(0, "a", 0, 0), (1, "a", 0, 1), (2, "b", 0, 2)],
        [(3, "a", 0, 3), (4, "c", 0, 10 * MINUTE)],
        [(5, "d", 0, 20 * MINUTE)],
    )

    def counted(df: "DataFrame") -> "DataFrame":
        first = unique(stream, buckets=1)
        rows = (
            first(df.withWatermark("at", "1 minute"))
            if is_before
            else first(df).withWatermark("at", "1 minute")
        )
        return rows.groupBy(F.window("at", "1 minute")).agg(F.count("*").alias("number"))

    stream.run(counted)
    assert stream.numbers() == [1, 2]  # a and b in the first window, c in the eleventh; d's is open


def test_number_of_buckets_and_name_of_the_column_can_change_between_starts(stream: Stream) -> None:
    batches = random_batches(8, 40, 40, 40, 40)
    operators = [
        unique(stream, buckets=4),
        unique(stream, buckets=7),
        lambda df: unique(stream, "key", buckets=2)(df.withColumnRenamed("id", "key")),
        lambda df: unique(stream, F.col("id"))(df),
    ]
    for batch, operator in enumerate(operators):
        stream.add(batches[batch])
        with pytest.raises(StreamingQueryException):
            stream.run(operator, crash_after=batch)
    stream.run(operators[-1])
    assert [batch for batch, _ in stream.effects] == [0, 0, 1, 1, 2, 2, 3, 3]
    for batch in range(4):
        once, again = [sorted(numbers) for at, numbers in stream.effects if at == batch]
        assert once == again
    kept = [number for numbers in dict(stream.effects).values() for number in numbers]
    assert sorted(kept) == first_of_each(batches, [1])


def test_ids_of_another_type_are_rejected(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 1)]))
    stream.run(unique(stream, "part", buckets=1))
    wider = F.col("part").cast("bigint").alias("part")  # as a bigint, 1 has another fingerprint
    with pytest.raises(StoreError, match="continue with those"):
        stream.run(unique(stream, wider, buckets=1))
    assert stream.numbers() == [0]


def test_a_new_checkpoint_with_an_old_folder_fails_the_query(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0)]))
    stream.run(unique(stream))
    (stream.folder / "checkpoint").rename(stream.folder / "put away")
    with pytest.raises(StreamingQueryException, match="a new checkpoint needs a new folder"):
        stream.run(unique(stream))
    assert stream.numbers() == [0]


def test_a_checkpoint_older_than_the_folder_fails_the_query(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0)]))
    stream.run(unique(stream))
    shutil.copytree(stream.folder / "checkpoint", stream.folder / "old")
    for batch in (1, 2):
        stream.add(rows_of(batch, [("b", batch)]))
        stream.run(unique(stream))
    shutil.rmtree(stream.folder / "checkpoint")
    (stream.folder / "old").rename(stream.folder / "checkpoint")
    with pytest.raises(StreamingQueryException, match="the checkpoint is older than the folder"):
        stream.run(unique(stream))
    assert stream.numbers() == [0, 1]


def test_folder_inside_the_checkpoint_is_allowed(stream: Stream) -> None:
    def operator(df: "DataFrame") -> "DataFrame":
        return dedup_stream(df, "id", store=stream.folder / "checkpoint" / "ids")

    check_replay(stream, operator)


def test_buckets_run_in_one_task_have_separate_memories(stream: Stream) -> None:
    choose_id, batches = random.Random(1), []
    for start in (0, 30, 60):
        ids = [(f"id {choose_id.randrange(40)}", 0) for _ in range(30)]
        batches.append(rows_of(start, ids))
    stream.add(*batches)
    stream.run(lambda df: unique(stream, buckets=4)(df).coalesce(1))
    assert stream.numbers() == first_of_each(batches, [1])


def test_rows_without_an_id_are_distributed_over_tasks(stream: Stream) -> None:
    def operator(df: "DataFrame") -> "DataFrame":
        kept = unique(stream, buckets=2)(df.repartition(4, "number"))
        return kept.withColumn("number", F.spark_partition_id())

    stream.add(rows_of(0, [(None, 0)] * 40))
    stream.run(operator)
    assert set(stream.numbers()) == {0, 1}
    assert len(stream.numbers()) == 40


def test_micro_batches_write_only_new_ids(stream: Stream) -> None:
    ids = stream.folder / "ids"
    contents: dict[str, bytes] = {}
    for batch in range(3):
        names = [(f"id {number}", 0) for number in range(1_000 * batch, 1_000 * batch + 2_000)]
        stream.add(rows_of(2_000 * batch, names))
        stream.run(unique(stream, buckets=2))
        found = {str(path): path.read_bytes() for path in ids.rglob("0*") if path.is_file()}
        assert contents.items() <= found.items()
        added = sum(map(len, found.values())) - sum(map(len, contents.values()))
        assert added <= 17 * (2_000 if batch == 0 else 1_000)
        contents = found


def test_fingerprints_are_the_same_in_every_version_of_spark(spark: "SparkSession") -> None:
    """Folders contain them: if this fails, `dedup_stream` no longer finds stored ids."""
    row = [F.lit("message"), F.lit(7).cast("bigint"), F.lit(b"\0\1").cast("binary")]
    found = spark.range(1).select(*streams._fingerprint(row)).collect()[0]
    assert list(found) == GOLDEN
    nothing = spark.range(1).select(*streams._fingerprint([*row, F.lit(None).cast("int")]))
    assert nothing.collect()[0][0] is None


GOLDEN = [-9154762916816441464, 3921662383362122128]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.none() | st.integers(0, 3)), min_size=1, max_size=20
    ),
    cut=st.integers(0, 20),
    pieces=st.integers(1, 3),
)
def test_first_row_of_the_input_wins_for_any_order_of_sources(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int | None]],
    cut: int,
    pieces: int,
) -> None:
    new_worker()
    shuffled = rows[cut:] + rows[:cut]
    query = Query(tmp_path_factory.mktemp("ids") / "ids", 1)
    batches = [
        (
            pa.array([one for _, one in part], pa.int64()),
            pa.array([0 for _ in part], pa.int64()),
            pa.array([source for source, _ in part], pa.int32()),
        )
        for part in (shuffled[at::pieces] for at in range(pieces))
    ]
    in_order = [row for at in range(pieces) for row in shuffled[at::pieces]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_of_task", lambda: ("query", 0, 1))
        masks = list(streams._is_new(query.store, None)(iter(batches)))
    assert [len(mask) for mask in masks] == [len(part) for part, *_ in batches if len(part)]
    new = np.concatenate([mask.to_numpy(zero_copy_only=False) for mask in masks])
    found = [row for row, kept in zip(in_order, new, strict=True) if kept]

    seen: set[int | None] = set()
    kept = []
    for source, one in sorted(in_order, key=lambda row: row[0]):
        if one is None or one not in seen:
            kept.append((source, one))
        seen.add(one)
    assert sorted(found, key=str) == sorted(kept, key=str)


def test_call_within_another_query_is_rejected(spark: "SparkSession", tmp_path: Path) -> None:
    """All attempts of its micro-batches would have the execution id of the outer micro-batch."""
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "one").write_text("a line\n")
    lines = spark.readStream.text(str(tmp_path / "lines"))
    refused: list[str] = []

    def nested(_: "DataFrame", __: int) -> None:
        with pytest.raises(ValueError, match="begin the query outside of it") as raised:
            dedup_stream(lines, "value", store=tmp_path / "ids")
        refused.append(str(raised.value))

    query = lines.writeStream.foreachBatch(nested).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert len(refused) == 1
    assert not (tmp_path / "ids").exists()
