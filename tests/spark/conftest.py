"""Slow fixtures that tests of Spark share: a session and a standalone cluster."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.spark.session import start_session
from tests.support.spark.standalone import standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
IGNORED = [
    ":FutureWarning",
    ":DeprecationWarning",
    ":ResourceWarning",
    "Cannot infer the eval type:UserWarning",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings that Spark's own code causes, in every test of this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            for ignored in IGNORED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{ignored}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Two cores, two shuffle partitions, UTC, the connector's jars; stopped after the last test."""
    before = os.environ.get("PYSPARK_PYTHON")
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
    if before is None:
        os.environ.pop("PYSPARK_PYTHON", None)
    else:
        os.environ["PYSPARK_PYTHON"] = before


@pytest.fixture(scope="session")
def standalone_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers, which stop at the end of the run."""
    with standalone(tmp_path_factory.mktemp("standalone")) as address:
        yield address
