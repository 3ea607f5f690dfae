"""Crashes at named points of a ledger's transaction, for crash tests in plain Python and in Spark.

``CrashingLedger(ledger, Crash("after the effect", nth=2))`` is a ledger whose third transaction
that reaches this point ends there: by SIGKILL, or by an exception if the process must survive.
"""

import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

from pykafka_core.idempotent import Ledger, PartitionKey, Transaction

POINTS = (
    "transaction begun",
    "before the claim",
    "after the claim",
    "after the effect",
    "before the mark",
    "before the commit",
    "inside the commit",
    "after the commit",
)


class Crashed(BaseException):
    """A crash that the process survives. Not an `Exception`, so that no caller handles it."""


class Crash:
    """The point of a crash.

    Args:
        point: One of `POINTS`.
        nth: How often the point is passed before the crash.
        how: ``kill``: SIGKILL; ``raise``: `Crashed`, which at "inside the commit" is raised before
            the commit.
        spin: Steps of the commit before it is interrupted, about 10 to 100 ns each.

    A kill inside the commit works as follows. The database driver releases the interpreter's lock
    while it waits for the disk or the server. Another thread then has the lock, reads the stack of
    the first thread, and kills the process if that is in the commit. Threads switch so often that
    this happens at the driver's first wait, and while the other thread has the lock, no commit
    returns.
    """

    def __init__(self, point: str, nth: int = 0, how: str = "kill", spin: int = 0) -> None:
        assert point in POINTS, point
        self._point, self._left, self._how, self._spin = point, nth, how, spin
        self._hunted = False

    def reach(self, point: str) -> None:
        """Crash if this is the point, and it was passed often enough."""
        if self._hunted and point == "after the commit":
            _kill()  # the commit was too quick for the thread; the process must die anyway
        if point != self._point:
            return
        self._left -= 1
        if self._left >= 0:
            return
        if self._how == "raise":
            raise Crashed(point)
        if point == "inside the commit":
            self._hunted = True
            sys.setswitchinterval(1e-5)
            committer = threading.get_ident()
            threading.Thread(target=self._kill_inside, args=(committer,), daemon=True).start()
        else:
            _kill()

    def _kill_inside(self, committer: int) -> None:
        def is_inside() -> bool:
            return _is_committing(sys._current_frames()[committer])

        while True:
            time.sleep(0)
            # A sum, because no other thread can run during one.
            if is_inside() and sum(range(self._spin)) >= 0 and is_inside():
                _kill()

    def effect(self, effect: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
        """Return an effect that may crash after ``effect``."""

        def crashing(connection: Any, records: Any) -> object:
            result = effect(connection, records)
            self.reach("after the effect")
            return result

        return crashing


def _is_committing(frame: FrameType) -> bool:
    """Return whether a thread waits in SQLite's COMMIT, or for PostgreSQL's response to the COMMIT
    of psycopg's transaction block.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return 'execute("COMMIT")' in line or ("waiting.wait(" in line and _is_in_block_exit(frame))


def _is_in_block_exit(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith("psycopg/transaction.py"):
            return frame.f_code.co_name == "__exit__"
        frame = frame.f_back
    return False


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingLedger:
    """A ledger that crashes at a point of its transactions."""

    def __init__(self, ledger: Ledger, crash: Crash) -> None:
        self._ledger, self._crash = ledger, crash

    def transaction(self, group: str) -> AbstractContextManager[Transaction]:
        return self._crashing(self._ledger.transaction(group))

    def partitions_transaction(
        self, group: str, partitions: Sequence[PartitionKey]
    ) -> AbstractContextManager[Transaction]:
        ledger: Any = self._ledger
        return self._crashing(ledger.partitions_transaction(group, partitions))

    @contextmanager
    def _crashing(self, block: AbstractContextManager[Transaction]) -> Iterator[Transaction]:
        with block as transaction:
            self._crash.reach("transaction begun")
            yield _CrashingTransaction(transaction, self._crash)
            self._crash.reach("before the commit")
            self._crash.reach("inside the commit")
        self._crash.reach("after the commit")

    def close(self) -> None:
        self._ledger.close()


class _CrashingTransaction:
    def __init__(self, transaction: Transaction, crash: Crash) -> None:
        self._transaction, self._crash = transaction, crash

    @property
    def connection(self) -> Any:
        return self._transaction.connection

    def batches(self) -> dict[str, int]:
        return self._transaction.batches()

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        return self._transaction.begin_batch(query_id, batch_id)

    def marks(self) -> dict[PartitionKey, int]:
        return self._transaction.marks()

    def claim(self, ids: Any) -> Any:
        self._crash.reach("before the claim")
        mask = self._transaction.claim(ids)
        self._crash.reach("after the claim")
        return mask

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        self._crash.reach("before the mark")
        self._transaction.advance(marks)
