"""kill -9 of transactional copiers and their broker: each record is copied once, in order per key.

Three of Kafka's TransactionalMessageCopier share a group, with transactions of version 2. Another
copier, of librdkafka, uses version 1. `TORTURE_ROUNDS` sets the rounds (`make torture`: 50), of
about eight seconds each: the group notices a killed Java member after its session of ten seconds,
which its program fixes.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.described import describe_transactions
from tests.faults.transactions.copier_child import QUICK
from tests.faults.transactions.copiers import (
    Copier,
    Copy,
    Feeder,
    StableOffsets,
    Values,
    Watcher,
    java_copier,
    librdkafka_copier,
)
from tests.support.patience import ATTEMPT_S, PATIENCE_S, exactly, seconds
from tests.support.processes.server import Server, serving
from tests.support.wire import Connection

pytestmark = [pytest.mark.jvm, pytest.mark.kill]

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "2"))
PARTITIONS, KEYS = 6, 30
JAVA, LIBRDKAFKA = Copy("orders", "copied-orders"), Copy("bills", "copied-bills")
# Records ahead of the copiers. The Java ones end without input; the other one only waits.
BACKLOG = {JAVA: 6000, LIBRDKAFKA: 60}
MORE = {JAVA: (100, 800), LIBRDKAFKA: (60, 300)}
TRANSACTION_SIZE, TIMEOUT_MS = 20, 10_000
# Rounds without a wait for a timeout.
QUICK_ROUNDS = 2
OPTIONS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
# A transaction ends at the first check after its timeout; a killed broker must restart first.
STALL_S_MAX = exactly(TIMEOUT_MS / 1000, "the timeout of a transaction") + ATTEMPT_S


class Run:
    """The copiers of one broker, with their input and output."""

    def __init__(self, server: Server, folder: Path, seed: int) -> None:
        self._server, self._chance = server, random.Random(seed)
        address = server.address
        self._java = [
            java_copier(address, f"j{n}", JAVA, TIMEOUT_MS, TRANSACTION_SIZE, folder / f"j{n}")
            for n in range(3)
        ]
        self._librdkafka = librdkafka_copier(address, "c0", LIBRDKAFKA, TIMEOUT_MS, folder / "c0")
        self._away_until: dict[Copier, float] = {}
        self.left_open = 0
        self.copiers = [*self._java, self._librdkafka]
        self.feeder = Feeder(address, KEYS)
        self.watcher = Watcher(address, [*JAVA, *LIBRDKAFKA], PARTITIONS)
        watched = {copy.output: PARTITIONS for copy in BACKLOG} | {"__consumer_offsets": 3}
        self.stable = StableOffsets(address, watched)

    @contextmanager
    def going(self) -> Iterator[None]:
        self.feed()
        threads = (self.watcher, self.stable)
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for copier in self.copiers:
                copier.kill()
            for thread in threads:
                thread.stopping.set()
            for thread in threads:
                thread.join(PATIENCE_S)

    def feed(self) -> None:
        for copy, backlog in BACKLOG.items():
            waiting = self.feeder.fed[copy.source] - self.copied(copy)
            if waiting < backlog / 2:
                self.feeder.feed(copy.source, backlog - waiting)

    def kill_some(self, *, broker: bool) -> list[Copier]:
        """Kill some copiers and, before, between or after them, the broker."""
        victims = self._chance.sample(self._java, self._chance.randint(1, 2))
        if self._chance.random() < 0.7:
            victims.append(self._librdkafka)
        kills: list[Callable[[], None]] = [victim.kill for victim in victims]
        if broker:
            kills.insert(self._chance.randint(0, len(kills)), self._server.kill)
        for kill in kills:
            kill()
        if broker:
            self._server.start()
        return victims

    def leave_one_away(self, victims: list[Copier]) -> None:
        """In half of the cases, do not restart a Java copier with an open transaction yet.

        The transaction ends at its timeout, and other members get the copier's partitions.
        """
        with Connection(self._server.address) as connection:
            states = describe_transactions(connection, [one.name for one in victims])
        for victim, state in zip(victims, states, strict=True):
            is_open = state.transaction_state == "Ongoing"
            if is_open and victim is not self._librdkafka and self._chance.random() < 0.5:
                self._away_until[victim] = time.monotonic() + STALL_S_MAX + 1
                self.left_open += 1
                return

    def restart(self) -> None:
        now = time.monotonic()
        for copier in self.copiers:
            if not copier.is_running() and self._away_until.get(copier, now) <= now:
                copier.start()

    def copied(self, copy: Copy) -> int:
        return self.watcher.counts[copy.output]

    def wait_for_progress(self) -> None:
        """Wait until each kind has copied more since the kill."""
        goals = {
            copy: self.copied(copy) + self._chance.randint(*more) for copy, more in MORE.items()
        }
        deadline = time.monotonic() + PATIENCE_S
        while any(self.copied(copy) < goal for copy, goal in goals.items()):
            assert time.monotonic() < deadline, (goals, *self._situation())
            self.feed()
            self._restart_where_all_ended()
            time.sleep(0.01)

    def wait_for_the_rest(self) -> None:
        """Wait for the copies without further input.

        A Java copier ends if it has nothing to copy, so these copiers are restarted together.
        """
        self.feeder.flush()
        deadline = time.monotonic() + PATIENCE_S
        while any(self.copied(copy) < self.feeder.fed[copy.source] for copy in BACKLOG):
            assert time.monotonic() < deadline, self._situation()
            self._restart_where_all_ended()
            time.sleep(0.01)

    def _situation(self) -> tuple[object, ...]:
        """Return details for the message of a failed assertion."""
        failures = [copier.failures for copier in self.copiers if not copier.is_running()]
        return self.feeder.fed, self.watcher.counts, failures

    def _restart_where_all_ended(self) -> None:
        if not any(copier.is_running() for copier in self._java):
            self.restart()


def assert_versions(run: Run, address: str) -> None:
    """Check the transaction versions, before any kill.

    With version 2 each transaction gets a new epoch; with version 1 the producer keeps its epoch.
    """
    with Connection(address) as connection:
        *java, librdkafka = describe_transactions(connection, ["j0", "j1", "j2", "c0"])
    assert sum(one.producer_epoch for one in java) >= run.copied(JAVA) / TRANSACTION_SIZE
    assert librdkafka.producer_epoch == 0


def rounds(run: Run, address: str) -> None:
    with run.going():
        run.restart()
        for number in range(ROUNDS):
            run.wait_for_progress()
            if number == 0:
                assert_versions(run, address)
            victims = run.kill_some(broker=number % 2 == 1)
            if number >= QUICK_ROUNDS:
                run.leave_one_away(victims)
            run.restart()
        run.wait_for_the_rest()


def read_all(bootstrap: str, before: Watcher) -> dict[str, Values]:
    """Return the values that a new reader finds; it stops at the count of the reader ``before``."""
    reader = Watcher(bootstrap, [*JAVA, *LIBRDKAFKA], PARTITIONS)
    reader.start()
    deadline = time.monotonic() + PATIENCE_S
    while reader.counts.total() < before.counts.total() and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.stopping.set()
    reader.join(PATIENCE_S)
    return reader.values


@pytest.mark.timeout(seconds(300 + 60 * ROUNDS))
def test_each_record_is_copied_once_and_in_order_of_its_key(tmp_path: Path) -> None:
    options = [word for name, value in OPTIONS.items() for word in ("--set", f"{name}={value}")]
    with serving(tmp_path / "data", *options) as server:
        admin = AdminClient({"bootstrap.servers": server.address, **QUICK})
        topics = [NewTopic(topic, PARTITIONS, 1) for topic in (*JAVA, *LIBRDKAFKA)]
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE_S)
        run = Run(server, tmp_path, seed=5)
        rounds(run, server.address)
        assert [copier.failures for copier in run.copiers] == [[]] * 4
        left = read_all(server.address, run.watcher)
    for copy in BACKLOG:
        # The values of each key are complete and in order: nothing is lost or duplicated.
        assert run.watcher.values[copy.output] == run.watcher.values[copy.source]
        assert run.watcher.counts[copy.source] == run.feeder.fed[copy.source]
    assert left == run.watcher.values
    assert run.stable.comparisons > 10 * ROUNDS
    assert run.left_open or ROUNDS < 10 * QUICK_ROUNDS
    assert run.stable.longest.seconds < STALL_S_MAX, run.stable.longest
