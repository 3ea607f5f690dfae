"""Consumers are killed at every point of a transaction: each message counts once.

Brokers and databases are restarted as well. Each round adds messages, a third of them retries, and
ends one process. `TORTURE_ROUNDS` is the number of rounds for both databases together
(`make torture`: 200); every case runs at least once.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase, effects
from tests.idempotent.kafka import QUIET, make_topic
from tests.support.patience import PATIENCE_S, seconds
from tests.support.postgres import PostgresServer
from tests.support.processes.crash import POINTS
from tests.support.processes.server import Server, serving

pytestmark = pytest.mark.kill

AWAY = ("kill -9 from outside", "broker restarted", "redelivery from offset 0")
CASES = {
    "sqlite": [*POINTS, *AWAY],
    "postgres": [*POINTS, *AWAY, "database restarted"],
}
ROUNDS_MIN = int(os.environ.get("TORTURE_ROUNDS", "0")) // len(CASES)

RECORDS = 150
PARTITIONS = 2


class Torture:
    """A topic to which each round adds messages, a third of them retries, and the database."""

    def __init__(self, server: Server, database: Database, seed: int) -> None:
        self.server, self.database, self.random = server, database, random.Random(seed)
        self.records, self.values = 0, set[str]()
        database.run("CREATE TABLE totals (effects bigint)")
        database.run("INSERT INTO totals VALUES (0)")
        make_topic(server.address, "load", PARTITIONS)

    def produce(self) -> None:
        """Write messages. A retry has the id of any earlier message, maybe in another partition."""
        producer = Producer({"bootstrap.servers": self.server.address, **QUIET})
        for number in range(RECORDS):
            value = f"m{self.records + number}"
            if self.values and self.random.random() < 0.3:
                value = self.random.choice(sorted(self.values))
            self.values.add(value)
            partition = self.random.randrange(PARTITIONS)
            producer.produce("load", value, partition=partition, headers=[("id", value.encode())])
        assert producer.flush(PATIENCE_S) == 0
        self.records += RECORDS

    def start(self, *, rewound: bool = False, crash: dict[str, Any] | None = None) -> Any:
        """Start a consumer in a separate process."""
        what = {
            "bootstrap": self.server.address,
            "database": self.database.address,
            "records": self.records,
            "rewound": rewound,
            "crash": crash or {},
        }
        command = [sys.executable, "-m", "tests.faults.idempotent_child", json.dumps(what)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def crash_at(self, point: str) -> dict[str, Any]:
        nth, spin = self.random.randrange(4), self.random.randrange(100_000)
        return {"point": point, "nth": nth, "spin": spin}

    def finish(self, child: Any) -> None:
        """Wait until it ends without help."""
        child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0

    def check_nothing_twice(self, after: str) -> None:
        done = effects(self.database)
        assert len(done) == len(set(done)), f"an effect happened twice: {after}"
        assert self.database.run("SELECT effects FROM totals") == [(len(done),)]

    def check_nothing_lost(self) -> None:
        assert effects(self.database) == sorted(self.values)


def wait_for_batches(child: Any, count: int) -> None:
    for _ in range(count):
        child.stdout.readline()


@pytest.fixture
def torture(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Torture]:
    database: Database = (
        SQLiteDatabase(tmp_path / "ledger.db")
        if kind == "sqlite"
        else PostgresDatabase(request.getfixturevalue("postgres_dsn"))
    )
    with serving(tmp_path / "data") as server:
        yield Torture(server, database, seed=ROUNDS_MIN)


@pytest.mark.timeout(seconds(900 + 60 * ROUNDS_MIN))
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_each_message_counts_once_after_any_crash(
    kind: str, torture: Torture, request: pytest.FixtureRequest
) -> None:
    rounds = max(ROUNDS_MIN, len(CASES[kind]))
    for case in islice(cycle(CASES[kind]), rounds):
        torture.produce()
        if case in POINTS:
            child = torture.start(crash=torture.crash_at(case))
            child.communicate(timeout=PATIENCE_S)
            assert child.returncode == -signal.SIGKILL, case
        else:
            disturb(torture, case, request)
        torture.check_nothing_twice(case)
    torture.finish(torture.start())
    torture.check_nothing_twice("the end")
    torture.check_nothing_lost()


def disturb(torture: Torture, case: str, request: pytest.FixtureRequest) -> None:
    child = torture.start(rewound=case == "redelivery from offset 0")
    wait_for_batches(child, 1 + torture.random.randrange(5))
    if case == "kill -9 from outside":
        child.kill()
        child.communicate()
        return
    if case == "broker restarted":
        torture.server.kill()
        torture.server.start()
    elif case == "database restarted":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.restart()
    torture.finish(child)
    torture.check_nothing_lost()
