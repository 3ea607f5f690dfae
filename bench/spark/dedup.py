"""Deduplication of a stream, ours compared with Spark's: `python -m bench.spark.dedup --help`.

The same Parquet files, with 30 % duplicates of 20-byte ids, go into the `noop` sink in four
micro-batches, by each way in turn, round after round. The best of the rounds is printed: wall time,
and CPU time of the JVM and of the Python workers in microseconds for each row. On a busy machine,
only CPU times (without the JVM's compilers) are reliable. A first round is ignored.

**Garbage.** A state store keeps its maps in the JVM's heap after its query has ended, and their
collection would be counted for the next way: half a microsecond a row and more, at random. So
before each way, stores are unloaded and all garbage is collected, untimed, in a heap of constant
size. The collectors' time is part of the JVM's time, and is also printed separately.
"""

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from bench.spark_session import TICKS_A_SECOND, cpu_seconds, jvm_of, quiet_session
from pykafka_core.idempotent import PartitionKey
from spark_udfs import dedup_batch, dedup_offsets, dedup_stream

BATCHES, FILES_PER_BATCH = 4, 2
STORE = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state."
HEAP, ROCKSDB = STORES + "HDFSBackedStateStoreProvider", STORES + "RocksDBStateStoreProvider"
HEAP_SIZE = "3g"
COMPILERS, COLLECTORS = ("C1 Compiler", "C2 Compiler"), ("GC ", "G1 ")
"""Prefixes of the names of the JVM's threads."""
COLUMNS = "id string, offset bigint, value double, at timestamp"


class Figures(NamedTuple):
    """Seconds of wall time, and of CPU time: JVM, its collectors (included), Python workers."""

    wall: float
    jvm: float
    collectors: float
    python: float

    def since(self, begun: Self) -> "Figures":
        return Figures(*(end - start for start, end in zip(begun, self, strict=True)))


class Way(NamedTuple):
    """A way to remove duplicates of a frame with a new folder; ``unique`` if it removes them."""

    apply: Callable[[DataFrame, str], DataFrame]
    unique: bool = True
    store: str = HEAP


def _within_watermark(df: DataFrame, _: str) -> DataFrame:
    return df.withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["id"])


def _marks(df: DataFrame, _: str) -> DataFrame:
    named = df.withColumn("topic", F.lit("t")).withColumn("partition", F.lit(0))
    return dedup_offsets(named, {PartitionKey(bytes(16), "t", 0): 0})


def _shuffled(df: DataFrame, _: str) -> DataFrame:
    return df.repartitionById(2, F.pmod(F.xxhash64("id"), F.lit(2)).cast("int"))


def _through_python(df: DataFrame, folder: str) -> DataFrame:
    """The plan of `dedup_stream`, with a function that does nothing."""

    def all_new(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for length in [len(columns[0]) for columns in batches]:
            yield pa.array(np.ones(length, np.bool_))

    udf: Any = arrow_udf
    halves = F.xxhash64("id"), F.xxhash64(F.hash("id"), "id")
    is_new = udf(all_new, "boolean").asNondeterministic()
    return _shuffled(df, folder).where(is_new(*halves, F.lit(0)))


def _rows_through_python(df: DataFrame, folder: str) -> DataFrame:
    return _shuffled(df, folder).mapInArrow(lambda batches: batches, df.schema)


THROUGH_PYTHON = "a shuffle, fingerprints to Python"
STREAMS = {
    "no dedup": Way(lambda df, _: df, unique=False),
    # The minimum cost in Spark of any way that is written in Python.
    "a shuffle": Way(_shuffled, unique=False),
    THROUGH_PYTHON: Way(_through_python, unique=False),
    "a shuffle, rows to Python": Way(_rows_through_python, unique=False),
    "dropDuplicates, heap": Way(lambda df, _: df.dropDuplicates(["id"])),
    "dropDuplicates, RocksDB": Way(lambda df, _: df.dropDuplicates(["id"]), store=ROCKSDB),
    "dropDuplicatesWithinWatermark, heap": Way(_within_watermark),
    "dedup_stream": Way(lambda df, folder: dedup_stream(df, "id", store=folder)),
    "dedup_stream, horizon 1 day": Way(
        lambda df, folder: dedup_stream(df, "id", store=folder, horizon="1 day")
    ),
    "dedup_offsets": Way(_marks, unique=False),
}
TABLES = {
    "dropDuplicates of a table": Way(lambda df, _: df.dropDuplicates(["id"])),
    "dedup_batch": Way(lambda df, _: dedup_batch(df, "id")),
}
RATIOS = [
    ("dropDuplicates, heap", "dedup_stream", 1.0),
    ("dropDuplicates, RocksDB", "dedup_stream", 2.5),
    ("dropDuplicatesWithinWatermark, heap", "dedup_stream, horizon 1 day", 1.0),
]


class Bench:
    """The session and the input files."""

    def __init__(self, spark: SparkSession, rows: int, folder: Path) -> None:
        self.spark, self.rows, self.folder = spark, rows, folder
        self.input = folder / "input"
        self.jvm = jvm_of(spark)
        self.unique = _write_input(self.input, rows)

    def time(self, way: Way, *, stream: bool) -> Figures:
        self.spark.conf.set(STORE, way.store)
        self._collect_garbage()
        begun = _now(self.jvm)
        count = (self._stream if stream else self._table)(way)
        ended = _now(self.jvm)
        if count != (self.unique if way.unique else self.rows):
            raise SystemExit(f"{count} rows are left")
        return ended.since(begun)

    def _collect_garbage(self) -> None:
        java: Any = self.spark._jvm
        java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        java.System.gc()

    def _stream(self, way: Way) -> int:
        source = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", FILES_PER_BATCH)
        query = (
            way.apply(source.parquet(str(self.input)), tempfile.mkdtemp(dir=self.folder))
            .writeStream.format("noop")
            .option("checkpointLocation", tempfile.mkdtemp(dir=self.folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(progress["sink"]["numOutputRows"] for progress in query.recentProgress)

    def _table(self, way: Way) -> int:
        rows = Observation()
        df = way.apply(self.spark.read.schema(COLUMNS).parquet(str(self.input)), "")
        counted = df.observe(rows, F.count(F.lit(1)).alias("rows"))
        counted.write.format("noop").mode("overwrite").save()
        return int(rows.get["rows"])


def _write_input(folder: Path, rows: int) -> int:
    """Write ids `message-000000000123`, 30 % of them twice; return the number of distinct ids."""
    folder.mkdir()
    chooser, unique = np.random.default_rng(1), rows * 7 // 10
    numbers = np.concatenate([np.arange(unique), chooser.integers(0, unique, rows - unique)])
    chooser.shuffle(numbers)
    start = 0
    for at, part in enumerate(np.array_split(numbers, BATCHES * FILES_PER_BATCH)):
        offsets = np.arange(start, start + len(part))
        start += len(part)
        table = pa.table(
            {
                "id": pa.array([f"message-{number:012}" for number in part.tolist()]),
                "offset": offsets,
                "value": chooser.random(len(part)),
                "at": pa.array(
                    (offsets + 1) * 1000, pa.timestamp("us", "UTC")
                ),  # 0 is late for a watermark
            }
        )
        pq.write_table(table, folder / f"{at:02}.parquet")
        os.utime(folder / f"{at:02}.parquet", (1_700_000_000 + at,) * 2)  # Spark reads them by age
    return unique


def _now(jvm: int) -> Figures:
    """Return times; the JVM's exclude its compilers, which only matter in the first minutes."""
    java, python = cpu_seconds(jvm)
    compilers, collectors = (_thread_seconds(jvm, names) for names in (COMPILERS, COLLECTORS))
    return Figures(time.monotonic(), java - compilers, collectors, python)


def _thread_seconds(jvm: int, names: tuple[str, ...]) -> float:
    """Return the CPU time of the JVM's threads with these name prefixes."""
    ticks = 0
    for stat in Path(f"/proc/{jvm}/task").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # the thread has ended
            continue
        name, _, fields = text.partition("(")[2].rpartition(")")
        if name.startswith(names):
            ticks += sum(map(int, fields.split()[11:13]))
    return ticks / TICKS_A_SECOND


def measure(bench: Bench, rounds: int, only: list[str]) -> dict[str, list[Figures]]:
    """Return the figures of each selected way, one for each round after the first."""
    results: dict[str, list[Figures]] = defaultdict(list)
    for number in range(rounds + 1):
        for ways, stream in ((STREAMS, True), (TABLES, False)):
            for name, way in ways.items():
                if only and name not in only:
                    continue
                figures = bench.time(way, stream=stream)
                print(
                    f"round {number}: {name}", *(f"{figure:.1f}" for figure in figures), flush=True
                )
                if number:
                    results[name].append(figures)
    return results


def report(results: dict[str, list[Figures]], rows: int) -> None:
    print(
        f"{'best of the rounds':38} {'M rows/s':>9} {'JVM µs/row':>11} {'of it GC':>9} {'Python':>7} {'both':>6} "
        f"{'median':>7}"
    )
    best: dict[str, tuple[float, float]] = {}
    for name, rounds in results.items():
        wall, *parts = (min(column) for column in zip(*rounds, strict=True))
        both = [figures.jvm + figures.python for figures in rounds]
        best[name] = wall, min(both)
        jvm, collectors, python, least, middle = (
            1e6 * seconds / rows for seconds in (*parts, min(both), median(both))
        )
        print(
            f"{name:38} {rows / wall / 1e6:9.2f} {jvm:11.2f} {collectors:9.2f} {python:7.2f} {least:6.2f} {middle:7.2f}"
        )
    for theirs, ours, aim in RATIOS:
        if not {theirs, ours} <= best.keys():
            continue
        wall, cpu = (best[theirs][at] / best[ours][at] for at in (0, 1))
        print(
            f"{ours} is {cpu:.2f} x as fast as {theirs} by CPU, {wall:.2f} x by the clock; aim {aim}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", action="append", default=[], choices=[*STREAMS, *TABLES])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = quiet_session(
            kafka=False,
            **{
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": HEAP_SIZE,
                "spark.driver.extraJavaOptions": f"-Xms{HEAP_SIZE}",
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.session.timeZone": "UTC",
                "spark.local.dir": folder,
            },
        )
        bench = Bench(spark, arguments.rows, Path(folder))
        report(measure(bench, arguments.rounds, arguments.only), arguments.rows)
        spark.stop()


if __name__ == "__main__":
    main()
