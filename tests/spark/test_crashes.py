"""Spark crashes at every point of a batch: each message has its effect once, with every ledger.

A round sends records in instalments, 3 of 10 a second time, and causes one fault in each. Its last
run has no fault; then the database must contain each message once. Rounds share one session, whose
driver "dies" by an exception; separate drivers and executors are killed. `TORTURE_ROUNDS` is the
number of rounds for all of them together (`make torture`: 200), at least enough for every fault.
The last test shows the result of the same round with Spark's own memory instead of the ledger.
"""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase, effects
from tests.spark.counting import Counting, Effect, EffectOn, Memory
from tests.spark.faults import (
    EXECUTOR_KILLED,
    TASK_FAULTS,
    DriversCrash,
    TrappedCrash,
    locked_by_another,
    second_runs_of,
    victim_of,
)
from tests.spark.other_driver import OtherDriver, cluster_environment, other_driver
from tests.support import patience
from tests.support.brokers import Brokers, Serve
from tests.support.costs import charge
from tests.support.postgres import PostgresServer
from tests.support.processes.crash import POINTS, CrashingLedger
from tests.support.spark.pipeline import Sent, insert_values, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kill, pytest.mark.postgres]

FAULTS = (*TASK_FAULTS, "database gone", "new checkpoint")
FAULTS_A_ROUND = 4
IN_TASK = "in a task, "
POINTS_OF_DRIVER = [point for point in POINTS if point != "after the effect"]
"""The points of the driver's own transactions, if effects are on the executors."""
LEDGERS = ("sqlite", "postgres", "executors")
"""Targets of effects; with the last one, the executors commit to PostgreSQL."""
ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "0")) // len(LEDGERS)
KILLS = max(1, ROUNDS // 10)
"""Rounds with separate drivers and executors: each starts Java."""

PARTITIONS, INSTALMENT = 3, 60
JAVA_S_MAX = patience.seconds(600)
"""A separate driver starts Java up to three times: half a minute on an idle machine."""


@pytest.fixture(scope="module")
def broker(serve: Serve) -> Iterator[Brokers]:
    with serve() as broker:
        yield broker


class Round:
    """One topic, one database, and one query that is restarted repeatedly."""

    def __init__(
        self,
        broker: Brokers,
        database: Database,
        server: PostgresServer | None,
        home: Path,
        effect_on: EffectOn = "driver",
    ) -> None:
        self._broker, self._database, self._server = broker, database, server
        self._effect_on: EffectOn = effect_on
        self._random, self._home = random.Random(home.name), home
        self._checkpoints = 0
        self.memory: Memory = "ledger"
        self.sent: list[Sent] = []
        broker.create_topic(home.name, partitions=PARTITIONS)

    @property
    def counting(self) -> Counting:
        return Counting(
            bootstrap=self._broker.bootstrap_servers,
            topic=self._home.name,
            database=self._database.address,
            checkpoint=str(self._home / f"checkpoint-{self._checkpoints}"),
            trap=str(self._home / "trap"),
            memory=self.memory,
            effect_on=self._effect_on,
        )

    def send_more(self) -> None:
        """Send new records, then repeat any of all so far, perhaps in another partition."""
        first = len({record.id for record in self.sent})
        new = [
            Sent(self._random.randrange(PARTITIONS), f"value {n}", f"id {n}")
            for n in range(first, first + INSTALMENT)
        ]
        again = [
            self._random.choice(self.sent + new)._replace(
                partition=self._random.randrange(PARTITIONS)
            )
            for _ in range(INSTALMENT * 3 // 7)
        ]
        send(self._broker.bootstrap_servers, self._home.name, new + again)
        self.sent += new + again

    def strike(self, spark: "SparkSession", fault: str) -> None:
        """Run the query until the fault ends it, or until its end if it survives the fault."""
        if fault in TASK_FAULTS:
            self.set_trap(fault)
            self.finish(spark)
        elif fault.startswith(IN_TASK):
            self._crash_in_task(spark, fault.removeprefix(IN_TASK))
        elif fault == "database gone":
            self._without_database(spark)
        elif fault == "new checkpoint":
            self.forget_checkpoint()
            # So that batch 0 is repeated.
            self._crash(spark, DriversCrash("after the commit", how="raise"))
        else:
            self._crash(spark, DriversCrash(fault, self._random.randrange(2), how="raise"))

    def forget_checkpoint(self) -> None:
        self._checkpoints += 1

    def set_trap(self, fault: str) -> None:
        Path(self.counting.trap).write_text(fault)

    def finish(self, spark: "SparkSession") -> None:
        """Run to the end."""
        with closing(self._database.ledger()) as ledger:
            self.counting.run(spark, ledger, self._effect)
        assert not Path(self.counting.trap).exists(), "no task came by"

    def kill_another_driver(self, fault: str) -> None:
        """Kill a separate driver and its processes at a point of the transaction."""
        nth, spin = self._random.randrange(2), self._random.randrange(100_000)
        crash = {"point": fault, "nth": nth, "spin": spin}
        command = self.counting.in_another_driver(master="local[2]", crash=crash)
        charge("jvm")
        with subprocess.Popen(command, start_new_session=True) as driver:
            assert driver.wait(JAVA_S_MAX) == -signal.SIGKILL
            os.killpg(driver.pid, signal.SIGKILL)  # Java, too, ends without cleanup

    def finish_without_its_executor(self, driver: OtherDriver) -> None:
        """Kill a driver's only executor, a separate Java process; the driver must finish."""
        victim = victim_of(Path(self.counting.trap))
        victim.unlink(missing_ok=True)
        self.set_trap(EXECUTOR_KILLED)
        driver.run(self.counting)
        assert victim.read_text() == "java"

    def finish_with_tasks_that_run_twice(self, master: str) -> None:
        """Run a task twice concurrently, on two executors of a cluster.

        On a busy machine all tasks are slow, and Spark finds none to run twice; so the effects are
        slowed down until it does.
        """
        for seconds in (0.5, 2, 8):
            self.send_more()
            command = self.counting.in_another_driver(master=master, seconds=seconds)
            subprocess.run(command, check=True, timeout=JAVA_S_MAX, env=cluster_environment())
            if second_runs_of(Path(self.counting.trap)).exists():
                return
        raise AssertionError("Spark started no second run")

    def lost_and_repeated(self) -> tuple[set[str], set[str]]:
        """Return the messages without an effect and those with several, in the database."""
        found = Counter(effects(self._database))
        assert found.keys() <= self.messages
        return self.messages - found.keys(), {value for value in found if found[value] > 1}

    @property
    def messages(self) -> set[str]:
        """The values sent, one for each message id."""
        return {record.value for record in self.sent}

    def assert_each_message_once(self) -> None:
        assert self.lost_and_repeated() == (set(), set()), "(lost, done twice)"

    def _crash(self, spark: "SparkSession", crash: DriversCrash) -> None:
        with (
            closing(self._database.ledger()) as ledger,
            pytest.raises(StreamingQueryException, match=r"crashed|Crashed was raised"),
        ):
            self.counting.run(spark, CrashingLedger(ledger, crash), crash.effect(self._effect))

    def _crash_in_task(self, spark: "SparkSession", point: str) -> None:
        """Crash in a task, which Spark runs again."""
        trap = self._home / "trap in a transaction"
        trap.write_text(point)
        crash = TrappedCrash(trap)
        with closing(self._database.ledger()) as ledger:
            self.counting.run(spark, CrashingLedger(ledger, crash), crash.effect(self._effect))
        assert not trap.exists(), "no task came by"

    def _without_database(self, spark: "SparkSession") -> None:
        """Crash PostgreSQL between the effect and the mark, or lock SQLite's file."""
        with (
            closing(self._database.ledger(timeout_ms=30_000 if self._server else 100)) as ledger,
            self._gone() as effect,
            pytest.raises(StreamingQueryException, match="LedgerUnavailableError"),
        ):
            self.counting.run(spark, ledger, effect)

    @contextmanager
    def _gone(self) -> Iterator[Effect]:
        if self._server is None:
            assert isinstance(self._database, SQLiteDatabase)
            with locked_by_another(self._database):
                yield self._effect
        elif self._effect_on == "driver":
            yield _then(self._server, self._effect)
        else:
            with _then_in_a_task(self._server, self._effect, self._home) as effect:
                yield effect

    @property
    def _effect(self) -> Effect:
        return insert_values(self._database.placeholder)


def _then(server: PostgresServer, effect: Effect) -> Effect:
    """Return the effect, followed by a crash of the server."""

    def and_crash(connection: Any, table: Any) -> None:
        effect(connection, table)
        server.restart()

    return and_crash


@contextmanager
def _then_in_a_task(server: PostgresServer, effect: Effect, home: Path) -> Iterator[Effect]:
    """Return the same for tasks, which cannot crash the server: the first one requests it."""
    asked, done = home / "crash", home / "crashed"

    def and_ask(connection: Any, table: Any) -> None:
        effect(connection, table)
        with suppress(FileExistsError):
            asked.touch(exist_ok=False)
            wait_for(done)

    def crash() -> None:
        wait_for(asked)
        server.restart()
        done.touch()

    thread = threading.Thread(target=crash)
    thread.start()
    yield and_ask
    thread.join()
    asked.unlink()
    done.unlink()


def wait_for(file: Path) -> None:
    """Wait for a file of another process."""
    deadline = time.monotonic() + JAVA_S_MAX
    while not file.exists():
        assert time.monotonic() < deadline, f"no {file}"
        time.sleep(0.01)


@pytest.fixture
def trial(broker: Brokers, ledger: str, tmp_path: Path, request: pytest.FixtureRequest) -> Round:
    if ledger == "sqlite":
        return Round(broker, SQLiteDatabase(tmp_path / "bank.db"), None, tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres_server")
    database = PostgresDatabase(request.getfixturevalue("postgres_dsn"))
    effect_on: EffectOn = "executors" if ledger == "executors" else "driver"
    return Round(broker, database, server, tmp_path, effect_on)


def faults(ledger: str) -> list[str]:
    if ledger != "executors":
        return [*POINTS, *FAULTS]
    return [*POINTS_OF_DRIVER, *(IN_TASK + point for point in POINTS), *FAULTS]


def rounds() -> Iterator[tuple[str, int]]:
    for ledger in LEDGERS:
        least = ceil(len(faults(ledger)) / FAULTS_A_ROUND)
        yield from ((ledger, number) for number in range(max(ROUNDS, least)))


@pytest.mark.parametrize(("ledger", "number"), list(rounds()))
def test_each_message_counts_once_after_any_fault(
    spark: "SparkSession", trial: Round, ledger: str, number: int
) -> None:
    for fault in faults_of(ledger, number):
        trial.send_more()
        trial.strike(spark, fault)
    trial.finish(spark)
    trial.assert_each_message_once()


def faults_of(ledger: str, number: int) -> list[str]:
    """Return some of all faults, in a random order; consecutive rounds use all of them."""
    all_of_them = faults(ledger)
    rounds = ceil(len(all_of_them) / FAULTS_A_ROUND)
    order = random.Random(number // rounds).sample(all_of_them, len(all_of_them))
    return order[number % rounds :: rounds]


@pytest.mark.jvm
@pytest.mark.timeout(2 * JAVA_S_MAX)
@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("ledger", LEDGERS)
def test_each_message_counts_once_when_the_driver_is_killed(
    spark: "SparkSession", trial: Round, ledger: str, number: int
) -> None:
    all_points = POINTS_OF_DRIVER if ledger == "executors" else POINTS
    points = random.Random(ledger).sample(all_points, len(all_points))
    points.sort(key=lambda point: point != "inside the commit")  # impossible for an exception
    kill_the_driver_and_go_on(spark, trial, points[number % len(points)])
    trial.assert_each_message_once()


def kill_the_driver_and_go_on(spark: "SparkSession", trial: Round, point: str) -> None:
    trial.send_more()
    trial.kill_another_driver(point)
    trial.send_more()
    trial.finish(spark)


@pytest.fixture(scope="module")
def cluster_driver(spark: "SparkSession") -> Iterator[OtherDriver]:
    """A driver with a separate executor process, and the jars and Python of `spark`."""
    with other_driver("local-cluster[1,1,1024]") as driver:
        yield driver


@pytest.mark.jvm
@pytest.mark.timeout(2 * JAVA_S_MAX)
@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("ledger", LEDGERS)
def test_each_message_counts_once_when_an_executor_is_killed(
    cluster_driver: OtherDriver, trial: Round, number: int
) -> None:
    for _ in range(1 + number % 2):  # from a new checkpoint, and from an existing one
        trial.send_more()
        trial.finish_without_its_executor(cluster_driver)
    trial.assert_each_message_once()


@pytest.mark.jvm
@pytest.mark.timeout(2 * JAVA_S_MAX)
@pytest.mark.parametrize("ledger", ["executors"])
@pytest.mark.usefixtures("spark")
def test_each_message_counts_once_when_tasks_run_twice_at_once(
    trial: Round, standalone_master: str
) -> None:
    trial.finish_with_tasks_that_run_twice(standalone_master)
    trial.assert_each_message_once()


@pytest.mark.jvm
@pytest.mark.timeout(2 * JAVA_S_MAX)
@pytest.mark.parametrize("ledger", LEDGERS[:1])
def test_drop_duplicates_alone_repeats_messages_that_the_ledger_counts_once(
    spark: "SparkSession", trial: Round
) -> None:
    """It only removes a producer's duplicates: the same input and faults give other results."""
    trial.memory = "dropDuplicates"
    trial.send_more()
    trial.finish(spark)
    trial.assert_each_message_once()
    before = trial.messages

    kill_the_driver_and_go_on(spark, trial, "after the commit")
    lost, repeated = trial.lost_and_repeated()
    assert not lost
    assert repeated
    assert repeated.isdisjoint(before)

    trial.forget_checkpoint()
    trial.finish(spark)
    assert trial.lost_and_repeated() == (set(), trial.messages)
