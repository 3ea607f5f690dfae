"""A ledger is used by one thread at a time, of the process that made it, until it is closed."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from pykafka_core.errors import ClosedError, ForkedError, UsageError


class OneAtATime:
    """The part that ledgers have in common."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._process = os.getpid()
        self._closed = False

    def close(self) -> None:
        """Wait for the open transaction, then let go of the storage. Closing twice is no error."""
        if self._process != os.getpid():
            return  # What it holds is the parent's.
        if self._owner == threading.get_ident():
            raise UsageError("close within a transaction of this ledger")
        with self._lock:
            self._closed = True
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _let_go(self) -> None:
        """Release what is held."""

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else is in the block.

        Raises:
            ForkedError: The ledger is the parent process's.
            UsageError: This thread is in the block.
            ClosedError: The ledger was closed.
        """
        if self._process != os.getpid():
            raise ForkedError(f"{self!r} was made by the parent process; make one in the child")
        if self._owner == threading.get_ident():
            raise UsageError(f"{self!r}: a transaction within a transaction")
        with self._lock:
            if self._closed:
                raise ClosedError(f"{self!r} was closed")
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None
