"""Asynchronous commands of the control plane that have no result yet: token → continuation.

Every asynchronous command has a token that is created here, and completes at most once
(docs/PLANES.md S4). This may take minutes. A cancelled token completes without a continuation.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple


class Completed(NamedTuple):
    """The result of a command: 0 and the offset that it guarantees, or an error code and -1;
    ``value`` is the result of a query.
    """

    error_code: int
    offset: int
    value: object = None


class MarkerCodes(NamedTuple):
    """The result of `Core.write_markers`: an error code of each marker, 0 if it is committed."""

    codes: Sequence[int]


Continuation = Callable[[Completed], None]


class Completions:
    """The table. Used only by the control thread, except `open`, which any thread may call."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._open: dict[int, Continuation] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, then: Continuation) -> int:
        """Return a token for a command; ``then`` is called once, on the control thread, unless it
        is cancelled.
        """
        token = next(self._tokens)
        self._open[token] = then
        return token

    def complete(self, token: int, completed: Completed) -> None:
        """Call the continuation. Its exceptions are raised."""
        then = self._open.pop(token, None)
        if then is not None:
            then(completed)

    def cancel(self, token: int) -> None:
        """Forget the continuation. The command itself is not undone."""
        self._open.pop(token, None)

    def cancel_all(self) -> None:
        """Forget all continuations when the broker stops; all requests already have responses."""
        self._open.clear()
