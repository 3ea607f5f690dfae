"""How many calls a piece of work makes: a measure that no busy machine changes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Calls:
    """A count of calls, of Python and of C."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, _frame: object, what: str, _argument: object) -> None:
        """What `sys.setprofile` takes."""
        self.count += what in ("call", "c_call")


@contextmanager
def counting_calls() -> Iterator[Calls]:
    """Count the calls of the ``with`` block, on this thread."""
    calls = Calls()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
