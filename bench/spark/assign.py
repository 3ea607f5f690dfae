"""Kafka partitions in Spark, by each way to compute them: `python -m bench.spark.assign --help`.

A Parquet file of string keys of 12 to 28 bytes is read, assigned and dropped, by each way in turn,
round after round. The best of the rounds is printed: rows a second, and CPU time of the JVM and of
the Python workers in microseconds a row, which is more reliable on a busy machine. A first round,
which compiles the code, is ignored.

Spark's own `xxhash64` gives other partitions; it is the limit for work within the JVM. A UDF that
returns a constant is the limit for work in Python.
"""

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

from bench.spark_session import Figures, cpu_seconds, jvm_of, quiet_session
from spark_udfs import (
    kafka_partition,
    kafka_partition_pandas,
    with_kafka_partition,
)
from tests.pyx import twins

COUNT = 12
Way = Callable[[DataFrame], DataFrame]
# Spark's stubs declare neither Arrow functions nor functions with arguments of type Any.
_arrow_udf: Any = arrow_udf
_pandas_udf: Any = pandas_udf


def _constant(keys: pa.Array) -> pa.Array:
    return pa.array(np.zeros(len(keys), dtype=np.int32))


def _looped(keys: pd.Series) -> pd.Series:
    return pd.Series([twins.partition(key.encode(), COUNT) for key in keys], dtype="int32")


def _mmh3(keys: pd.Series) -> pd.Series:
    return pd.Series([(mmh3.hash(key) & 0x7FFFFFFF) % COUNT for key in keys], dtype="int32")


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _column(column: Any) -> Way:
    return lambda df: df.withColumn("partition", column)


WAYS: dict[str, Callable[[], Way]] = {
    "scan": lambda: lambda df: df,
    "xxhash64 in the JVM": lambda: _column(F.pmod(F.xxhash64("key"), F.lit(COUNT))),
    "constant, Arrow UDF": lambda: _column(_arrow_udf(_constant, "int")("key")),
    "kafka_partition": lambda: _column(kafka_partition("key", COUNT)),
    "kafka_partition, crc32": lambda: _column(kafka_partition("key", COUNT, "crc32")),
    "kafka_partition_pandas": lambda: _column(kafka_partition_pandas(COUNT)("key")),
    "identity, mapInArrow": lambda: lambda df: df.mapInArrow(_identity, df.schema),
    "with_kafka_partition": lambda: lambda df: with_kafka_partition(df, num_partitions=COUNT),
    "mmh3 of each, pandas UDF": lambda: _column(_pandas_udf(_mmh3, "int")("key")),
    "murmur2 in Python, pandas UDF": lambda: _column(_pandas_udf(_looped, "int")("key")),
}
RATIOS = [
    ("kafka_partition", "constant, Arrow UDF", 0.9),
    ("kafka_partition", "murmur2 in Python, pandas UDF", 8.0),
    ("kafka_partition", "mmh3 of each, pandas UDF", 2.5),
    ("kafka_partition", "xxhash64 in the JVM", 0.25),
    ("kafka_partition_pandas", "kafka_partition", 0.8),
]


def write_keys(path: Path, rows: int) -> None:
    source = random.Random(1)
    keys = [
        "user-" + "x" * source.randrange(17) + f"{source.randrange(10**7):07}" for _ in range(rows)
    ]
    pq.write_table(pa.table({"key": keys}), path, row_group_size=-(-rows // 4))


def timed(jvm: int, df: DataFrame) -> Figures:
    begun = Figures(time.monotonic(), *cpu_seconds(jvm))
    df.write.format("noop").mode("overwrite").save()
    return Figures(time.monotonic(), *cpu_seconds(jvm)).since(begun)


def measure(spark: SparkSession, keys: Path, rounds: int, names: list[str]) -> dict[str, Figures]:
    """Return the best value of each figure for each way."""
    jvm = jvm_of(spark)
    results: dict[str, list[Figures]] = defaultdict(list)
    for number in range(rounds + 1):
        for name in names:
            figures = timed(jvm, WAYS[name]()(spark.read.parquet(str(keys))))
            if number:
                results[name].append(figures)
    return {name: Figures(*map(min, zip(*rows, strict=True))) for name, rows in results.items()}


def report(best: dict[str, Figures], rows: int) -> None:
    print(f"{'best of the rounds':32}{'M rows/s':>9}{'JVM µs/row':>12}{'Python µs/row':>15}")
    for name, figures in best.items():
        jvm, python = (1e6 * seconds / rows for seconds in figures[1:])
        print(f"{name:32}{rows / figures.wall / 1e6:9.2f}{jvm:12.2f}{python:15.3f}")
    for ours, theirs, aim in RATIOS:
        if not {ours, theirs} <= best.keys():
            continue
        cpu = sum(best[theirs][1:]) / sum(best[ours][1:])
        wall = best[theirs].wall / best[ours].wall
        print(f"{ours} is {cpu:.2f} x {theirs} by CPU, {wall:.2f} x by the clock; aim {aim}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", action="append", choices=WAYS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spark = quiet_session(kafka=False, **{"spark.local.dir": name})
        try:
            keys = Path(name) / "keys.parquet"
            write_keys(keys, asked.rows)
            report(measure(spark, keys, asked.rounds, asked.only or [*WAYS]), asked.rows)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
