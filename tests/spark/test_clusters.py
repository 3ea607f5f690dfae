"""A cluster gives the same rows, statistics and partitions as one process, with every master."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.everything import PARTITIONS, TOPIC, Everything, Given, check
from tests.support.brokers import Serve
from tests.support.spark.drivers import run_driver
from tests.support.spark.standalone import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARED = "the session of the tests"
STANDALONE = "a standalone master with two workers"
EXECUTORS = {SHARED: 0, "local-cluster[2,1,1024]": 2, STANDALONE: 2}
"""The number of executor processes, by master."""


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """The results of the masters so far."""
    return []


@pytest.fixture
def address(master: str, request: pytest.FixtureRequest) -> str:
    """Return Spark's address of the master."""
    if master == STANDALONE:
        found: str = request.getfixturevalue("standalone_master")
        return found
    return master


def outcome(spark: "SparkSession", master: str, given: Given) -> Any:
    """Run everything in a separate driver, or in the session of the tests."""
    if master == SHARED:
        return json.loads(json.dumps(Everything(spark, given).run()))
    return run_driver("tests.spark.everything", given._asdict(), folder=Path(given.folder))


@pytest.mark.jvm
@pytest.mark.parametrize("master", EXECUTORS)
def test_everything_works_the_same_on_a_cluster(
    serve: Serve,
    spark: "SparkSession",
    master: str,
    address: str,
    outcomes: list[dict[str, Any]],
    postgres_dsn: str,
    tmp_path: Path,
) -> None:
    with serve() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        given = Given(
            master=address,
            bootstrap=broker.bootstrap_servers,
            sqlite=str(tmp_path / "orders.db"),
            postgres=postgres_dsn,
            folder=str(tmp_path),
        )
        found = outcome(spark, master, given)
    # Executors of a local-cluster copy their jars there, and no setting changes that.
    shutil.rmtree(SPARK / "work" / found.pop("application"), ignore_errors=True)
    assert found.pop("processes") == EXECUTORS[master]
    check(found)
    outcomes.append(found)
    assert found == outcomes[0]
