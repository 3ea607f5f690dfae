"""docs/design/0004: latency of a produce request with N partitions that must all be synced.

One request has a batch of 1 KiB for each of N partitions of a broker with durability ``fsync``; its
response is sent once all are on disk. For comparison, in the same run: N files, preallocated like a
log, get 1 KiB each and are fdatasynced by 16 threads, and by one.
Usage: ``python bench/design/dirty_partitions.py [DIRECTORY]``.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.client import PRODUCE, Connection, frame
from bench.data import batch
from pykafka_core import Broker
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import ProduceRequest, ProduceResponse

ROUNDS = {1: 200, 10: 200, 100: 60, 1000: 8}
RECORDS = batch(1, 900)[0]


def request(count: int) -> bytes:
    partitions = [
        ProduceRequest.PartitionProduceData(index=index, records=RECORDS) for index in range(count)
    ]
    topic = ProduceRequest.TopicProduceData(name="dirty", partition_data=partitions)
    return frame(PRODUCE, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic]))


def check(body: bytes, count: int) -> None:
    response = decode_response(*PRODUCE, body)
    assert isinstance(response, ProduceResponse)
    partitions = response.responses[0].partition_responses
    assert [partition.error_code for partition in partitions] == [0] * count


def open_plain(path: Path) -> int:
    """Open a file with reserved space, so that neither side extends its file."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(file, 0, 1 << 20)
    return file


def append_and_sync(file: int) -> None:
    os.write(file, RECORDS)
    os.fdatasync(file)


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def quantiles(times: list[float]) -> str:
    times.sort()
    return (
        f"{statistics.median(times):8.2f} {times[min(len(times) - 1, len(times) * 99 // 100)]:8.2f}"
    )


def main(directory: Path) -> None:
    files = [open_plain(directory / f"plain-{index}") for index in range(max(ROUNDS))]
    with (
        Broker(directory / "data", durability="fsync") as broker,
        ThreadPoolExecutor(16) as pool,
    ):
        broker.create_topic("dirty", partitions=max(ROUNDS))
        with Connection(broker.bootstrap_servers) as connection:
            check(connection.exchange(request(max(ROUNDS))), max(ROUNDS))
            list(pool.map(append_and_sync, files))
            print(
                "partitions | broker p50, p99 ms | 16 threads p50, p99 ms | one thread p50, p99 ms"
            )
            for count, rounds in ROUNDS.items():
                measure(connection, pool, files[:count], rounds)


def measure(
    connection: Connection, pool: ThreadPoolExecutor, files: list[int], rounds: int
) -> None:
    ready = request(len(files))
    broker: list[float] = []
    threads: list[float] = []
    alone: list[float] = []
    for _ in range(rounds):
        broker.append(timed(lambda: connection.exchange(ready)))
        threads.append(timed(lambda: list(pool.map(append_and_sync, files))))
        alone.append(timed(lambda: list(map(append_and_sync, files))))
    check(connection.exchange(ready), len(files))
    columns = " | ".join(map(quantiles, (broker, threads, alone)))
    print(f"{len(files):10} | {columns}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        main(Path(name))
