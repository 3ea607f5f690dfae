"""What all tests share."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import quiet_clients
from tests.support.brokers import serve as serve
from tests.support.postgres import postgres_dsn as postgres_dsn
from tests.support.postgres import postgres_server as postgres_server

quiet_clients.install()

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
# Folders by the time that their longest file takes.
LONGEST_FIRST = ["spark", "faults", "clients", "formats", "docs", "idempotent", "cli"]


@pytest.fixture
def gil_kept_while_python_runs() -> Iterator[None]:
    """No thread may ask for the GIL while another computes: it goes only when that one waits."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = (
        "run the tests of foreign clients on a cluster of so many brokers; default: on one broker"
    )
    parser.addoption("--brokers", type=int, default=1, help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread the files over processes, the longest first; hush what foreign clients warn about themselves."""
    # Stable: a file's tests keep their order.
    items.sort(key=lambda item: _place_in_line(item.path))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item.path)))
        for mark in item.iter_markers("one_broker"):
            if config.getoption("--brokers") > 1:
                item.add_marker(pytest.mark.skip(reason=mark.args[0]))
        if item.path.is_relative_to(CLIENTS):
            for kind in ("DeprecationWarning", "ResourceWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))


def _place_in_line(path: Path) -> int:
    folder = path.relative_to(HERE).parts[0]
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


def _group(path: Path) -> str:
    """Tests of one group run in one process: Spark has one session a process, and other files their own fixtures."""
    return "spark" if path.is_relative_to(HERE / "spark") else str(path.relative_to(HERE))
