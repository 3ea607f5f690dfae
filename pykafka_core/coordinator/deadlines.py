"""Deadlines of a shard, one for each key."""

from collections.abc import Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count

from pykafka_core.types import FOREVER_NS

_STALE_MIN = 64


class Deadlines:
    """Deadlines by key.

    Moving a deadline later only changes a dictionary entry; its heap entry is corrected when it is
    due.

    Deadlines count from the time at which a member or a producer can get its response. So the
    caller takes those that an operation has set (`take_set`), and postpones them by the time that
    its commit took.
    """

    def __init__(self) -> None:
        self._due: dict[Hashable, int] = {}
        self._queued: dict[Hashable, int] = {}
        """Time of the heap entry of a key: its deadline, or an earlier time."""
        self._heap: list[tuple[int, int, Hashable]] = []
        self._numbers = count()
        self._set: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Hashable, due_ns: int) -> None:
        """Set the deadline of ``key``, or move it."""
        self._due[key] = self._set[key] = due_ns
        queued = self._queued.get(key)
        if queued is None or due_ns < queued:
            self._queue(key, due_ns)

    def cancel(self, key: Hashable) -> None:
        """Remove the deadline of ``key``, if it has one."""
        if self._due.pop(key, None) is not None:
            self._drop_stale()

    def get(self, key: Hashable) -> int | None:
        """Return the deadline of ``key``, or None."""
        return self._due.get(key)

    def take_set(self) -> dict[Hashable, int]:
        """Return the deadlines that were set since the last call."""
        taken, self._set = self._set, {}
        return taken

    def postpone(self, taken: Mapping[Hashable, int], duration_ns: int) -> None:
        """Move deadlines that `take_set` returned, except those that have changed since."""
        for key, due_ns in taken.items():
            if self._due.get(key) == due_ns:
                self._due[key] = due_ns + duration_ns

    def next_ns(self) -> int:
        """Return a time no later than the first deadline; `FOREVER_NS` if there is no deadline."""
        while self._heap:
            due_ns, _, key = self._heap[0]
            if self._queued.get(key) == due_ns and key in self._due:
                return due_ns
            heappop(self._heap)
            if self._queued.get(key) == due_ns:
                del self._queued[key]
        return FOREVER_NS

    def take_due(self, now_ns: int) -> Iterator[Hashable]:
        """Yield the keys whose deadlines have passed, earliest first; each deadline is removed
        before its key is yielded.

        Deadlines may be set and cancelled during the iteration.
        """
        while self.next_ns() <= now_ns:
            queued_ns, _, key = heappop(self._heap)
            del self._queued[key]
            due_ns = self._due[key]
            if due_ns > queued_ns:
                self._queue(key, due_ns)
            else:
                del self._due[key]
                yield key

    def _queue(self, key: Hashable, due_ns: int) -> None:
        self._queued[key] = due_ns
        heappush(self._heap, (due_ns, next(self._numbers), key))
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Rebuild the heap when most entries are stale: their deadlines were cancelled or moved
        earlier.
        """
        if len(self._heap) <= _STALE_MIN + 2 * len(self._due):
            return
        self._queued = {key: due_ns for key, due_ns in self._queued.items() if key in self._due}
        self._heap = [(due_ns, next(self._numbers), key) for key, due_ns in self._queued.items()]
        heapify(self._heap)
