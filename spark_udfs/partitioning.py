"""Kafka partitions in Spark: the partition that a client's partitioner would choose for each key.

Keys are string, binary, int (4 bytes big-endian) or bigint (8 bytes), as Kafka's serializers write
them. A null key has no partition, because a producer may choose any; an empty key is hashed.
Spark's own hash functions give different partitions.

The hash is cheap; moving the rows to Python and back dominates the cost. `with_kafka_partition` is
the cheapest way, an Arrow UDF (`kafka_partition`) costs a third more, and a pandas UDF even more.
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
# Types that Spark's own hash rejects, or may reject. They are converted to JSON first.
_UNHASHABLE_TYPES = (MapType, VariantType, UserDefinedType)
# Spark's stubs declare neither Arrow functions nor functions with arguments of type Any.
_arrow_udf: Any = arrow_udf
_pandas_udf: Any = pandas_udf


def kafka_partition(
    key: "Column | str", num_partitions: int, partitioner: kernels.Partitioner = "murmur2"
) -> "Column":
    """Return the partition of ``key`` in a topic of ``num_partitions``: int, null for a null key.

    Args:
        key: A column of type string, binary, int or bigint.
        num_partitions: 1 to 2147483647.
        partitioner: See `pykafka_core.kernels.partitions`; use the one of the topic's producers.

    Raises:
        ValueError, TypeError: Unknown partitioner, or an invalid number of partitions. The type of
            the key is only known where the query runs; an unsupported one fails the query with a
            TypeError that names it.
    """
    assigned: Column = kafka_partition_arrow(num_partitions, partitioner)(key)
    return assigned


def kafka_partition_arrow(num_partitions: int, partitioner: kernels.Partitioner = "murmur2") -> Any:
    """Return `kafka_partition` as an Arrow UDF of one column, to register for SQL or to reuse.

    Raises:
        ValueError, TypeError: See `kafka_partition`.
    """
    kernels.check_partitioner(num_partitions, partitioner)

    def kafka_partition(keys: pa.Array) -> pa.Array:
        return kernels.partitions(keys, num_partitions, partitioner)

    return _arrow_udf(kafka_partition, "int")


def kafka_partition_pandas(
    num_partitions: int, partitioner: kernels.Partitioner = "murmur2"
) -> Any:
    """Return `kafka_partition` as a pandas UDF of one column.

    Spark passes integer columns with nulls to pandas as floats, which cannot represent all values;
    such keys fail the query with a TypeError. Use the Arrow UDF for them.

    Raises:
        ValueError, TypeError: See `kafka_partition`.
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

    All columns pass through Python. If a table is wide and few columns are used, `kafka_partition`
    may be cheaper. A watermark is lost: set it afterwards.

    Args:
        df: A table or a stream.
        key: Name of the key column; for its types see `kafka_partition`.
        num_partitions: 1 to 2147483647.
        out: Name of the new column; an existing column of this name is replaced. None: "partition",
            which must not exist. The Kafka source has a column of this name, the partition that
            each record was read from, which other functions need.
        partitioner: See `kafka_partition`.

    Raises:
        ValueError: The key column does not exist or is ambiguous; a column "partition" exists and
            ``out`` is None; unknown partitioner or invalid number of partitions.
        TypeError: The key has an unsupported type; ``key`` or ``out`` is not a string.
    """
    kernels.check_partitioner(num_partitions, partitioner)
    at = _position(df, key)
    _check_key(key, df.schema[at].dataType)
    fields = list(df.schema.fields)
    if out is None:
        out = _free_name(df)
    if not isinstance(out, str):
        raise TypeError(f"out is the name of a column, not {type(out).__name__}")
    # Index of the replaced column; an empty slice after the last column if none is replaced.
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
    """Move each row to the Spark partition that has the number of its key's Kafka partition.

    The result has ``num_partitions`` partitions, so one task holds all rows of a key and can write
    one Kafka partition. Rows with a null key are distributed by a hash of their columns, which is
    the same on each run.

    Raises:
        ValueError: The key column does not exist or is ambiguous; unknown partitioner or invalid
            number of partitions.
        TypeError: The key has an unsupported type; ``key`` is not a string.
    """
    at = _position(df, key)
    _check_key(key, df.schema[at].dataType)
    partition = kafka_partition(F.col(_quoted(key)), num_partitions, partitioner)
    spread = F.pmod(F.xxhash64(*_hashable(df)), F.lit(num_partitions))
    return df.repartitionById(num_partitions, F.coalesce(partition, spread.cast("int")))


def _hashable(df: "DataFrame") -> "list[Column]":
    """Return all columns with a unique name, converted to types that Spark's own hash accepts."""
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
    """Return the indexes of the columns that Spark would resolve ``name`` to."""
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
    """Return the name of the partition column if it is not in use."""
    if _positions(df, "partition"):
        raise ValueError(
            "there is a column partition: name the new one, such as out='kafka_partition', or use out='partition' to "
            "replace it (the Kafka source's is where a record was read; ledgers and dedup_offsets need it)"
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
