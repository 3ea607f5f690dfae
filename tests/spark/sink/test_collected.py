"""Batches of any size reach the driver in bounded memory: small ones at once, others in chunks."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from pykafka_core.errors import ConsumerError
from pykafka_core.idempotent import SQLiteLedger
from spark_udfs.sink import IdempotentSink
from spark_udfs.sink.rows import collect, micro_batch
from tests.support.brokers import Serve
from tests.support.spark.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = (
    "cast(id AS string) word",
    "cast(cast(id AS string) AS binary) bytes",
    "timestamp_micros(id) at",
    "array(id, null) list",
    "named_struct('a', id, 'b', null) struct",
    "if(id % 3 = 0, null, id) maybe",
)


def as_it_is(df: "DataFrame") -> "DataFrame":
    return df


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a hundred rows are many chunks."""
    monkeypatch.setattr(collect, "INLINE_BYTES", 1)
    monkeypatch.setattr(collect, "_TASK_BYTES_MIN", 1)
    monkeypatch.setattr(collect, "_PIECE_BYTES", 512)
    monkeypatch.setattr(collect, "CHUNK_BYTES", 2048)


@pytest.mark.parametrize("tasks", [1, 3])
def test_small_batch_equals_to_arrow(spark: "SparkSession", tasks: int) -> None:
    df = spark.range(100, numPartitions=tasks).selectExpr("id", *TYPES)
    with collect.collected(df, tasks, as_it_is) as table:
        assert table.equals(df.toArrow())


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("tasks", [1, 3])
def test_large_batch_equals_to_arrow_in_the_same_order(spark: "SparkSession", tasks: int) -> None:
    df = spark.range(1000, numPartitions=tasks).selectExpr("id", *TYPES)
    with collect.collected(df, tasks, as_it_is) as table:
        assert table.equals(df.toArrow())


@pytest.mark.usefixtures("tiny")
def test_a_batch_with_one_large_task_among_empty_ones(spark: "SparkSession") -> None:
    df = spark.range(1000, numPartitions=4).where("id >= 750")
    with collect.collected(df, 4, as_it_is) as table:
        assert table["id"].to_pylist() == list(range(750, 1000))


def test_a_batch_without_rows_has_its_columns(spark: "SparkSession") -> None:
    df = spark.range(10).where("id < 0").selectExpr("id", *TYPES)
    with collect.collected(df, 1, as_it_is) as table:
        assert table.num_rows == 0
        assert table.schema.equals(df.toArrow().schema)


NULLABLE = "from_json(text, 'n long, l array<long>, s struct<m: map<string, long>>')"
FILTERS = {
    "not null": "text is not null and read.n is not null",
    "one value": "length(text) = 2",
    "no rows": "text is not null and length(text) = 1",
    "never": "1 = 0",
}


def as_one_task(df: "DataFrame") -> "DataFrame":
    return df.coalesce(1)


@pytest.mark.parametrize("large_types", ["false", "true"])
@pytest.mark.parametrize("where", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("inline_bytes", [1, 1 << 20])
def test_columns_are_those_of_the_query_even_if_the_optimizer_knows_more(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_types: str,
    where: str,
    inline_bytes: int,
) -> None:
    """The optimizer narrows nullability, so tasks have other types than the query."""
    monkeypatch.setattr(collect, "INLINE_BYTES", inline_bytes)
    monkeypatch.setattr(collect, "_TASK_BYTES_MIN", 1)
    text = "if(id % 7 = 0, null, if(id % 5 = 0, '{}', to_json(named_struct('n', id)))) text"
    file = str(tmp_path / "file")
    spark.range(100, numPartitions=3).selectExpr("id", text).write.parquet(file)
    df = spark.read.parquet(file).selectExpr(
        "id", "text", f"{NULLABLE} read", "array(named_struct('id', text)) list"
    )
    df = df.where(where)
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large_types)
    try:
        with collect.collected(df, 3, as_one_task) as table:
            wanted = df.toArrow()
            assert table.schema.equals(wanted.schema)
            assert table.equals(wanted)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


@pytest.mark.usefixtures("tiny")
def test_no_job_of_a_chunk_is_kept_until_the_batch_is_done(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Spark keeps a SQL query's jobs, with results, until its end, so the batch would be kept."""
    kept: list[int] = []
    context: Any = spark.sparkContext

    def batch(df: "DataFrame", batch_id: int) -> None:
        before = context.getLocalProperty("spark.sql.execution.id")
        with collect.collected(df, 1, as_it_is) as table:
            jobs_of_queries = context._jsc.sc().dagScheduler().activeQueryToJobs().entrySet()
            kept.append(sum(entry.getValue().size() for entry in jobs_of_queries))
            assert table.num_rows > 100
        assert context.getLocalProperty("spark.sql.execution.id") == before

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load()
    query = rows.writeStream.foreachBatch(batch).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    assert kept
    assert max(kept) <= 2  # the job that finds that the batch is large, and the one for the sizes


@pytest.mark.usefixtures("tiny")
def test_chunks_are_fetched_one_by_one(spark: "SparkSession") -> None:
    """No job returns more than a chunk, so spark.driver.maxResultSize does not limit the batch."""
    df = spark.range(2000, numPartitions=2).selectExpr("id", "repeat('x', 100) text")
    batches = collect._in_chunks(df, collect._schema_of(df), collect._sizes(df, 2))
    rows = next(batches)
    assert rows.num_rows <= 5
    left = sum(batch.num_rows for batch in batches)
    assert rows.num_rows + left == 2000


def test_pieces_are_combined_into_chunks_of_similar_size() -> None:
    at = [0, 1, 2, (2 << 33) + 0, (2 << 33) + 1]
    # Chunks of two pieces and one piece from the first task, of one piece each from the third.
    assert collect._chunks(at, [40, 40, 40, 500, 500], 100) == (
        [0, 2, 2],
        [2, 1, 1],
        [1, 2, 3],
        4,
    )
    assert collect._chunks([], [], 100) == ([], [], [], 0)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("first_time", [(0, 60, 60), (60, 0, 1000), (1000, 60, 0), (0, 0, 0)])
def test_rows_that_appear_only_in_the_second_run_of_a_query_are_complete(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first_time: tuple[int, int, int],
) -> None:
    counted = tmp_path / "counted"
    put_together = collect._chunks

    def after_the_first_time(at: list[int], sizes: list[int], chunk_bytes: int) -> Any:
        counted.touch()
        return put_together(at, sizes, chunk_bytes)

    def growing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            few = first_time[batch["id"][0].as_py() // 1000]
            yield batch if counted.exists() else batch.slice(0, few)

    monkeypatch.setattr(collect, "_chunks", after_the_first_time)
    df = spark.range(3000, numPartitions=3).mapInArrow(growing, "id bigint")
    df = df.selectExpr("id", "repeat('x', 700) text")  # a block of each row, in two pieces
    batches = collect._in_chunks(df, collect._schema_of(df), collect._sizes(df, 3))
    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(3000))


@pytest.mark.usefixtures("tiny")
def test_task_that_is_repeated_between_two_chunks_is_an_error(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor with its shuffled rows was lost. In another order, blocks have other rows."""
    df = spark.range(1000, numPartitions=2).selectExpr("id", "repeat('x', 100) text")
    rows_of = collect._rows_of

    def run_again(pieces: collect.Pieces) -> collect.Batches:
        for number, (at, first_run, ends, rows) in enumerate(pieces):
            again.append((at, first_run + (number > 50), ends, rows))
        return iter(())

    again: list[Any] = []
    monkeypatch.setattr(collect, "_rows_of", run_again)
    assert not list(collect._in_chunks(df, collect._schema_of(df), collect._sizes(df, 2)))
    with pytest.raises(ConsumerError, match="start the query again"):
        list(rows_of(iter(again)))
    right = [(at, 0, ends, rows) for at, _, ends, rows in again]
    assert sum(batch.num_rows for batch in rows_of(iter(right))) == 1000


@pytest.fixture
def result_max(spark: "SparkSession") -> Iterator[Callable[[str], None]]:
    """Sets spark.driver.maxResultSize, which the scheduler reads for each job."""
    name = "spark.driver.maxResultSize"
    context: Any = spark.sparkContext
    conf = context._jsc.sc().conf()
    before = conf.get(name, "1g")
    yield lambda size: conf.set(name, size)
    conf.set(name, before)


MEDIUM = {
    "two tasks": (2, 400),
    "a task each": (12, 400),
    "a row larger than the limit": (2, 1_500_000),
    "a few large rows": (1, 20_000),
}


@pytest.mark.parametrize("known_tasks", [1, 12])
@pytest.mark.parametrize(("tasks", "size"), MEDIUM.values(), ids=MEDIUM)
def test_batches_of_any_size_pass_a_small_limit_on_results(
    spark: "SparkSession",
    result_max: Callable[[str], None],
    tasks: int,
    size: int,
    known_tasks: int,
) -> None:
    """Regression: batches between the limit and the inline size failed; larger ones passed."""
    rows = 6000 if size < 1000 else 200 if size < 100_000 else 3
    df = spark.range(rows, numPartitions=tasks)
    df = df.selectExpr("id", f"rpad(cast(id AS string), if(id % 3 = 0, {size}, 9), 'x') text")
    wanted = df.toArrow()
    result_max("400k")
    with collect.collected(df, known_tasks, as_it_is) as table:
        assert table.equals(wanted)


def test_more_tasks_than_known_are_not_an_error_even_if_each_returns_little(
    spark: "SparkSession", result_max: Callable[[str], None]
) -> None:
    df = spark.range(4000, numPartitions=40).selectExpr("id", "repeat('x', 300) text")
    wanted = df.toArrow()
    result_max("500k")
    assert collect._handed_over(df, as_pieces(df, tasks=1)) is None
    with collect.collected(df, 1, as_it_is) as table:
        assert table.equals(wanted)


def as_pieces(df: "DataFrame", tasks: int) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    return collect._pieces_within(collect._schema_of(df), collect._sizes(df, tasks))


def test_failure_unrelated_to_the_limit_is_raised(spark: "SparkSession") -> None:
    df = spark.range(1).selectExpr("raise_error('not today') AS text")
    with pytest.raises(Exception, match="not today"), collect.collected(df, 1, as_it_is):
        pass


@pytest.mark.parametrize("limit", ["0", "1g", "16m"])
def test_job_returns_at_most_half_of_the_limit(
    spark: "SparkSession", result_max: Callable[[str], None], limit: str
) -> None:
    result_max(limit)
    usable = {"0": 1 << 60, "1g": 1 << 29, "16m": 8 << 20}[limit]
    for tasks in (1, 7, 100_000):
        sizes = collect._sizes(spark.range(1), tasks)
        assert sizes.share == min(max(256 << 10, (64 << 20) // tasks), usable // tasks)
        assert (sizes.chunk, sizes.piece) == (min(16 << 20, usable), 1 << 20)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SQLiteLedger]:
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection, connection:
        connection.execute("CREATE TABLE effects (value TEXT)")
    with SQLiteLedger(tmp_path / "orders.db") as ledger:
        yield ledger


@pytest.mark.parametrize("where", ["value is not null", "partition = 0"])
@pytest.mark.parametrize("large_types", ["false", "true"])
def test_filter_inside_the_function_is_not_an_error(
    serve: Serve,
    spark: "SparkSession",
    database: SQLiteLedger,
    tmp_path: Path,
    where: str,
    large_types: str,
) -> None:
    """Regression: every batch failed: the tasks' columns had no nulls, those of the query had."""
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large_types)
    with serve() as broker:
        broker.create_topic("orders")
        sent = [Sent(0, f"value {n}", f"id {n}") for n in range(20)]
        send(broker.bootstrap_servers, "orders", sent)
        sink = IdempotentSink(
            database, "g", "id", effect=insert_values("?"), brokers=broker.bootstrap_servers
        )
        df = stream(spark, broker.bootstrap_servers, "orders").selectExpr(*COLUMNS)
        df = df.withColumn("id", F.expr("headers[0].value"))
        try:
            run(
                df,
                tmp_path / "c",
                lambda df, batch_id: sink.foreach_batch(df.where(where), batch_id),
            )
        finally:
            spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection:
        found = [value for (value,) in connection.execute("SELECT value FROM effects")]
    assert found == [one.value for one in sent]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("ids", [None, "id"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_large_batch_counts_once_in_parts(
    serve: Serve,
    spark: "SparkSession",
    database: SQLiteLedger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ids: str | None,
    shuffled: bool,
) -> None:
    """Its rows arrive in log order, part by part, in one transaction, after any change of them."""
    parts_of = micro_batch.Rows.parts
    monkeypatch.setattr(micro_batch.Rows, "parts", lambda rows: parts_of(rows, 4096))
    chooser = random.Random(7)
    sent = [Sent(chooser.randrange(3), f"value {n:04}", f"id {n}") for n in range(600)]
    parts: list[list[tuple[int, int]]] = []

    def effect(connection: sqlite3.Connection, rows: pa.Table) -> None:
        parts.append(
            list(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))
        )
        insert_values("?")(connection, rows)

    with serve() as broker:
        broker.create_topic("orders", partitions=3)
        send(broker.bootstrap_servers, "orders", sent + sent[:200])
        sink = IdempotentSink(database, "g", ids, effect=effect, brokers=broker.bootstrap_servers)
        df = stream(spark, broker.bootstrap_servers, "orders").selectExpr(*COLUMNS)
        df = df.withColumn("id", F.expr("headers[0].value"))
        if shuffled:
            df = df.repartition(2, "value")
        for checkpoint in ("first", "new"):
            run(df, tmp_path / checkpoint, sink.foreach_batch)
    assert len(parts) > 2
    places = [place for part in parts for place in part]
    assert places == sorted(places)
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection:
        found = [value for (value,) in connection.execute("SELECT value FROM effects")]
    expected = sent if ids else sent + sent[:200]
    assert sorted(found) == sorted(one.value for one in expected)
    assert sink.statistics().redelivered == 800
