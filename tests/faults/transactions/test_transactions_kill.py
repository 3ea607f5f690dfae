"""kill -9 during commits, aborts and read_committed reads: the history has no anomaly.

`TORTURE_ROUNDS` sets the rounds (`make torture`: 50).
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.history import Anomaly, End, History, Outcome, Read, Write, check
from tests.support.patience import PATIENCE_S, POLL_S, eventually
from tests.support.processes.server import Server, serving

pytestmark = pytest.mark.kill

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "3"))
PRODUCERS = 2
PARTITIONS = 2
ENDS_A_ROUND = 12
TOPIC = "accounts"
QUICK = {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200, "log_level": 0}


class Transfers(threading.Thread):
    """One transactional producer that runs transactions until it is stopped."""

    def __init__(self, bootstrap: str, name: str, seed: int) -> None:
        super().__init__(name=name)
        self.writes: list[Write] = []
        self.ends: list[End] = []
        self.failure: BaseException | None = None
        self.stopping = threading.Event()
        self._servers = bootstrap
        self._random = random.Random(seed)

    def run(self) -> None:
        try:
            producer = self._producer()
            while not self.stopping.is_set():
                if not self._transact(producer):
                    producer = self._producer()
        except BaseException as failure:
            self.failure = failure

    def _producer(self) -> Producer:
        settings = {"bootstrap.servers": self._servers, "transactional.id": self.name, **QUICK}
        producer = Producer(settings)
        producer.init_transactions(PATIENCE_S)
        return producer

    def _transact(self, producer: Producer) -> bool:
        """Return whether the producer can continue."""
        name = f"{self.name}-{len(self.ends)}"
        first, commits = len(self.writes), self._random.random() < 0.7
        began = time.monotonic()
        try:
            producer.begin_transaction()
            for number in range(self._random.randint(1, 8)):
                self._write(producer, name, number)
            if producer.flush(PATIENCE_S):
                raise AssertionError("the records of a transaction were not delivered in time")
            began = time.monotonic()
            if commits:
                producer.commit_transaction(PATIENCE_S)
            else:
                producer.abort_transaction(PATIENCE_S)
            outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        except KafkaException as error:
            outcome = self._give_up(producer, error, commits)
        self.ends.append(End(name, outcome, began, time.monotonic()))
        if outcome is Outcome.UNKNOWN:
            self._forget(first)
        return outcome is not Outcome.UNKNOWN

    def _write(self, producer: Producer, transaction: str, number: int) -> None:
        partition, value = self._random.randrange(PARTITIONS), f"{transaction}-{number}"
        place = len(self.writes)
        self.writes.append(Write(self.name, partition, value, False, transaction))

        def delivered(error: object, _: object) -> None:
            self.writes[place] = self.writes[place]._replace(acknowledged=error is None)

        producer.produce(TOPIC, value.encode(), partition=partition, on_delivery=delivered)

    def _give_up(self, producer: Producer, error: KafkaException, commits: bool) -> Outcome:
        reason = error.args[0]
        if reason.txn_requires_abort():
            producer.abort_transaction(PATIENCE_S)
            return Outcome.ABORTED
        return Outcome.UNKNOWN if commits else Outcome.ABORTED

    def _forget(self, first: int) -> None:
        """Mark these records as unacknowledged, because their outcome is unknown."""
        self.writes[first:] = [one._replace(acknowledged=False) for one in self.writes[first:]]


class Watcher(threading.Thread):
    """Continuously reads committed records."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="watcher")
        self.reads: list[Read] = []
        self.stopping = threading.Event()
        self._servers = bootstrap

    def run(self) -> None:
        consumer = reader(self._servers)
        while not self.stopping.is_set():
            for message in consumer.consume(100, POLL_S):
                if message.error() is None:
                    self.reads.append(read_of("watcher", message))
        consumer.close()


def reader(bootstrap: str, **settings: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            **QUICK,
            **settings,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    return consumer


def read_of(consumer: str, message: Any) -> Read:
    value = message.value().decode()
    return Read(consumer, 0, message.partition(), message.offset(), value, time.monotonic())


def read_all(bootstrap: str) -> list[Read]:
    """Return all committed records, after the last stable offset has reached the end."""
    consumer = reader(bootstrap, **{"enable.partition.eof": True})
    found: list[Read] = []
    deadline, ended = time.monotonic() + PATIENCE_S, set[int]()
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, "the last stable offset does not move"
        for message in consumer.consume(500, POLL_S):
            if message.error() is None:
                found.append(read_of("final", message))
            else:
                ended.add(message.partition())
    consumer.close()
    return found


@contextmanager
def transferring(bootstrap: str) -> Iterator[tuple[list[Transfers], Watcher]]:
    transfers = [Transfers(bootstrap, f"t{number}", number) for number in range(PRODUCERS)]
    watcher = Watcher(bootstrap)
    threads: list[Transfers | Watcher] = [*transfers, watcher]
    for thread in threads:
        thread.start()
    try:
        yield transfers, watcher
    finally:
        for thread in threads:
            thread.stopping.set()
        for thread in threads:
            thread.join(2 * PATIENCE_S)


def wait_for_ends(transfers: list[Transfers], count: int) -> None:
    eventually(lambda: all(len(one.ends) >= count or one.failure for one in transfers))


def anomalies(server: Server, seed: int = 0) -> list[Anomaly]:
    chance = random.Random(seed)
    with transferring(server.address) as (transfers, watcher):
        for round_number in range(1, ROUNDS + 1):
            wait_for_ends(transfers, round_number * ENDS_A_ROUND + chance.randrange(ENDS_A_ROUND))
            server.kill()
            server.start()
        wait_for_ends(transfers, (ROUNDS + 2) * ENDS_A_ROUND)
    assert [one.failure for one in transfers] == [None] * PRODUCERS
    history = History(
        writes=[write for one in transfers for write in one.writes],
        ends=[end for one in transfers for end in one.ends],
        reads=watcher.reads,
        final=read_all(server.address),
    )
    assert history.final, "something was committed"
    return check(history)


def test_transactions_survive_kill_9(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        new = NewTopic(TOPIC, PARTITIONS, 1)
        admin = AdminClient({"bootstrap.servers": server.address, **QUICK})
        admin.create_topics([new])[TOPIC].result(PATIENCE_S)
        assert anomalies(server) == []
