"""What is to be done at a time: once, or every so often. One heap.

Timers are judged by the core's horizon, the time up to which every event was handled (docs/SEAM.md S6): a
stalled interpreter, or a long queue, never lets a timer fire before the events that came first.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from pykafka_core.broker.runtime.faults import Faults

NS_PER_MS = 1_000_000
FOREVER_NS = 2**62
CANCELLED_MIN = 64
"""Below this it is not worth to take cancelled timers out of the heap before they are due."""


def _nothing() -> None:
    """Do nothing."""


class Timer:
    """Something to do. `action` is called once when ``due_ns`` is past, or again and again."""

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
        """Never call the action any more, and keep nothing that it needs. Idempotent; after the last run nothing."""
        if not self.is_over:
            self.is_over = True
            self.action = _nothing
            self._owner.note_cancelled()


class Timers:
    """All timers of one control thread, to which they belong.

    Args:
        faults: Takes note of a timer that fails: it costs that run.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._cancelled_count = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled_count

    def once(self, name: str, due_ns: int, action: Callable[[], object]) -> Timer:
        """Call ``action`` when ``due_ns`` is past; ``name`` is for reports of its faults."""
        return self._arm(Timer(self, name, due_ns, 0, action))

    def every(
        self, name: str, interval_ms: int, now_ns: int, action: Callable[[], object]
    ) -> Timer:
        """Call ``action`` every so often, first after one interval; the next run is an interval after a late one."""
        interval_ns = interval_ms * NS_PER_MS
        return self._arm(Timer(self, name, now_ns + interval_ns, interval_ns, action))

    def next_due_ns(self) -> int:
        """When the next timer is due, or long after everything."""
        while self._heap and self._heap[0][2].is_over:
            heappop(self._heap)
            self._cancelled_count -= 1
        return self._heap[0][0] if self._heap else FOREVER_NS

    def run(self, horizon_ns: int, is_stopping: Callable[[], bool] = lambda: False) -> bool:
        """Run what is due at the horizon, in the order of the times; a stop is looked at between any two.

        What an action arms waits for the next call.

        Returns:
            Whether anything was due.
        """
        limit, ran = next(self._numbers), False
        while self.next_due_ns() <= horizon_ns and self._heap[0][1] < limit and not is_stopping():
            self._run_one(heappop(self._heap)[2], horizon_ns)
            ran = True
        return ran

    def note_cancelled(self) -> None:
        """A timer in the heap is over."""
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
