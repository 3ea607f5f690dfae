"""Timers of the control thread, one-shot and periodic, in one heap.

Timers are compared with the core's horizon, the time up to which all events were handled
(docs/PLANES.md S6): after a stall of the interpreter, or with a long queue, a timer never fires
before events that arrived earlier.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.types import FOREVER_NS, NS_PER_MS

CANCELLED_MIN = 64
"""Minimum number of cancelled timers that are removed from the heap before they are due."""


def _nothing() -> None:
    """Do nothing."""


class Timer:
    """One timer. `action` is called once when ``due_ns`` has passed, or periodically."""

    __slots__ = "_owner", "action", "due_ns", "interval_ns", "is_over", "name"

    def __init__(
        self,
        owner: "Timers",
        name: str,
        due_ns: int,
        interval_ns: int,
        action: Callable[[], object],
    ) -> None:
        self._owner = owner
        self.name = name
        self.due_ns = due_ns
        self.interval_ns = interval_ns
        self.action = action
        self.is_over = False

    def cancel(self) -> None:
        """Cancel the timer and release its action. Idempotent; does nothing after the last run."""
        if not self.is_over:
            self.is_over = True
            self.action = _nothing
            self._owner.note_cancelled()


class Timers:
    """All timers of one control thread; used only by that thread.

    Args:
        faults: Records the exception of a timer; only that run fails.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._cancelled_count = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled_count

    def once(self, name: str, due_ns: int, action: Callable[[], object]) -> Timer:
        """Call ``action`` when ``due_ns`` has passed; ``name`` is for reports of its faults."""
        return self._arm(Timer(self, name, due_ns, 0, action))

    def every(
        self, name: str, interval_ms: int, now_ns: int, action: Callable[[], object]
    ) -> Timer:
        """Call ``action`` periodically, first after one interval; after a late run, the next one is
        a full interval later.
        """
        interval_ns = interval_ms * NS_PER_MS
        return self._arm(Timer(self, name, now_ns + interval_ns, interval_ns, action))

    def next_due_ns(self) -> int:
        """Return the time of the next timer; `FOREVER_NS` without timers."""
        while self._heap and self._heap[0][2].is_over:
            heappop(self._heap)
            self._cancelled_count -= 1
        return self._heap[0][0] if self._heap else FOREVER_NS

    def run(self, horizon_ns: int, is_stopping: Callable[[], bool] = lambda: False) -> bool:
        """Run the timers that are due at the horizon, in order of time; check for a stop between
        any two.

        Timers that an action adds wait for the next call.

        Returns:
            Whether any timer was due.
        """
        limit, ran = next(self._numbers), False
        while self.next_due_ns() <= horizon_ns and self._heap[0][1] < limit and not is_stopping():
            self._run_one(heappop(self._heap)[2], horizon_ns)
            ran = True
        return ran

    def note_cancelled(self) -> None:
        """Count a cancelled timer in the heap."""
        self._cancelled_count += 1
        if self._cancelled_count > max(CANCELLED_MIN, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if not entry[2].is_over]
            heapify(self._heap)
            self._cancelled_count = 0

    def _run_one(self, timer: Timer, horizon_ns: int) -> None:
        action = timer.action
        if timer.interval_ns:
            timer.due_ns = horizon_ns + timer.interval_ns
            self._arm(timer)
        else:
            timer.is_over = True
            timer.action = _nothing
        self._faults.guard(f"timer {timer.name}", action)

    def _arm(self, timer: Timer) -> Timer:
        heappush(self._heap, (timer.due_ns, next(self._numbers), timer))
        return timer
