"""Rows get the partitions that the clients' partitioners choose, by every way through Python."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_udfs
from pykafka_core import kernels
from pykafka_core.kernels import Partitioner
from tests.support.patience import seconds

COUNT = 12
ROWS = 5_000
KINDS = ("string", "binary", "int", "bigint")
WAYS: dict[str, Callable[[int, Partitioner], Callable[[str], Column]]] = {
    "default": lambda count, name: lambda key: spark_udfs.kafka_partition(key, count, name),
    "arrow": spark_udfs.kafka_partition_arrow,
    "pandas": spark_udfs.kafka_partition_pandas,
}


def key_of(row: int, kind: str) -> Any:
    """Return a unique key; lengths vary, every seventh is null, the first one is empty or 0."""
    if row % 7 == 6:
        return None
    number = row * 7919 * (-1) ** row
    text = "" if row == 0 else f"é{number}" * (row % 4 + 1)
    return {"string": text, "binary": text.encode(), "int": number, "bigint": number << 20}[kind]


def plain(key: Any, kind: str) -> bytes | None:
    if isinstance(key, int):
        return key.to_bytes(4 if kind == "int" else 8, "big", signed=True)
    return key.encode() if isinstance(key, str) else key


def rows(spark: SparkSession, kind: str) -> DataFrame:
    keys = [(row, key_of(row, kind)) for row in range(ROWS)]
    return spark.createDataFrame(keys, f"row int, key {kind}")


def expected(kind: str, partitioner: Partitioner = "murmur2") -> dict[int, int | None]:
    keys = [plain(key_of(row, kind), kind) for row in range(ROWS)]
    return dict(enumerate(kernels.partitions(keys, COUNT, partitioner).to_pylist()))


def found(df: DataFrame, column: str = "partition") -> dict[int, int | None]:
    return {row["row"]: row[column] for row in df.select("row", column).collect()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_api_equals_the_kernel(spark: SparkSession, kind: str) -> None:
    # pandas cannot hold integers with nulls.
    ways = {name: way for name, way in WAYS.items() if name != "pandas" or kind in KINDS[:2]}
    df = rows(spark, kind).transform(spark_udfs.with_kafka_partition, num_partitions=COUNT)
    for name, way in ways.items():
        for partitioner in kernels.PARTITIONERS:
            df = df.withColumn(f"{name}-{partitioner}", way(COUNT, partitioner)("key"))
    table: Any = df.drop("key").toPandas()
    collected = table.set_index("row")
    wanted = {partitioner: expected(kind, partitioner) for partitioner in kernels.PARTITIONERS}
    assert set(df.drop("key", "row").dtypes) == {
        (name, "int") for name in ("partition", *collected.columns)
    }
    for column in collected:
        partitioner = column.partition("-")[2] or "murmur2"
        values = {row: None if at != at else int(at) for row, at in collected[column].items()}
        assert values == wanted[partitioner], column


@pytest.mark.parametrize("kind", KINDS[2:])
def test_pandas_accepts_integers_without_nulls(spark: SparkSession, kind: str) -> None:
    df = rows(spark, kind).where("key IS NOT NULL")
    assigned = found(df.withColumn("partition", WAYS["pandas"](COUNT, "murmur2")("key")))
    assert assigned == {row: at for row, at in expected(kind).items() if at is not None}


def test_integers_with_nulls_in_pandas_fail_with_the_alternative(spark: SparkSession) -> None:
    df = rows(spark, "bigint").withColumn("partition", WAYS["pandas"](COUNT, "murmur2")("key"))
    with pytest.raises(PythonException, match="use kafka_partition_arrow, or cast"):
        df.collect()


def test_udf_works_in_sql(spark: SparkSession) -> None:
    spark.udf.register("kafka_partition", spark_udfs.kafka_partition_arrow(COUNT))
    rows(spark, "string").createOrReplaceTempView("keyed")
    assert (
        found(spark.sql("SELECT row, kafka_partition(key) AS partition FROM keyed"))
    ) == expected("string")


def test_existing_column_is_replaced_in_its_position(spark: SparkSession) -> None:
    df = rows(spark, "string").select("row", F.lit("old").alias("Partition"), "key")
    assigned = spark_udfs.with_kafka_partition(df, num_partitions=COUNT, out="partition")
    assert assigned.columns == ["row", "partition", "key"]
    assert found(assigned) == expected("string")


def test_a_partition_column_is_not_replaced_unless_it_is_named(spark: SparkSession) -> None:
    df = rows(spark, "string").withColumn("Partition", F.lit(0))
    with pytest.raises(ValueError, match=r"there is a column partition: .*out='kafka_partition'"):
        spark_udfs.with_kafka_partition(df, num_partitions=COUNT)


def test_names_are_resolved_as_spark_resolves_them(spark: SparkSession) -> None:
    df = rows(spark, "string")
    assigned = spark_udfs.with_kafka_partition(df, "KEY", num_partitions=COUNT, out="p")
    assert found(assigned, "p") == expected("string")
    odd = spark_udfs.repartition_by_kafka_key(
        df.withColumnRenamed("key", "the `key`.x"), "The `key`.x", COUNT
    )
    assert odd.columns == ["row", "the `key`.x"]
    assert odd.count() == ROWS


@pytest.mark.parametrize("kind", ["string", "bigint"])
def test_row_is_in_the_spark_partition_with_the_number_of_its_kafka_partition(
    spark: SparkSession, kind: str
) -> None:
    df = rows(spark, kind).withColumn("extra", F.create_map(F.lit("a"), F.lit("b")))
    parted = spark_udfs.repartition_by_kafka_key(df, "key", COUNT)
    assert parted.columns == df.columns
    assert parted.rdd.getNumPartitions() == COUNT
    placed = found(parted.withColumn("partition", F.spark_partition_id()))
    wanted = expected(kind)
    assert {row: at for row, at in placed.items() if wanted[row] is not None} == {
        row: at for row, at in wanted.items() if at is not None
    }
    # Rows without a key are spread deterministically.
    lonely = {row: at for row, at in placed.items() if wanted[row] is None}
    assert set(lonely.values()) == set(range(COUNT))
    again = found(parted.withColumn("partition", F.spark_partition_id()))
    assert again == placed


@pytest.mark.parametrize(
    "other",
    [
        "array(id)",
        "named_struct('x', id)",
        "map('k', id)",
        "array(map(id, NULL))",
        "parse_json(CAST(id AS string))",
        "named_struct('x', parse_json(CAST(id AS string)), 'y', map('k', 1))",
        "timestamp_ntz '2020-01-01' + make_dt_interval(CAST(id AS int))",
        "make_dt_interval(CAST(id AS int))",
        "make_interval(CAST(id AS int))",
        "CAST(id % 256 AS string) COLLATE UTF8_LCASE",
    ],
)
def test_rows_without_a_key_are_spread_by_columns_of_every_type(
    spark: SparkSession, other: str
) -> None:
    df = spark.range(400).selectExpr("NULL::string AS key", f"{other} AS other")
    parted = spark_udfs.repartition_by_kafka_key(df, "key", 4)
    counts = parted.groupBy(F.spark_partition_id()).count().collect()
    assert len(counts) == 4
    assert all(count > 50 for _, count in counts)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_partitions": 0}, ValueError, "num_partitions is 1 to 2147483647, not 0"),
        ({"num_partitions": "3"}, TypeError, "num_partitions is an int, not str"),
        ({"partitioner": "md5"}, ValueError, "'md5'; there are murmur2, crc32, fnv1a"),
        ({"key": None}, TypeError, "key is the name of a column, not NoneType"),
        ({"key": ["key"]}, TypeError, "key is the name of a column, not list"),
        ({"key": "value"}, ValueError, r"no column 'value' in \['row', 'key', 'KEY2', 'half'\]"),
        ({"key": "half"}, TypeError, "column 'half' is double, and a key is string, binary"),
    ],
)
def test_invalid_arguments_are_rejected_in_the_driver(
    spark: SparkSession, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    df = spark.range(1).selectExpr("id AS row", "'a' AS key", "'b' AS KEY2", "0.5D AS half")
    given = {"key": "key", "num_partitions": 3, **arguments}
    with pytest.raises(error, match=text):
        spark_udfs.with_kafka_partition(df, **given)
    with pytest.raises(error, match=text):
        spark_udfs.repartition_by_kafka_key(df, **given)
    if given["key"] == "key":
        for way in (spark_udfs.kafka_partition_arrow, spark_udfs.kafka_partition_pandas):
            with pytest.raises(error, match=text):
                way(given["num_partitions"], given.get("partitioner", "murmur2"))


def test_expression_in_place_of_a_column_name_is_rejected(spark: SparkSession) -> None:
    anything: Any = spark_udfs
    df = rows(spark, "string")
    with pytest.raises(
        TypeError, match=r"key is the name of a column, not Column: give .* withColumn"
    ):
        anything.with_kafka_partition(df, F.col("key"), num_partitions=7)
    with pytest.raises(TypeError, match="key is the name of a column, not Column"):
        anything.repartition_by_kafka_key(df, F.col("key"), 7)
    with pytest.raises(TypeError, match="out is the name of a column, not int"):
        anything.with_kafka_partition(df, num_partitions=7, out=5)


def test_pandas_rejects_a_struct_by_name(spark: SparkSession) -> None:
    keys = spark.range(1).select(F.struct("id").alias("key"))
    df = keys.select(spark_udfs.kafka_partition_pandas(COUNT)("key"))
    with pytest.raises(PythonException, match="a key cannot be a struct"):
        df.collect()


def test_two_columns_of_one_name_are_rejected(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr("'a' AS key", "'b' AS KEY")
    with pytest.raises(ValueError, match=r"2 columns 'key' in .*: rename or select first"):
        spark_udfs.with_kafka_partition(df, num_partitions=3)


def test_key_of_an_unsupported_type_fails_by_its_type(spark: SparkSession) -> None:
    df = spark.range(1).select(spark_udfs.kafka_partition(F.lit(0.5), COUNT))
    with pytest.raises(PythonException, match="type double cannot be hashed; cast it to string"):
        df.collect()


def test_stream_gets_the_same_partitions_as_a_table(spark: SparkSession, tmp_path: Any) -> None:
    rows(spark, "string").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("row int, key string").parquet(str(tmp_path / "in"))
    query = (
        stream.transform(spark_udfs.with_kafka_partition, num_partitions=COUNT)
        .writeStream.format("memory")
        .queryName("assigned")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    assert query.awaitTermination(round(seconds(240)))
    assert found(spark.table("assigned")) == expected("string")
