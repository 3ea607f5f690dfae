"""What the control plane asked of others and has no answer to yet: token → what happens then.

Every asynchronous command has a token that is opened here, and completes at most once (docs/SEAM.md S4). It may take
minutes. A token that was cancelled completes without a continuation.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple


class Completed(NamedTuple):
    """What came of a command: 0 and the offset that it promises, or an error code and -1; the answer to a question."""

    error_code: int
    offset: int
    answer: object = None


class MarkerCodes(NamedTuple):
    """The answer to `Core.write_markers`: an error code of each marker, 0 if it is committed."""

    codes: Sequence[int]


Continuation = Callable[[Completed], None]


class Completions:
    """The table. Belongs to the control thread, but for `open`, which any thread may call."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._open: dict[int, Continuation] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, then: Continuation) -> int:
        """A token for a command; ``then`` is called once, on the control thread, unless it is cancelled."""
        token = next(self._tokens)
        self._open[token] = then
        return token

    def complete(self, token: int, completed: Completed) -> None:
        """Go on with what waited. What the continuation raises, this raises."""
        then = self._open.pop(token, None)
        if then is not None:
            then(completed)

    def cancel(self, token: int) -> None:
        """Nobody wants to know any more. The command itself is not undone."""
        self._open.pop(token, None)

    def cancel_all(self) -> None:
        """The broker stops: whoever waited has been told."""
        self._open.clear()
