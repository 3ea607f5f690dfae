"""Kafka's partitions in Spark: where a client's partitioner would put each row's key.

Keys are string, binary, int (4 bytes big-endian) or bigint (8), as Kafka's serializers write them. A null key has no
partition, for a producer places it as it likes; an empty one is hashed. Spark's own hash functions put keys elsewhere.

The hash costs next to nothing, the way of a row to Python and back everything: `with_kafka_partition` is the cheapest
way, an Arrow UDF (`kafka_partition`) takes a third more, a pandas UDF more than that.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
)

from pykafka_core import kernels

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = [
    "kafka_partition",
    "kafka_partition_arrow",
    "kafka_partition_pandas",
    "repartition_by_kafka_key",
    "with_kafka_partition",
]

_KEY_TYPES = (StringType, BinaryType, IntegerType, LongType)
# What Spark's own hash refuses, or may refuse. As JSON it takes them.
_UNHASHABLE_TYPES = (MapType, VariantType, UserDefinedType)
# Spark's stubs know neither Arrow functions nor functions with arguments of type Any.
_arrow_udf: Any = arrow_udf
_pandas_udf: Any = pandas_udf


def kafka_partition(
    key: "Column | str", num_partitions: int, partitioner: kernels.Partitioner = "murmur2"
) -> "Column":
    """The partition of ``key`` in a topic of ``num_partitions``: an int, null for a null key.

    Args:
        key: A column of type string, binary, int or bigint.
        num_partitions: 1 to 2147483647.
        partitioner: As in `pykafka_core.kernels.partitions`: that of the clients that write the topic.

    Raises:
        ValueError, TypeError: No such partitioner or number of partitions. A key of another type is known only
            where the query runs, which then fails with a TypeError that names it.
    """
    assigned: Column = kafka_partition_arrow(num_partitions, partitioner)(key)
    return assigned


def kafka_partition_arrow(num_partitions: int, partitioner: kernels.Partitioner = "murmur2") -> Any:
    """`kafka_partition` as an Arrow UDF of one column, to register for SQL or to use often.

    Raises:
        ValueError, TypeError: As `kafka_partition`.
    """
    kernels.check_partitioner(num_partitions, partitioner)

    def kafka_partition(keys: pa.Array) -> pa.Array:
        return kernels.partitions(keys, num_partitions, partitioner)

    return _arrow_udf(kafka_partition, "int")


def kafka_partition_pandas(
    num_partitions: int, partitioner: kernels.Partitioner = "murmur2"
) -> Any:
    """`kafka_partition` as a pandas UDF of one column.

    Spark hands integers with nulls to pandas as floats, which cannot tell all of them apart: such keys make the query
    fail with a TypeError. The Arrow UDF takes them.

    Raises:
        ValueError, TypeError: As `kafka_partition`.
    """
    import pandas as pd

    kernels.check_partitioner(num_partitions, partitioner)

    def kafka_partition(keys: "pd.Series") -> "pd.Series":
        if isinstance(keys, pd.DataFrame):
            raise TypeError("a key cannot be a struct: cast it to what the topic's producers write")
        if keys.dtype.kind == "f":
            raise TypeError(
                "a key cannot be a float, as which pandas has integers with nulls too: "
                "use kafka_partition_arrow, or cast the key to string"
            )
        found = kernels.partitions(keys, num_partitions, partitioner)
        return found.to_pandas(types_mapper=pd.ArrowDtype)

    kafka_partition.__annotations__ = {"keys": pd.Series, "return": pd.Series}
    return _pandas_udf(kafka_partition, "int")


def with_kafka_partition(
    df: "DataFrame",
    key: str = "key",
    *,
    num_partitions: int,
    out: str | None = None,
    partitioner: kernels.Partitioner = "murmur2",
) -> "DataFrame":
    """Add a column with `kafka_partition` of the column ``key``.

    All columns pass through Python; where a table is wide and little of it is used, `kafka_partition` may be cheaper.
    A watermark does not: set it afterwards.

    Args:
        df: A table or a stream.
        key: As `kafka_partition`, by name.
        num_partitions: 1 to 2147483647.
        out: The new column's name; if there is such a column it is replaced. None: "partition", which must be free. The
            Kafka source has a column of this name, where each record was read, which other functions rely on.
        partitioner: As `kafka_partition`.

    Raises:
        ValueError: No such column, or two; a column "partition" and no ``out``; no such partitioner or number of
            partitions.
        TypeError: A key of another type; ``key`` or ``out`` is no name.
    """
    kernels.check_partitioner(num_partitions, partitioner)
    at = _position(df, key)
    _check_key(key, df.schema[at].dataType)
    fields = list(df.schema.fields)
    if out is None:
        out = _free_name(df)
    if not isinstance(out, str):
        raise TypeError(f"out is the name of a column, not {type(out).__name__}")
    # The place of the new column: that of the replaced one, of no width behind the last one otherwise.
    start = _position(df, out) if _positions(df, out) else len(fields)
    fields[start : start + 1] = [StructField(out, IntegerType())]

    def assign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = kernels.partitions(batch.column(at), num_partitions, partitioner)
            columns = batch.columns
            columns[start : start + 1] = [found]
            yield pa.RecordBatch.from_arrays(columns, names)

    names = [field.name for field in fields]
    return df.mapInArrow(assign, StructType(fields))


def repartition_by_kafka_key(
    df: "DataFrame",
    key: str,
    num_partitions: int,
    partitioner: kernels.Partitioner = "murmur2",
) -> "DataFrame":
    """Move each row to the Spark partition whose number is that of its key's Kafka partition.

    There are ``num_partitions`` of them then, so one task writes one Kafka partition, or holds all rows of a key. Rows
    without a key are spread by a hash of their other columns, the same way each time.

    Raises:
        ValueError: No such column, or two; no such partitioner or number of partitions.
        TypeError: A key of another type; ``key`` is no name.
    """
    at = _position(df, key)
    _check_key(key, df.schema[at].dataType)
    partition = kafka_partition(F.col(_quoted(key)), num_partitions, partitioner)
    spread = F.pmod(F.xxhash64(*_hashable(df)), F.lit(num_partitions))
    return df.repartitionById(num_partitions, F.coalesce(partition, spread.cast("int")))


def _hashable(df: "DataFrame") -> "list[Column]":
    """All columns that can be told by name, in a form that Spark's own hash takes."""
    return [
        column if _is_hashable(field.dataType) else F.to_json(F.struct(column))
        for field in df.schema
        if len(_positions(df, field.name)) == 1
        for column in [F.col(_quoted(field.name))]
    ]


def _is_hashable(kind: "DataType") -> bool:
    if isinstance(kind, ArrayType):
        return _is_hashable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_is_hashable(field.dataType) for field in kind)
    return not isinstance(kind, _UNHASHABLE_TYPES)


def _positions(df: "DataFrame", name: str) -> list[int]:
    """Where Spark would find columns of that name."""
    if df.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return [at for at, column in enumerate(df.columns) if column == name]
    return [at for at, column in enumerate(df.columns) if column.lower() == name.lower()]


def _position(df: "DataFrame", name: str) -> int:
    if not isinstance(name, str):
        raise TypeError(
            f"key is the name of a column, not {type(name).__name__}: give an expression a name by withColumn first"
        )
    found = _positions(df, name)
    if len(found) != 1:
        problem = f"{len(found)} columns" if found else "no column"
        raise ValueError(f"{problem} {name!r} in {df.columns}: rename or select first")
    return found[0]


def _free_name(df: "DataFrame") -> str:
    """The name of a partition column that takes no other's place."""
    if _positions(df, "partition"):
        raise ValueError(
            "there is a column partition: name the new one, such as out='kafka_partition', or say out='partition' to "
            "replace it (the Kafka source's tells where a record was read; ledgers and dedup_offsets need it)"
        )
    return "partition"


def _check_key(name: str, type_: "DataType") -> None:
    if not isinstance(type_, _KEY_TYPES):
        raise TypeError(
            f"column {name!r} is {type_.simpleString()}, and a key is string, binary, int or bigint: cast it to "
            "what the topic's producers write"
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
