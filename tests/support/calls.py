"""Counts the function calls of a piece of work: a measure that does not depend on the machine's
load.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Calls:
    """A count of calls, of Python and of C."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, _frame: object, what: str, _argument: object) -> None:
        """Count a call; the argument of `sys.setprofile`."""
        self.count += what in ("call", "c_call")


@contextmanager
def counting_calls() -> Iterator[Calls]:
    """Count the calls of the ``with`` block, on this thread.

    Without garbage collections, which call Hypothesis.
    """
    calls = Calls()
    is_collecting = gc.isenabled()
    gc.disable()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        if is_collecting:
            gc.enable()
