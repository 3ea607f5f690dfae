"""Group members and transactional producers act at random while their broker is killed and stopped.

`TORTURE_ROUNDS` sets the rounds (`make torture`: 50), of about six seconds each. Every second round
restarts the broker.
"""

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from pykafka_core.protocol import messages as m
from tests.faults.described import ends
from tests.faults.groups.lives import ClassicLife, ConsumerLife, Kind, Life, Noted, overlaps
from tests.faults.history import History, Read, check
from tests.faults.raw import NONE, Keys, create_topics, find_coordinator
from tests.faults.transactions.transaction_lives import TransactionLife
from tests.faults.writers import Transactions
from tests.support.patience import PATIENCE_S, POLL_S
from tests.support.processes.server import Server, serving
from tests.support.wire import Connection

pytestmark = pytest.mark.kill

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "2"))
SEED = int(os.environ.get("LIVES_SEED", "0"))
MEMBERS, PARTITIONS, WILD_S = 4, 6, 3.0
PRODUCERS = ["tv1", "tv2", "other-tv1", "other-tv2"]
QUICK = {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200, "log_level": 0}
OPTIONS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 50,
}


class Lives(Protocol):
    def run(self, stopping: Event) -> None: ...


class Threads:
    """Runs each life in a thread, until all are stopped."""

    def __init__(self, lives: Sequence[Lives]) -> None:
        self.failures: list[BaseException] = []
        self._stopping = Event()
        self._threads = [Thread(target=self._run, args=(life,)) for life in lives]
        for thread in self._threads:
            thread.start()

    def _run(self, life: Lives) -> None:
        try:
            life.run(self._stopping)
        except BaseException as error:
            self.failures.append(error)

    def end(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert self.failures == []


class Group:
    """The members of a group, each in a thread."""

    def __init__(self, address: str, kind: Kind, name: str, seed: int) -> None:
        self.noted = Noted(name)
        self.lives: list[Life] = [
            kind(address, self.noted, seed * MEMBERS + n, 0.03) for n in range(MEMBERS)
        ]
        self.threads = Threads(self.lives)

    def assert_it_settles(self) -> None:
        """Wait until all are members and own all partitions, without overlap."""
        for life in self.lives:
            life.is_calm.set()
        deadline = time.monotonic() + PATIENCE_S
        while sorted(p for life in self.lives for p in life.partitions) != list(range(PARTITIONS)):
            assert self.threads.failures == []
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    def go_wild(self) -> None:
        for life in self.lives:
            life.is_calm.clear()

    def told(self) -> list[tuple[str, int, list[int]]]:
        return [(life.member_id, life.generation, life.partitions) for life in self.lives]


def create_orders(connection: Connection) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=PARTITIONS, replication_factor=1
    )
    response = connection.ask(Keys.CREATE_TOPICS, 7, m.CreateTopicsRequest(topics=[topic]))
    assert [row.error_code for row in response.topics] == [NONE]
    find_coordinator(connection, 0, "any")


def disturb(server: Server, choice: random.Random) -> None:
    time.sleep(choice.uniform(0.0, WILD_S))
    if choice.random() < 0.7:
        server.kill()
    else:
        assert server.stop() == 0
    server.start()


@pytest.mark.parametrize("kind", [ClassicLife, ConsumerLife])
def test_members_with_random_lives_share_partitions_and_lose_no_commit(
    tmp_path: Path, kind: Kind
) -> None:
    options = [text for name, value in OPTIONS.items() for text in ("--set", f"{name}={value}")]
    choice = random.Random(SEED)
    with serving(tmp_path / "data", "--durability", "os", *options) as server:
        with Connection(server.address) as connection:
            create_orders(connection)
        group = Group(server.address, kind, "group", SEED)
        try:
            for number in range(ROUNDS):
                group.go_wild()
                if number % 2:
                    disturb(server, choice)
                time.sleep(WILD_S)
                group.assert_it_settles()
        finally:
            group.threads.end()
        noted = group.noted
        history = History(
            owned=noted.owned if kind is ClassicLife else [],
            commits=noted.commits,
            fetches=noted.fetches,
        )
        assert check(history) == []
        assert kind is ClassicLife or overlaps(noted.owned) == []
        assert noted.owned
        assert sum(one.acknowledged for one in noted.commits) > 10


class Reader:
    """Continuously reads committed records; a topic is a partition of the history."""

    def __init__(self, address: str) -> None:
        self.reads: list[Read] = []
        self._settings = {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            **QUICK,
        }

    def _consumer(self, **settings: object) -> Consumer:
        consumer = Consumer(self._settings | settings)
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in PRODUCERS])
        return consumer

    def run(self, stopping: Event) -> None:
        consumer = self._consumer()
        while not stopping.is_set():
            messages = consumer.consume(500, POLL_S)
            self.reads += [read_of(one) for one in messages if one.error() is None]
        consumer.close()

    def read_all(self) -> list[Read]:
        """Return the records at the end, when no transaction is open."""
        consumer = self._consumer(**{"enable.partition.eof": True})
        found: list[Read] = []
        ended: set[str] = set()
        deadline = time.monotonic() + PATIENCE_S
        while len(ended) < len(PRODUCERS):
            assert time.monotonic() < deadline, f"of {PRODUCERS} only {ended} come to their ends"
            for one in consumer.consume(500, POLL_S):
                if one.error() is None:
                    found.append(read_of(one))
                else:
                    ended.add(one.topic())
        consumer.close()
        return found


def read_of(message: Any) -> Read:
    partition, value = PRODUCERS.index(message.topic()), message.value().decode()
    name = f"{message.topic()}:{value}"
    return Read("reader", 0, partition, message.offset(), name, time.monotonic())


def test_producers_that_lose_connections_at_random_split_no_transaction(
    tmp_path: Path,
) -> None:
    choice = random.Random(SEED)
    with serving(tmp_path / "data", "--durability", "os") as server:
        with Connection(server.address) as connection:
            create_topics(connection, PRODUCERS)
            find_coordinator(connection, 1, "any")
        lives = [
            TransactionLife(server.address, name, 1 + n % 2, SEED * 10 + n, 0.03)
            for n, name in enumerate(PRODUCERS)
        ]
        reader = Reader(server.address)
        threads = Threads([*lives, reader])
        try:
            for _ in range(ROUNDS):
                disturb(server, choice)
                time.sleep(WILD_S / 3)
        finally:
            threads.end()
        with Connection(server.address) as connection:
            for n, name in enumerate(PRODUCERS):
                Transactions(connection, name, 1 + n % 2)
                stable, end = ends(connection, name)
                assert stable == end
        history = History(
            writes=[write for life in lives for write in life.writes],
            ends=[end for life in lives for end in life.ends],
            reads=reader.reads,
            final=reader.read_all(),
        )
        assert check(history) == []
        assert len(history.final) > 10 * len(PRODUCERS)
