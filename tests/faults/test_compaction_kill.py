"""kill -9 during compaction, transactions and reads: each key keeps its last committed value.

`TORTURE_ROUNDS` sets the rounds (`make torture`: 50), of about three seconds each.
"""

import math
import os
import random
import threading
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.faults.history import Outcome, Write
from tests.faults.transactions.test_transactions_kill import QUICK, Transfers
from tests.support.dump import assert_files_are_sound
from tests.support.patience import ATTEMPT_S, PATIENCE_S, POLL_S, eventually, seconds
from tests.support.processes.server import Server, serving

pytestmark = [pytest.mark.jvm, pytest.mark.kill]

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "3"))
TOPIC, PARTITIONS = "balances", 2
WRITERS, KEYS = 2, 40
CONFIG = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "16384",
    "delete.retention.ms": "500",
    "file.delete.delay.ms": "100",
}

Values = dict[str, int | None]
"""The last value of each key; None if it was deleted."""


class Updates(Transfers):
    """Writes increasing numbers to its own keys. Every second key is sometimes deleted."""

    def __init__(self, bootstrap: str, name: str, seed: int) -> None:
        super().__init__(bootstrap, name, seed)
        self.lasting: Values = {}
        """The committed values of keys that are never deleted."""
        self.allowed: dict[str, set[int | None]] = {}
        """The possible values of each key: more than one if the end of a transaction is unknown."""
        self._pending: Values = {}

    def _transact(self, producer: Producer) -> bool:
        self._pending = {}
        can_go_on = super()._transact(producer)
        outcome = self.ends[-1].outcome
        for key, value in self._pending.items():
            if outcome is Outcome.COMMITTED:
                self.allowed[key] = {value}
                if value is not None and not is_deleted_at_times(key):
                    self.lasting[key] = value
            elif outcome is Outcome.UNKNOWN:
                self.allowed.setdefault(key, {None}).add(value)
        return can_go_on

    def _write(self, producer: Producer, transaction: str, number: int) -> None:
        key, place = f"{self.name}-{self._random.randrange(KEYS)}", len(self.writes)
        deletes = is_deleted_at_times(key) and self._random.random() < 0.3
        value = None if deletes else place
        self._pending[key] = value
        self.writes.append(Write(self.name, 0, str(place), False, transaction))
        producer.produce(
            TOPIC,
            key=key.encode(),
            value=None if value is None else b"%d" % value,
            partition=crc32(key.encode()) % PARTITIONS,
        )


def is_deleted_at_times(key: str) -> bool:
    return int(key.rpartition("-")[2]) % 2 == 1


class Readers(threading.Thread):
    """Reads the whole topic repeatedly."""

    def __init__(self, bootstrap: str, writers: list[Updates]) -> None:
        super().__init__(name="readers")
        self.stopping = threading.Event()
        self.faults: list[str] = []
        self.passes = 0
        self._servers, self._writers = bootstrap, writers

    def run(self) -> None:
        while not self.stopping.is_set():
            committed = {key: v for one in self._writers for key, v in dict(one.lasting).items()}
            found = last_values(committed_records(self._servers), self.faults)
            for key, value in committed.items():
                seen = found.get(key)
                if value is not None and (seen is None or seen < value):
                    self.faults.append(f"{key}: {seen} was read after {value} was committed")
            self.passes += 1


def log_ends(bootstrap: str) -> dict[int, int]:
    """Return the current end of each partition, including open transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUICK})
    asked = {TopicPartition(TOPIC, index): OffsetSpec.latest() for index in range(PARTITIONS)}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = admin.list_offsets(asked, request_timeout=ATTEMPT_S)
            return {place.partition: result.result().offset for place, result in found.items()}
        except KafkaException:
            assert time.monotonic() < deadline, "the broker does not tell where its logs end"


def committed_records(bootstrap: str) -> list[Any]:
    """Return all committed records, from the first one to the current ends of the logs.

    An open transaction hides all records after its first one, also committed ones.
    """
    ends = log_ends(bootstrap)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUICK,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    found: list[Any] = []
    deadline, ended = time.monotonic() + PATIENCE_S, set[int]()
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, "the last stable offset does not move"
        for message in consumer.consume(500, POLL_S):
            if message.error() is None:
                found.append(message)
            elif message.offset() >= ends.get(message.partition(), math.inf):
                ended.add(message.partition())
    consumer.close()
    return found


def last_values(records: list[Any], faults: list[str]) -> Values:
    """Return the last values; add violations of the order of records to ``faults``."""
    values: Values = {}
    numbers: dict[str, int] = {}
    offsets: dict[int, int] = {}
    for record in records:
        if record.offset() <= offsets.get(record.partition(), -1):
            faults.append(f"offset {record.offset()} comes twice or late")
        offsets[record.partition()] = record.offset()
        key = record.key().decode()
        values[key] = None if record.value() is None else int(record.value())
        if (number := values[key]) is not None:
            if number <= numbers.get(key, -1):
                faults.append(f"{key}: {number} comes behind {numbers[key]}")
            numbers[key] = number
    return values


def wait_for_ends(writers: list[Updates], count: int) -> None:
    eventually(lambda: all(len(one.ends) >= count or one.failure for one in writers))


def run_and_kill(server: Server, writers: list[Updates], readers: Readers) -> None:
    """Kill and restart the broker in each round, after some more transactions."""
    chance = random.Random(1)
    for _ in range(ROUNDS):
        more = max(len(one.ends) for one in writers) + chance.randrange(30, 90)
        wait_for_ends(writers, more)
        server.kill()
        server.start()
    passes = readers.passes + 2
    eventually(lambda: readers.passes >= passes or not readers.is_alive(), "two more passes")


@pytest.mark.timeout(seconds(900 + 60 * ROUNDS))
def test_the_last_values_survive_compaction_and_kill_9(tmp_path: Path) -> None:
    options = ("--set", "log.cleaner.backoff.ms=20", "--durability", "os")
    with serving(tmp_path / "data", *options) as server:
        admin = AdminClient({"bootstrap.servers": server.address, **QUICK})
        new = NewTopic(TOPIC, PARTITIONS, 1, config=CONFIG)
        admin.create_topics([new])[TOPIC].result(PATIENCE_S)
        writers = [Updates(server.address, f"w{number}", number) for number in range(WRITERS)]
        readers = Readers(server.address, writers)
        for thread in (*writers, readers):
            thread.start()
        try:
            run_and_kill(server, writers, readers)
        finally:
            for stopping in (*(one.stopping for one in writers), readers.stopping):
                stopping.set()
            for thread in (*writers, readers):
                thread.join(2 * PATIENCE_S)
        assert [one.failure for one in writers] == [None] * WRITERS
        left = committed_records(server.address)
        found = last_values(left, readers.faults)
        assert readers.faults == []
        allowed = {key: values for one in writers for key, values in one.allowed.items()}
        wrong = {key: (found.get(key), v) for key, v in allowed.items() if found.get(key) not in v}
        assert wrong == {}
        assert len(left) < sum(len(one.writes) for one in writers) / 2, "nothing was compacted"
        assert server.stop() == 0
    assert_files_are_sound(sorted((tmp_path / "data").glob(f"{TOPIC}-*")))
