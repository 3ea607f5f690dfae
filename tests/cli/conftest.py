"""Common fixtures of the tests of the command line."""

import signal
from collections.abc import Iterator

import pytest

HANDLED = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Restore the signal handlers: a command in this process may leave its own, which a separate
    process would not.
    """
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
