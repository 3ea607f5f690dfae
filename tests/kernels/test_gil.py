"""Columns are hashed without the GIL."""

import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from pykafka_core import _core

ROWS = 2_000_000
CALLS_MAX = 200


@pytest.mark.parametrize(
    "kernel",
    [
        lambda column: _core.partitions(column, 12, "murmur2"),
        lambda column: _core.fingerprints(column, seed=0),
    ],
    ids=["partitions", "fingerprints"],
)
@pytest.mark.usefixtures("gil_kept_while_python_runs")
def test_another_thread_runs_while_a_column_is_hashed(kernel: Callable[[object], object]) -> None:
    # This is not an array of pyarrow, which releases the GIL for a moment when it exports an array.
    column = _core.fingerprints(pa.array(np.arange(ROWS)), seed=0)
    start, ran = threading.Event(), threading.Event()

    def other() -> None:
        start.wait()
        ran.set()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    start.set()
    assert not ran.is_set()
    calls = 0
    while not ran.is_set() and calls < CALLS_MAX:  # a busy machine may start the thread late
        kernel(column)
        calls += 1
    assert ran.is_set()
