"""What a shard has to do at a time: one deadline for each key."""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from pykafka_core.coordinator.shard import FOREVER_NS

NS_PER_MS = 1_000_000
_STALE_MIN = 64


class Deadlines:
    """Deadlines by key. Moving one later costs a dictionary's entry: its heap entry is looked at when it is due."""

    def __init__(self) -> None:
        self._due: dict[Hashable, int] = {}
        self._queued: dict[Hashable, int] = {}
        """When the heap's entry of a key is due: at its deadline or before."""
        self._heap: list[tuple[int, int, Hashable]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Hashable, due_ns: int) -> None:
        """Set the deadline of ``key``, or move it."""
        self._due[key] = due_ns
        queued = self._queued.get(key)
        if queued is None or due_ns < queued:
            self._queue(key, due_ns)

    def cancel(self, key: Hashable) -> None:
        """``key`` has no deadline any more, if it had one."""
        if self._due.pop(key, None) is not None:
            self._drop_stale()

    def get(self, key: Hashable) -> int | None:
        """The deadline of ``key``."""
        return self._due.get(key)

    def next_ns(self) -> int:
        """When the first deadline may be due: at it or before; `FOREVER_NS` without any."""
        while self._heap:
            due_ns, _, key = self._heap[0]
            if self._queued.get(key) == due_ns and key in self._due:
                return due_ns
            heappop(self._heap)
            if self._queued.get(key) == due_ns:
                del self._queued[key]
        return FOREVER_NS

    def take_due(self, now_ns: int) -> Iterator[Hashable]:
        """Keys whose deadlines are past, in their order; each has none when it is given out.

        Deadlines may be set and cancelled meanwhile.
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
        """Rebuild the heap when most of it is stale: of cancelled deadlines, and of those that moved earlier."""
        if len(self._heap) <= _STALE_MIN + 2 * len(self._due):
            return
        self._queued = {key: due_ns for key, due_ns in self._queued.items() if key in self._due}
        self._heap = [(due_ns, next(self._numbers), key) for key, due_ns in self._queued.items()]
        heapify(self._heap)
