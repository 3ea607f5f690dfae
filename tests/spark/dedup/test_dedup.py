"""Duplicates in tables and streams, against a plain Python set."""

import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mmh3
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import functions as F

from pykafka_core import kernels
from pykafka_core.idempotent import PartitionKey
from spark_udfs import dedup_batch, dedup_offsets, dedup_stream, fingerprint
from spark_udfs.dedup.store import StoreError
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

batch: Any = dedup_batch  # under these names they take bad input past the type checker
stream_of: Any = dedup_stream
offsets: Any = dedup_offsets


@pytest.fixture
def stream(spark: "SparkSession", tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.mark.parametrize(
    ("ids", "columns", "buckets"), [("id", [1], 16), (["id", "part"], [1, 2], 1), ("part", [2], 3)]
)
def test_stream_keeps_the_first_row_of_each_id_over_batches_and_a_restart(
    stream: Stream, ids: Any, columns: list[int], buckets: int
) -> None:
    batches = random_batches(buckets, 30, 0, 20, 30)
    stream.add(*batches[:3])
    stream.run(lambda df: dedup_stream(df, ids, buckets=buckets))
    stream.add(batches[3])
    stream.run(lambda df: dedup_stream(df, ids, buckets=buckets))
    assert stream.numbers() == first_of_each(batches, columns)


def test_replayed_batches_give_what_they_gave_at_first(stream: Stream) -> None:
    check_replay(stream, lambda df: dedup_stream(df, "id"))


@pytest.mark.parametrize(
    "operator", [lambda df: df.dropDuplicates(["id"]), lambda df: dedup_stream(df, "id")]
)
def test_removing_duplicate_rows_alone_does_not_make_effects_happen_once(
    stream: Stream, operator: Operator
) -> None:
    stream.add(rows_of(0, [("a", 0), ("b", 0), ("a", 0)]))
    with pytest.raises(StreamingQueryException):
        stream.run(operator, crash_after=0)
    stream.run(operator)
    assert [len(numbers) for _, numbers in stream.effects] == [2, 2]  # two effects, done twice each


@pytest.mark.parametrize("by_store", [False, True])
def test_a_duplicate_past_the_horizon_of_event_time_is_passed_on(
    stream: Stream, by_store: bool
) -> None:
    minute = 60_000_000
    batches: list[Rows] = [
        [(0, "a", 0, 0), (1, "a", 0, 100 * minute), (2, "b", 0, 95 * minute)],
        [
            (3, "a", 0, minute),
            (4, "b", 0, 96 * minute),
            (5, "c", 0, 106 * minute),
            (6, "d", 0, None),
        ],
        [(7, "b", 0, 106 * minute), (8, "c", 0, 106 * minute), (9, "d", 0, 106 * minute)],
        [(10, "b", 0, 0)],
    ]
    stream.add(*batches)
    store = stream.folder / "ids" if by_store else None
    stream.run(
        lambda df: dedup_stream(df, "id", "8 minutes", buckets=1, event_time="at", store=store)
    )
    # "a" is older than the horizon when it comes (0: 100 minutes): it is passed on each time, but once in a
    # batch. "b" is 11 minutes back when batch 2 begins, and new again; so is its own time of 106 then.
    assert stream.numbers() == [0, 2, 3, 5, 6, 7]


@pytest.mark.parametrize("by_store", [False, True])
def test_a_row_of_the_far_future_forgets_nothing(stream: Stream, by_store: bool) -> None:
    century = 100 * 365 * 86_400 * 1_000_000
    now = time.time_ns() // 1_000
    stream.add(
        [(0, "a", 0, now), (1, "b", 0, now + century)],
        [(2, "a", 0, now), (3, "b", 0, now), (4, "c", 0, now)],
        [(5, "a", 0, now), (6, "b", 0, now + century), (7, "c", 0, now)],
    )
    store = stream.folder / "ids" if by_store else None
    stream.run(lambda df: dedup_stream(df, "id", "1 hour", buckets=1, event_time="at", store=store))
    assert stream.numbers() == [0, 1, 4]


@pytest.mark.parametrize("by_store", [False, True])
@pytest.mark.parametrize(("horizon", "numbers"), [("1 hour", [0, 2]), ("1 millisecond", [0, 1, 2])])
def test_without_event_time_the_horizon_counts_from_the_time_of_the_micro_batch(
    stream: Stream, horizon: str, numbers: list[int], by_store: bool
) -> None:
    stream.add(rows_of(0, [("a", 0)]), rows_of(1, [("a", 0), ("b", 0)]))
    store = stream.folder / "ids" if by_store else None
    stream.run(lambda df: dedup_stream(df, "id", horizon, buckets=1, store=store))
    assert stream.numbers() == numbers


def test_a_watermark_set_afterwards_closes_windows(stream: Stream) -> None:
    minute = 60_000_000
    stream.add(
        [(0, "a", 0, 0), (1, "a", 0, 1), (2, "b", 0, 2)],
        [(3, "a", 0, 3), (4, "c", 0, 10 * minute)],
        [(5, "d", 0, 20 * minute)],
    )

    def counted(df: "DataFrame") -> "DataFrame":
        unique = dedup_stream(df, "id", buckets=1).withWatermark("at", "1 minute")
        return unique.groupBy(F.window("at", "1 minute")).agg(F.count("*").alias("number"))

    stream.run(counted)
    assert stream.numbers() == [1, 2]  # a and b in the first window, c in the eleventh; d's is open


def test_a_checkpoint_of_other_settings_is_refused(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0)]))
    stream.run(lambda df: dedup_stream(df, "id", buckets=4))
    stream.add(rows_of(1, [("b", 0)]))
    for operator in (
        lambda df: dedup_stream(df, "id", buckets=5),
        lambda df: dedup_stream(df, ["id", "part"], "1 hour", buckets=4, seed=1),
    ):
        with pytest.raises(StreamingQueryException, match="go on with those of the checkpoint"):
            stream.run(operator)
    assert stream.numbers() == [0]


@pytest.mark.parametrize("by_store", [False, True])
def test_ids_of_another_type_are_refused(stream: Stream, by_store: bool) -> None:
    store = stream.folder / "ids" if by_store else None
    stream.add(rows_of(0, [("a", 1)]))
    stream.run(lambda df: dedup_stream(df, "part", buckets=1, store=store))
    stream.add(rows_of(1, [("b", 1)]))  # the fingerprint of 1 is another as a bigint
    wider = F.col("part").cast("bigint").alias("part")
    with pytest.raises((StreamingQueryException, StoreError), match="go on with those"):
        stream.run(lambda df: dedup_stream(df, wider, buckets=1, store=store))
    assert stream.numbers() == [0]


def test_stream_of_redelivered_offsets_is_cut_at_each_partitions_mark(stream: Stream) -> None:
    def operator(df: "DataFrame") -> "DataFrame":
        topics = df.withColumn("topic", F.lit("flights")).withColumnRenamed("part", "partition")
        return dedup_offsets(topics, offset=F.col("id").cast("bigint"))

    first: Rows = [(0, "0", 0, None), (1, "1", 0, None), (2, "5", 1, None), (3, "1", 0, None)]
    again: Rows = [(4, "0", 0, None), (5, "1", 0, None), (6, "2", 0, None), (7, "3", 1, None)]
    fresh: Rows = [(8, None, 0, None), (9, "6", 1, None), (10, "0", 2, None), (11, "3", None, None)]
    stream.add(first)
    stream.run(operator)
    stream.add(again, fresh)
    stream.run(operator)
    assert stream.numbers() == [0, 1, 2, 6, 8, 9, 10, 11]


def test_marks_of_a_ledger_cut_a_table_without_python(spark: "SparkSession") -> None:
    rows = [
        ("a", 0, 4),
        ("a", 0, 5),
        ("a", 1, 0),
        ("b", 0, 1),
        ("c", 7, 0),
        ("a", None, 0),
        ("a", 0, None),
    ]
    df = spark.createDataFrame(rows, "topic string, partition int, offset bigint")
    topic_id = bytes(16)
    marks = {
        PartitionKey(topic_id, "a", 0): 5,
        PartitionKey(topic_id, "a", 2): 9,
        PartitionKey(topic_id, "b", 0): 2,
    }
    kept = dedup_offsets(df, marks)
    assert [tuple(row) for row in kept.collect()] == [rows[at] for at in (1, 2, 4, 5, 6)]
    assert dedup_offsets(df, {}).count() == len(rows)
    with pytest.raises(ValueError, match="two marks of a-0"):
        dedup_offsets(df, {**marks, PartitionKey(b"x" * 16, "a", 0): 1})


@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("buckets", [1, 64])
def test_batch_keeps_the_row_with_the_least_or_greatest_order(
    spark: "SparkSession", keep: Any, buckets: int
) -> None:
    choose = random.Random(buckets)
    rows = [
        (
            number,
            choose.choice([None, *"abcd"]),
            choose.choice([0, 1]),
            choose.choice([None, 1, 2, 3]),
        )
        for number in range(60)
    ]
    df = spark.createDataFrame(rows, "number int, id string, part int, rank int").coalesce(1)
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(row[1:3], []).append(row)
    sign = 1 if keep == "first" else -1
    expected = [row[0] for row in rows if row[1] is None]
    for one, group in groups.items():
        if one[0] is not None:
            best = min(group, key=lambda row: (row[3] is None, sign * (row[3] or 0), sign * row[0]))
            expected.append(best[0])
    kept = dedup_batch(df, ["id", "part"], keep, order_by="rank", buckets=buckets)
    assert sorted(row.number for row in kept.collect()) == sorted(expected)
    assert kept.schema == df.schema


def test_batch_passes_every_column_type_unchanged(spark: "SparkSession") -> None:
    df = spark.sql("""
        SELECT id AS offset, CAST(id AS decimal(20, 3)) AS d, timestamp '2013-01-01 05:15:00' AS t,
               timestamp_ntz '2013-01-01 05:15:00' AS n, date '2013-01-01' AS day, interval 3 days AS i,
               array(id, NULL) AS a, map('k', id) AS m, named_struct('x', 1, 'y', 'z') AS s,
               CAST('b' AS binary) AS b, CAST(NULL AS string) AS nothing, true AS yes, 1.5f AS f
        FROM range(3)
    """)  # fmt: skip
    twice = df.union(df)
    kept = dedup_batch(twice, "offset")
    assert kept.schema == twice.schema
    assert sorted(map(str, kept.collect())) == sorted(map(str, df.collect()))
    assert dedup_batch(twice.where("offset < 0"), "offset").count() == 0


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "Europe/Berlin"])
def test_batch_keeps_instants_in_every_time_zone(spark: "SparkSession", zone: str) -> None:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        instant = "timestamp_seconds(1357017300)"
        df = spark.sql(f"""
            SELECT 'k' AS key, id AS offset, {instant} AS t, named_struct('t', {instant}) AS s, array({instant}) AS a,
                   map('t', {instant}) AS m
            FROM range(2)
        """)  # fmt: skip
        seconds = [
            f"CAST({part} AS bigint) AS s{at}"
            for at, part in enumerate(("t", "s.t", "a[0]", "m['t']"))
        ]
        assert [tuple(row) for row in dedup_batch(df, "key").selectExpr(*seconds).collect()] == [
            (1357017300,) * 4
        ]
        assert dedup_batch(df, "offset", order_by=["t", "offset"]).count() == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_fingerprint_is_the_kernels(spark: "SparkSession") -> None:
    rows = [("a", 1), ("", 2), (None, 3), ("flug über köln", None)]
    df = spark.createDataFrame(rows, "id string, part int")
    found = df.select(
        fingerprint("id", seed=7).alias("one"), fingerprint("id", F.col("part")).alias("two")
    )
    for (one, _), row in zip(rows, found.collect(), strict=True):
        digest = None if one is None else mmh3.hash64(one.encode(), 7, signed=False)
        assert row.one == (None if digest is None else struct.pack("<QQ", *digest))
    names = pa.array([one for one, _ in rows])
    parts = pa.array([part for _, part in rows], pa.int32())
    two = kernels.fingerprints(names, parts).to_pylist()
    assert [row.two for row in found.collect()] == [*two[:2], None, None]  # part of an id is no id
    assert dict(found.dtypes) == {"one": "binary", "two": "binary"}


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "keep is 'first' or 'last', not 'middle'", lambda df: batch(df, "id", "middle", "number")),
        (AnalysisException, "offset", lambda df: batch(df, "id")),  # order_by is not there
        (AnalysisException, "nope", lambda df: batch(df, "nope", order_by="number")),
        (ValueError, "ids needs 1 column", lambda df: batch(df, [], order_by="number")),
        (TypeError, "ids holds names and columns, not int", lambda df: batch(df, [3], order_by="number")),
        (TypeError, "an id cannot be of type double", lambda df: batch(df, F.lit(1.5), order_by="number")),
        (TypeError, "order_by cannot be of type array", lambda df: batch(df, "id", order_by=F.array("id"))),
        (ValueError, "buckets is 1 to 4096, not 0", lambda df: batch(df, "id", order_by="number", buckets=0)),
        (ValueError, "rename id", lambda df: batch(df.select("id", "id"), "part", order_by="part")),
        (ValueError, "for a table there is dedup_batch", lambda df: stream_of(df, "id")),
        (ValueError, "of a table needs marks", lambda df: offsets(df, partition_by="part", offset="number")),
        (TypeError, "an offset is an integer", lambda df: offsets(df, {}, partition_by="part", offset="id")),
        (ValueError, "a seed is 0 to 4294967295, not -1", lambda df: fingerprint("id", seed=-1)),
        (ValueError, "fingerprint needs 1 column", lambda df: fingerprint()),
    ],
)  # fmt: skip
def test_bad_input_is_refused_at_the_driver(
    spark: "SparkSession", error: type[Exception], match: str, call: Callable[["DataFrame"], Any]
) -> None:
    df = spark.createDataFrame([(1, "a", 2)], "number int, id string, part int")
    with pytest.raises(error, match=match):
        call(df)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "for a stream there is dedup_stream", lambda df: batch(df, "id", order_by="number")),
        (ValueError, "buckets is 1 to 4096, not 0", lambda df: stream_of(df, "id", buckets=0)),
        (TypeError, "buckets is an int, not str", lambda df: stream_of(df, "id", buckets="16")),
        (AnalysisException, "nope", lambda df: stream_of(df, "nope")),
        (TypeError, "an id cannot be of type map", lambda df: stream_of(df, F.create_map("id", "id"))),
        (ValueError, "like '10 minutes'", lambda df: stream_of(df, "id", "soon")),
        (ValueError, "at least a millisecond", lambda df: stream_of(df, "id", "0 seconds")),
        (TypeError, "a timedelta or a str, not int", lambda df: stream_of(df, "id", 10)),
        (ValueError, "there is none", lambda df: stream_of(df, "id", event_time="at")),
        (TypeError, "event_time is a timestamp, not int", lambda df: stream_of(df, "id", "1 hour", event_time="part")),
        (ValueError, "a seed is 0 to", lambda df: stream_of(df, "id", seed=2**32)),
        (TypeError, "store is the path of a folder, not int", lambda df: stream_of(df, "id", store=3)),
        (ValueError, "store is an absolute path", lambda df: stream_of(df, "id", store="s3://bucket/ids")),
    ],
)  # fmt: skip
def test_bad_input_of_a_stream_is_refused_before_it_starts(
    stream: Stream, error: type[Exception], match: str, call: Callable[["DataFrame"], Any]
) -> None:
    source = stream.spark.readStream.schema(COLUMNS)
    with pytest.raises(error, match=match):
        call(source.parquet(str(stream.folder / "input")))


def test_a_column_that_cannot_be_hashed_fails_the_query_by_name(spark: "SparkSession") -> None:
    with pytest.raises(PythonException, match="of Arrow type double cannot be hashed"):
        spark.range(1).select(fingerprint(F.lit(1.5))).collect()
