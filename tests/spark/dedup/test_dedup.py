"""Duplicates in tables, marks, fingerprints, and input that is refused before it runs."""

import random
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mmh3
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import functions as F

from pykafka_core import kernels
from pykafka_core.idempotent import PartitionKey
from spark_udfs import dedup_batch, dedup_offsets, dedup_stream, fingerprint
from spark_udfs.dedup.batch import _order
from tests.spark.streams import (
    COLUMNS,
    Stream,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

batch: Any = dedup_batch  # these names accept bad input without an error of the type checker
stream_of: Any = dedup_stream
offsets: Any = dedup_offsets

KEY: Any = PartitionKey(bytes(16), "t", 0)


def marked(df: "DataFrame", marks: Any) -> "DataFrame":
    return dedup_offsets(df, marks, topic="id", partition="part", offset="number")


@pytest.fixture
def stream(spark: "SparkSession", tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_marks_of_a_ledger_filter_a_table_without_python(spark: "SparkSession") -> None:
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


def test_marks_of_many_partitions_are_one_constant(spark: "SparkSession") -> None:
    """With a literal each, 10,000 took 18 s; a condition per topic overflowed the JVM's stack."""
    marks = {
        PartitionKey(bytes(16), f"t{topic}", partition): topic + partition
        for topic in range(1_000)
        for partition in range(10)
    }
    marks[PartitionKey(bytes(16), "sparse", 2_000_000)] = 5
    df = spark.sql("""
        SELECT concat('t', id % 1001) topic, CAST(id % 11 AS int) partition, id % 7 AS offset FROM range(5000)
        UNION ALL SELECT 'sparse', 2000000, id FROM range(7)
    """)  # fmt: skip
    kept = dedup_offsets(df, marks)
    plan = kept._jdf.queryExecution().optimizedPlan()
    assert "from_json" not in plan.toString().lower()  # parsed once, on the driver
    of = {(key.topic, key.partition): mark for key, mark in marks.items()}
    wanted = [
        tuple(row) for row in df.collect() if row.offset >= of.get((row.topic, row.partition), 0)
    ]
    assert 0 < len(wanted) < df.count()
    assert [tuple(row) for row in kept.collect()] == wanted


def test_topics_are_compared_by_their_bytes(spark: "SparkSession") -> None:
    df = spark.sql("SELECT 'A' COLLATE UTF8_LCASE topic, 0 partition, 1L offset")
    assert dedup_offsets(df, {PartitionKey(bytes(16), "a", 0): 5}).count() == 1


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
    kept = dedup_batch(df, ["id", "part"], keep=keep, order_by="rank", buckets=buckets)
    assert sorted(row.number for row in kept.collect()) == sorted(expected)
    assert kept.schema == df.schema


@pytest.mark.parametrize(
    ("keep", "orders"),
    [("first", [[1.0, 2.0, float("nan"), None]]), ("last", [[float("nan"), 2.0, None], [2.0, None]])],
)  # fmt: skip
def test_batch_treats_nan_as_the_greatest_number_as_spark_does(
    spark: "SparkSession", keep: Any, orders: list[list[float | None]]
) -> None:
    for order in orders:  # each value wins against all that follow it
        for winner in range(len(order) - 1):
            rows = [("a", rank) for rank in reversed(order[winner:])]
            df = spark.createDataFrame(rows, "id string, rank double").coalesce(1)
            (kept,) = dedup_batch(df, "id", keep=keep, order_by="rank").collect()
            assert repr(kept.rank) == repr(order[winner])


def test_sorting_uses_no_deprecated_pyarrow_function() -> None:
    ranks = pa.RecordBatch.from_pydict({"0": pa.array([2, None, 1])})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _order([ranks], "first").tolist() == [2, 0, 1]
        assert _order([ranks], "last").tolist() == [0, 2, 1]


def test_batch_spreads_rows_without_an_id(spark: "SparkSession") -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would merge small partitions
    try:
        rows = spark.range(1000, numPartitions=2).where("id < 500")  # all of them in one task
        df = rows.selectExpr("id AS offset", "NULL::string AS key")
        kept = dedup_batch(df, "key").select("offset", F.spark_partition_id().alias("at")).collect()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert sorted(row.offset for row in kept) == list(range(500))
    assert len({row["at"] for row in kept}) == 2


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


def test_fingerprint_equals_that_of_the_kernel(spark: "SparkSession") -> None:
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
    assert [row.two for row in found.collect()] == [*two[:2], None, None]  # a partial id is null
    assert dict(found.dtypes) == {"one": "binary", "two": "binary"}


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "keep is 'first' or 'last', not 'middle'",
         lambda df: batch(df, "id", keep="middle", order_by="number")),
        (AnalysisException, "offset", lambda df: batch(df, "id")),  # order_by is missing
        (AnalysisException, "nope", lambda df: batch(df, "nope", order_by="number")),
        (ValueError, "ids needs 1 column", lambda df: batch(df, [], order_by="number")),
        (TypeError, "ids holds names and columns, not int", lambda df: batch(df, [3], order_by="number")),
        (TypeError, "ids is a column, .* list of these, not NoneType", lambda df: batch(df, None, order_by="number")),
        (TypeError, "ids is a column, .* not bytes", lambda df: batch(df, b"id", order_by="number")),
        (TypeError, "ids is a column, .* not generator", lambda df: batch(df, (n for n in "a"), order_by="number")),
        (TypeError, "ids has an order, and a set has", lambda df: batch(df, {"id", "part"}, order_by="number")),
        (TypeError, r"ids takes no directions \(Column<'number DESC", lambda df: batch(df, F.desc("number"))),
        (TypeError, "order_by takes no directions .*keep='last', or negate",
         lambda df: batch(df, "id", order_by=[F.desc("number")])),
        (TypeError, "order_by takes no directions", lambda df: batch(df, "id", order_by=F.asc("number") + 1)),
        (TypeError, "order_by .* each row, and .*max.* is an aggregate",
         lambda df: batch(df, "id", order_by=F.max("number"))),
        (TypeError, "order_by cannot be of type variant",
         lambda df: batch(df, "id", order_by=F.parse_json(F.lit("1")))),
        (TypeError, "ids compares strings as bytes, .* collation UTF8_LCASE: cast",
         lambda df: batch(df, F.collate("id", "UTF8_LCASE"), order_by="number")),
        (TypeError, "order_by compares strings as bytes",
         lambda df: batch(df, "id", order_by=F.collate("id", "UNICODE"))),
        (TypeError, "an id cannot be of type double", lambda df: batch(df, F.lit(1.5), order_by="number")),
        (TypeError, "order_by cannot be of type array", lambda df: batch(df, "id", order_by=F.array("id"))),
        (ValueError, "buckets is 1 to 4096, not 0", lambda df: batch(df, "id", order_by="number", buckets=0)),
        (ValueError, "rename id", lambda df: batch(df.select("id", "id"), "part", order_by="part")),
        (ValueError, "for a table there is dedup_batch", lambda df: stream_of(df, "id", store="/ids")),
        (TypeError, "store", lambda df: stream_of(df, "id")),
        (TypeError, "marks", lambda df: offsets(df, topic="id", partition="part", offset="number")),
        (TypeError, "marks is a mapping from PartitionKey to offset, not list", lambda df: marked(df, [])),
        (TypeError, r"marks are by PartitionKey\(.*\), not \('t', 0\)", lambda df: marked(df, {("t", 0): 6})),
        (TypeError, "the mark of t-0 is an int, not str", lambda df: marked(df, {KEY: "x"})),
        (TypeError, "the mark of t-0 is an int, not NoneType", lambda df: marked(df, {KEY: None})),
        (ValueError, "the mark of t-0 is 0 to .*, not 9223372036854775808", lambda df: marked(df, {KEY: 2**63})),
        (ValueError, "the mark of t-0 is 0 to .*, not -1", lambda df: marked(df, {KEY: -1})),
        (TypeError, "the partition in .* is an int, not str", lambda df: marked(df, {KEY._replace(partition="0"): 1})),
        (AnalysisException, "topic", lambda df: offsets(df, {}, partition="part", offset="number")),
        (TypeError, "offset is an integer, not string",
         lambda df: offsets(df, {}, topic="id", partition="part", offset="id")),
        (TypeError, "topic is a string, not int",
         lambda df: offsets(df, {}, topic="part", partition="part", offset="part")),
        (ValueError, "a seed is 0 to 4294967295, not -1", lambda df: fingerprint("id", seed=-1)),
        (ValueError, "fingerprint needs 1 column", lambda df: fingerprint()),
    ],
)  # fmt: skip
def test_bad_input_is_rejected_in_the_driver(
    spark: "SparkSession", error: type[Exception], match: str, call: Callable[["DataFrame"], Any]
) -> None:
    df = spark.createDataFrame([(1, "a", 2)], "number int, id string, part int")
    with pytest.raises(error, match=match):
        call(df)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "for a stream there is dedup_stream", lambda df, _: batch(df, "id", order_by="number")),
        (ValueError, "buckets is 1 to 4096, not 0", lambda df, at: stream_of(df, "id", store=at, buckets=0)),
        (TypeError, "buckets is an int, not str", lambda df, at: stream_of(df, "id", store=at, buckets="16")),
        (AnalysisException, "nope", lambda df, at: stream_of(df, "nope", store=at)),
        (TypeError, "ids .* is an aggregate", lambda df, at: stream_of(df, F.count("id"), store=at)),
        (TypeError, "ids .* makes several: select it first",
         lambda df, at: stream_of(df, ["id", F.explode(F.array("id", "part"))], store=at)),
        (TypeError, "event_time is a column or the name of one, not int",
         lambda df, at: stream_of(df, "id", store=at, horizon="1 hour", event_time=5)),
        (TypeError, "an id cannot be of type map", lambda df, at: stream_of(df, F.create_map("id", "id"), store=at)),
        (ValueError, "like '10 minutes'", lambda df, at: stream_of(df, "id", store=at, horizon="soon")),
        (ValueError, "at least a millisecond", lambda df, at: stream_of(df, "id", store=at, horizon="0 seconds")),
        (TypeError, "a timedelta or a str, not int", lambda df, at: stream_of(df, "id", store=at, horizon=10)),
        (ValueError, "there is none", lambda df, at: stream_of(df, "id", store=at, event_time="at")),
        (TypeError, "event_time is a timestamp, not int",
         lambda df, at: stream_of(df, "id", store=at, horizon="1 hour", event_time="part")),
        (TypeError, "store is the path of a folder, not int", lambda df, _: stream_of(df, "id", store=3)),
        (ValueError, "store is an absolute path", lambda df, _: stream_of(df, "id", store="s3://bucket/ids")),
        (ValueError, "rename __dedup_source",
         lambda df, at: stream_of(df.withColumn("__dedup_source", F.lit(1)), "id", store=at)),
    ],
)  # fmt: skip
def test_bad_input_of_a_stream_is_rejected_before_it_starts(
    stream: Stream, error: type[Exception], match: str, call: Callable[["DataFrame", Path], Any]
) -> None:
    df = stream.spark.readStream.schema(COLUMNS).parquet(str(stream.folder / "input"))
    with pytest.raises(error, match=match):
        call(df, stream.folder / "ids")
    assert not (stream.folder / "ids").exists()


def test_a_column_that_cannot_be_hashed_fails_the_query_by_name(spark: "SparkSession") -> None:
    with pytest.raises(PythonException, match="of Arrow type double cannot be hashed"):
        spark.range(1).select(fingerprint(F.lit(1.5))).collect()


def test_one_row_of_each_id_stays_with_large_arrow_types(spark: "SparkSession") -> None:
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(setting, "true")
    try:
        rows = [("a", b"1", 0), ("b", b"2", 1), ("a", b"3", 2)]
        df = spark.createDataFrame(rows, "id string, value binary, offset int")
        kept = dedup_batch(df, "id", keep="last").collect()
    finally:
        spark.conf.unset(setting)
    assert sorted((row.id, bytes(row.value)) for row in kept) == [("a", b"3"), ("b", b"2")]
