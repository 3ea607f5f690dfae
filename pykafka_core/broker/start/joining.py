"""The wait of a cluster node until it may serve, which may take long and can be cancelled.

It waits on file descriptors: a signal handler, or the C code of ``signal.set_wakeup_fd``, may end
the wait, and they cannot take a lock that the waiting thread may hold.
"""

import os
import threading
import time
import weakref
from enum import Enum, auto
from typing import Protocol

from pykafka_core.broker import native
from pykafka_core.broker.forks import close_in_children

_EXIT_CHECK_MS = 100


class HasFileno(Protocol):
    """An object with a file descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""


class Latch:
    """Readable for `select` after the first `set`.

    Any thread, and any signal handler, may set it.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._is_set = False
        self._descriptors = [
            weakref.finalize(self, os.close, one) for one in (self._reading, self._writing)
        ]
        close_in_children(self)

    def close(self) -> None:
        """Close its descriptors, as the garbage collector does; `set` does nothing afterwards."""
        self._is_set = True
        for descriptor in self._descriptors:
            descriptor()

    def set(self) -> None:
        """Set it permanently."""
        if not self._is_set:
            self._is_set = True
            os.write(self._writing, b"\0")

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""
        return self._reading


class Waited(Enum):
    """The result of a wait."""

    JOINED = auto()
    GIVEN_UP = auto()
    LATE = auto()


def wait_joined(joined: Latch, give_up: "int | HasFileno | None", timeout_ms: int) -> Waited:
    """Wait until one of both is readable, or until the timeout.

    Signal handlers run, and may raise. Outside of the main thread, the wait also ends at the
    interpreter's exit, which joins all threads.
    """
    select = native.unpatched("select")  # eventlet removes poll
    poll = select.poll()
    poll.register(joined, select.POLLIN)
    if give_up is not None:
        poll.register(give_up, select.POLLIN)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        left_ms = max(0.0, (deadline - time.monotonic()) * 1000)
        ready = {descriptor for descriptor, _ in poll.poll(min(left_ms, _EXIT_CHECK_MS))}
        if joined.fileno() in ready:
            return Waited.JOINED
        if ready or not threading.main_thread().is_alive():
            return Waited.GIVEN_UP
        if not left_ms:
            return Waited.LATE
