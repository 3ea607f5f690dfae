"""Restricts an open ledger to one thread at a time, in the process that created it."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from pykafka_core.errors import ClosedError, ForkedError, UsageError


class OneAtATime:
    """Base class of ledgers that serializes their transactions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._process = os.getpid()
        self._closed = False

    def close(self) -> None:
        """Wait for the open transaction, then release the storage. It may be called repeatedly."""
        if self._process != os.getpid():
            return  # the connection belongs to the parent process
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
        """Release the storage."""

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the ledger exclusively within the block.

        Raises:
            ForkedError: The ledger was created by the parent process.
            UsageError: This thread already holds it.
            ClosedError: The ledger is closed.
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
