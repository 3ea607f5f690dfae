"""A cluster gives what one process gives: the same rows, statistics and partitions, whatever the master is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.everything import PARTITIONS, TOPIC, Given, check
from tests.support.brokers import Serve
from tests.support.spark.drivers import run_driver
from tests.support.spark.standalone import SPARK, standalone

STANDALONE = "a standalone master with two workers"
EXECUTORS = {"local[2]": 0, "local-cluster[2,1,1024]": 2, STANDALONE: 2}
"""Processes beside the driver, by master."""


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """Those of the masters so far."""
    return []


@contextmanager
def serving(master: str, home: Path) -> Iterator[str]:
    """Its address; what was started for it is gone afterwards."""
    if master != STANDALONE:
        yield master
        return
    with standalone(home) as address:
        yield address


@pytest.mark.parametrize("master", EXECUTORS)
def test_everything_works_the_same_on(
    serve: Serve, master: str, outcomes: list[dict[str, Any]], postgres_dsn: str, tmp_path: Path
) -> None:
    with serve() as broker, serving(master, tmp_path) as address:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        given = Given(
            master=address,
            bootstrap=broker.bootstrap_servers,
            sqlite=str(tmp_path / "orders.db"),
            postgres=postgres_dsn,
            folder=str(tmp_path),
        )
        found = run_driver("tests.spark.everything", given._asdict(), folder=tmp_path)
    # Executors of a local-cluster copy their jars there, and nothing says where else.
    shutil.rmtree(SPARK / "work" / found.pop("application"), ignore_errors=True)
    assert found.pop("processes") == EXECUTORS[master]
    check(found)
    outcomes.append(found)
    assert found == outcomes[0]
