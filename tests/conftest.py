"""What all tests share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import postgres_dsn as postgres_dsn
from tests.support.postgres import postgres_server as postgres_server

CLIENTS = Path(__file__).parent / "clients"


@pytest.fixture
def gil_kept_while_python_runs() -> Iterator[None]:
    """No thread may ask for the GIL while another computes: it goes only when that one waits."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings are errors, but those that foreign clients raise about their own code are not ours to mend."""
    for item in items:
        if item.path.is_relative_to(CLIENTS):
            for kind in ("DeprecationWarning", "ResourceWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))
