"""Common settings and fixtures of all tests."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import patience, patient_clusters, plain_output, quiet_clients
from tests.support.brokers import serve as serve
from tests.support.postgres import postgres_dsn as postgres_dsn
from tests.support.postgres import postgres_server as postgres_server
from tests.support.spark import class_archive

pytest_plugins = [
    "tests.support.costs",
    "tests.support.runs.durations",
    "tests.support.evidence.plugin",
    "tests.support.runs.shares",
]

plain_output.install()
quiet_clients.install()
patient_clusters.install()
class_archive.install()

# An example may take longer on a busy machine; its own limit would be 200 ms.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Under nohup, or as a shell's background job, children would ignore Ctrl-C too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
CLIENTS = HERE / "clients"
SPARK = "spark"
"""The fixture of the Spark session, and the first group of the tests that share it."""
SPARK_ELSEWHERE = "spark elsewhere"
"""The other group, in as much time: the tests outside of ``tests/spark/*.py``."""

# The session's groups, then folders, by the time that the longest group of each takes.
LONGEST_FIRST = [
    SPARK,
    SPARK_ELSEWHERE,
    "wheel/",
    "faults/",
    "clients/",
    "formats/",
    "docs/",
    "idempotent/",
    "cli/",
    "spark/",
]


@pytest.fixture
def gil_kept_while_python_runs() -> Iterator[None]:
    """A thread that computes keeps the GIL until it waits: no other thread can request it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = (
        "run the tests of foreign clients on a cluster of so many brokers; default: on one broker"
    )
    parser.addoption("--brokers", type=int, default=1, help=text)


@pytest.hookimpl(tryfirst=True)  # pytest-timeout reads the option in its own hook
def pytest_configure(config: pytest.Config) -> None:
    """Scale the timeout of each test."""
    patience.scale_timeout(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distribute the tests over processes, the longest groups first.

    Warnings of foreign clients are ignored.
    """
    # Stable: a file's tests keep their order.
    items.sort(key=_rank)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
        for mark in item.iter_markers("one_broker"):
            if config.getoption("--brokers") > 1:
                item.add_marker(pytest.mark.skip(reason=mark.args[0]))
        if item.path.is_relative_to(CLIENTS):
            for kind in ("DeprecationWarning", "ResourceWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))


def _rank(item: pytest.Item) -> int:
    """Return the position of the test's group: the Spark session first, then by folder."""
    group = _group(item)
    first = group if group in LONGEST_FIRST else f"{Path(group).parts[0]}/"
    return LONGEST_FIRST.index(first) if first in LONGEST_FIRST else len(LONGEST_FIRST)


def _group(item: pytest.Item) -> str:
    """Return the group of tests that run in one process: tests that use the Spark session, or a
    file.

    A file whose tests only partly use Spark is two groups, so that the others can run in another
    process.
    """
    if SPARK in getattr(item, "fixturenames", ()):
        return SPARK if item.path.parent == HERE / "spark" else SPARK_ELSEWHERE
    return str(item.path.relative_to(HERE) if item.path.is_relative_to(HERE) else item.path)
