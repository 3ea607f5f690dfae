"""Spark's own connector on our broker and Apache Kafka: `python -m bench.spark.connector --help`.

One session uses both brokers in turn, round after round, so that drift of the machine affects both
equally. The best of the rounds is printed: wall time, CPU time of Spark's JVM and of the broker,
and the ratio of ours to Kafka's. On a busy machine only CPU times are reliable.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.peers.brokers import ApacheKafka, Ours, Peer, cpu_seconds
from bench.spark_session import jvm_of, quiet_session

PARTITIONS = 4
FIGURES = ("wall s", "Spark CPU s", "broker CPU s")
Figures = tuple[float, ...]


class Workbench:
    """Common inputs of all works: the session, the rows to write, a folder for checkpoints."""

    def __init__(self, spark: SparkSession, records: int, folder: Path) -> None:
        self.spark, self.records, self.folder = spark, records, folder
        self.rows = spark.range(records, numPartitions=PARTITIONS).selectExpr(
            "lpad(cast(id as string), 20, 'k') key", "lpad(cast(id as string), 100, 'v') value"
        )

    def write(self, peer: Peer, topic: str) -> None:
        self.rows.write.format("kafka").options(**_options(peer, topic=topic)).save()

    def read(self, peer: Peer, topic: str) -> None:
        loaded = self.spark.read.format("kafka").options(**_options(peer, subscribe=topic)).load()
        _discard(loaded)

    def stream(self, peer: Peer, topic: str) -> None:
        """Read the whole topic in four micro-batches."""
        limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(self.records // 4)}
        query = (
            self.spark.readStream.format("kafka")
            .options(**_options(peer, subscribe=topic), **limits)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", tempfile.mkdtemp(dir=self.folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def _options(peer: Peer, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": peer.bootstrap, **options}


def _discard(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _timed(spark_pid: int, peer: Peer, work: Callable[[], None]) -> Figures:
    begun = time.monotonic(), cpu_seconds(spark_pid), cpu_seconds(peer.pid)
    work()
    ended = time.monotonic(), cpu_seconds(spark_pid), cpu_seconds(peer.pid)
    return tuple(end - begin for begin, end in zip(begun, ended, strict=True))


def measure(
    bench: Workbench, spark_pid: int, peers: list[Peer], rounds: int
) -> dict[str, dict[str, list[Figures]]]:
    """Return figures by work and peer, one for each round, without a first warm-up round."""
    results: dict[str, dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):
        topic = f"spark-{number}"
        for name, work in (("write", bench.write), ("read", bench.read), ("stream", bench.stream)):
            for peer in peers:
                figures = _timed(spark_pid, peer, partial(work, peer, topic))
                if number > 0:
                    results[name][peer.name].append(figures)
    return results


def show(results: dict[str, dict[str, list[Figures]]], records: int) -> None:
    """Print a line for each work and figure."""
    print(f"{'':24}{'ours':>10}{'Kafka':>10}{'ratio':>8}   of {records:,} records, best of rounds")
    for work, by_peer in results.items():
        ours, kafka = (
            [min(column) for column in zip(*rounds, strict=True)] for rounds in by_peer.values()
        )
        for figure, mine, theirs in zip(FIGURES, ours, kafka, strict=True):
            print(f"{work + ', ' + figure:24}{mine:10.2f}{theirs:10.2f}{mine / theirs:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    spark = quiet_session()
    jvm = jvm_of(spark)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers: list[Peer] = [Ours(folder), ApacheKafka(folder)]
        try:
            bench = Workbench(spark, asked.records, folder)
            show(measure(bench, jvm, peers, asked.rounds), asked.records)
        finally:
            for peer in peers:
                peer.stop()
            spark.stop()


if __name__ == "__main__":
    main()
