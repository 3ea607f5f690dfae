"""What tests of the command line share."""

import signal
from collections.abc import Iterator

import pytest

HANDLED = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A command that runs in this process may go on to handle signals, which a process of its own ends with."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
