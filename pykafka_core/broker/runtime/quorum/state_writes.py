"""Writes of quorum-state, on a separate thread.

A node whose disk hangs has to send heartbeats and to hand its leaderships over, so its control
thread does not wait for that disk. Until a write has ended, the replica holds back all that
depends on it (`pykafka_core.quorum.transition`).

The thread stays for the next write: the control thread would wait for the start of another one.
"""

from collections.abc import Callable

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.safe_logging import never_raise_here
from pykafka_core.quorum.values import ElectionState

Write = Callable[[ElectionState, tuple[int, ...]], object]


class StateWrites:
    """The writes, one after another. Belongs to the control thread.

    Args:
        core: Its control thread is woken after each write.
        write: Writes and syncs a state, with the node ids of static voters.
        persisted: Called for each state, in order, once it or a later one is on disk.
    """

    def __init__(self, core: Core, write: Write, persisted: Callable[[], object]) -> None:
        self._core = core
        self._write = write
        self._persisted = persisted
        self._waiting: list[tuple[ElectionState, tuple[int, ...]]] = []
        self._thread: native.Thread | None = None
        self._due: tuple[ElectionState, tuple[int, ...]] | None = None
        """The write that the thread begins next."""
        self._is_due = native.Event()
        """Wakes the thread, also at the end."""
        self._ends = False
        self._count = 0
        """Number of states that the running write stands for; 0 without one."""
        self._is_over = False
        self._error: BaseException | None = None

    def add(self, state: ElectionState, static_voters: tuple[int, ...]) -> None:
        """Take a state for the next write, which follows the ones before it."""
        self._waiting.append((state, static_voters))

    def begin(self) -> None:
        """Write the states that wait, unless a write is running: only the last one."""
        if self._count or not self._waiting:
            return
        if self._thread is None:
            thread = native.Thread(target=self._run, name="pykafka-core-quorum-state", daemon=True)
            thread.start()
            self._thread = thread
        self._due, self._count = self._waiting[-1], len(self._waiting)
        self._waiting.clear()
        self._is_due.set()

    def advance(self) -> None:
        """Handle the end of a write. The states that came during it are written together.

        Raises:
            BaseException: The write failed; the node must end.
        """
        if not self._is_over:
            return
        if self._error is not None:
            raise self._error
        self._is_over, count, self._count = False, self._count, 0
        self.begin()
        for _ in range(count):
            self._persisted()

    def finish(self) -> None:
        """Wait for the running write; no other begins."""
        if self._thread is not None:
            self._ends = True
            self._is_due.set()
            self._thread.join()

    def _run(self) -> None:
        """On the thread."""
        never_raise_here()
        while not self._ends:
            self._is_due.wait()
            self._is_due.clear()
            due, self._due = self._due, None
            if due is not None:
                self._write_now(*due)

    def _write_now(self, state: ElectionState, static_voters: tuple[int, ...]) -> None:
        try:
            self._write(state, static_voters)
        except BaseException as error:
            self._error = error
        self._is_over = True
        self._core.wake()
