"""kill -9 under load: no acknowledged record is lost or duplicated, offsets never decrease.

This proves docs/DURABILITY.md. Indexes equal rebuilt ones, entry by entry, with one exception: the
batches do not show when a log was closed or recovered. Kafka then writes the largest timestamp so
far to the active segment's time index (`LogSegment.close` and `recover` call `maybeAppend`), and so
do we. The entries written after a kill are taken from a copy of the killed directory.

`TORTURE_ROUNDS` sets the rounds for each durability (`make torture`: 50).
"""

import os
import random
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.rebuilt import Indexes, reopened, stored
from tests.support.dump import assert_files_are_sound
from tests.support.patience import PATIENCE_S, POLL_S, seconds
from tests.support.processes.server import Server, serving

pytestmark = [pytest.mark.jvm, pytest.mark.kill]

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "3"))
PARTITIONS = 3
# Small segments, so that the kill also interrupts rolls and writes of indexes and snapshots.
# Compressed batches are smaller than the interval, others are larger.
INDEX_INTERVAL_BYTES = 2048
TOPIC_CONFIG = {
    "internal.segment.bytes": "65536",
    "index.interval.bytes": str(INDEX_INTERVAL_BYTES),
}

WrittenPlace = tuple[int, int]


class Load:
    """An idempotent producer in a thread. It numbers its records and stores acknowledgements."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        from confluent_kafka import Producer

        self.acknowledged: dict[WrittenPlace, bytes] = {}
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.failed: list[str] = []
        self._random = random.Random(seed)
        self._enough, self._stop = threading.Event(), threading.Event()
        self._wanted = self._random.randint(200, 4000)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": self._random.choice(["none", "lz4", "zstd", "gzip", "snappy"]),
                "linger.ms": 1,
                "batch.num.messages": 50,
                # Bounded, so that the backlog of a stopped broker does not dominate the duration.
                "queue.buffering.max.messages": 1000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            partition = number % PARTITIONS
            value = f"{partition}-{number}-".encode() + b"x" * self._random.randint(0, 300)
            self.sent[partition].append(value)
            self._produce(partition, value)
            number += 1

    def _produce(self, partition: int, value: bytes) -> None:
        while True:
            try:
                self._producer.produce("load", value, partition=partition, on_delivery=self._note)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(POLL_S)

    def _note(self, error: object, record: object) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        place = (record.partition(), record.offset())  # type: ignore[attr-defined]
        assert place not in self.acknowledged, f"{place} acknowledged twice"
        self.acknowledged[place] = record.value()  # type: ignore[attr-defined]
        if len(self.acknowledged) >= self._wanted:
            self._enough.set()

    def wait_until_busy(self) -> None:
        assert self._enough.wait(PATIENCE_S), "too few acknowledgements"

    def finish(self) -> None:
        """Stop sending and wait until every record is acknowledged, including retries."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        assert not self.failed, self.failed[:3]

    def close(self) -> None:
        """Release the producer, which would otherwise search for the broker forever."""
        del self._producer


def read_all(bootstrap: str) -> list[list[tuple[int, bytes]]]:
    """Return the offsets and values of each partition, up to its current end."""
    from confluent_kafka import Consumer, TopicPartition

    # Without auto-commit, closing does not wait for a coordinator.
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    ends = [
        consumer.get_watermark_offsets(TopicPartition("load", p), timeout=PATIENCE_S)[1]
        for p in range(PARTITIONS)
    ]
    read: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    consumer.assign([TopicPartition("load", p, 0) for p in range(PARTITIONS)])
    while any(len(rows) < end for rows, end in zip(read, ends, strict=True)):
        # `consume` returns at this count or at the timeout, not at the end of a partition.
        for record in consumer.consume(1000, timeout=POLL_S):
            assert record.error() is None, record.error()
            read[record.partition()].append((record.offset(), record.value()))
    consumer.close()
    return read


def assert_nothing_lost(
    acknowledged: dict[WrittenPlace, bytes], read: Sequence[Sequence[tuple[int, bytes]]]
) -> None:
    stored = {(p, offset): value for p, rows in enumerate(read) for offset, value in rows}
    for place, value in acknowledged.items():
        assert stored.get(place) == value, f"{place}: acknowledged, now {stored.get(place)!r}"
    for rows in read:
        assert [offset for offset, _ in rows] == list(range(len(rows)))


def recovered_indexes(killed: Path) -> Indexes:
    """Return the indexes after recovery; they are the same if recovery finds no index."""
    found = reopened(killed, "load", INDEX_INTERVAL_BYTES)
    assert found == reopened(killed, "load", INDEX_INTERVAL_BYTES, without_indexes=True)
    return found


def assert_indexes_equal_rebuilt_ones(data: Path, after_kill: Indexes) -> None:
    """Check a directory after a clean stop of a server that started with ``after_kill``."""
    found = stored(data, "load")
    rebuilt = reopened(data, "load", INDEX_INTERVAL_BYTES, without_indexes=True)
    assert found.keys() == rebuilt.keys()
    assert sum(bool(found[name]) for name in found if name.endswith(".index")) >= PARTITIONS
    for name, entries in rebuilt.items():
        forced = after_kill.get(name, []) if name.endswith(".timeindex") else []
        assert found[name] == sorted({*entries, *forced}), name


def create_topic(server: Server) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server.address})
    topic = NewTopic("load", PARTITIONS, 1, config=TOPIC_CONFIG)
    admin.create_topics([topic])["load"].result(PATIENCE_S)


@pytest.mark.timeout(seconds(900 + 60 * ROUNDS))
@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
def test_kill_9_under_load_loses_nothing_acknowledged(durability: str, tmp_path: Path) -> None:
    dirs = [tmp_path / f"{durability}-{seed}" for seed in range(ROUNDS)]
    killed = tmp_path / "killed"
    for seed, data in enumerate(dirs):
        with serving(data, "--durability", durability) as server:
            create_topic(server)
            load = Load(server.address, seed)
            load.wait_until_busy()
            server.kill()
            shutil.copytree(data, killed)
            server.start()
            load.finish()
            read = read_all(server.address)
            assert_nothing_lost(load.acknowledged, read)
            # Idempotence across the restart: retried records exist once, in the order sent.
            assert [[value for _, value in rows] for rows in read] == load.sent
            load.close()
            assert server.stop() == 0
        assert_indexes_equal_rebuilt_ones(data, recovered_indexes(killed))
        shutil.rmtree(killed)
    assert_files_are_sound([folder for data in dirs for folder in sorted(data.glob("load-*"))])
