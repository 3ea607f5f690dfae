"""Per-node queue of items: at most one request is in flight per node, and new items go into the
next request.

It sends nothing itself. With a slow node or many items, requests become larger, not more numerous.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Outbox(Generic[T]):
    """Items by node, in the order of their arrival.

    Args:
        key: A request holds at most one item of each key, because the response identifies items by
            it.
        size: Returns the size of an item.
        size_max: Maximum size of the items of one request; a larger item is sent alone.
        is_wanted: Called before an item is sent; an item that is no longer wanted is dropped.
    """

    def __init__(
        self,
        *,
        key: Callable[[T], Hashable],
        size: Callable[[T], int],
        size_max: int,
        is_wanted: Callable[[T], bool],
    ) -> None:
        self._key = key
        self._size = size
        self._size_max = size_max
        self._is_wanted = is_wanted
        self._waiting: dict[int, deque[T]] = {}
        self._under_way: set[int] = set()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, node_id: int, item: T) -> None:
        """Queue an item for a node."""
        self._waiting.setdefault(node_id, deque()).append(item)

    def ready(self) -> list[int]:
        """Return the nodes with queued items and no request in flight."""
        return [node_id for node_id in self._waiting if node_id not in self._under_way]

    def take(self, node_id: int) -> list[T]:
        """Return the items of the next request to a node, which is in flight from now on.

        Empty if a request is in flight already, or no item is wanted.
        """
        waiting = self._waiting.get(node_id)
        if waiting is None or node_id in self._under_way:
            return []
        taken, left = self._split(waiting)
        if left:
            self._waiting[node_id] = left
        else:
            del self._waiting[node_id]
        if taken:
            self._under_way.add(node_id)
        return taken

    def over(self, node_id: int) -> None:
        """Note that the request to a node has ended."""
        self._under_way.discard(node_id)

    def clear(self) -> None:
        """Forget all items and requests."""
        self._waiting.clear()
        self._under_way.clear()

    def _split(self, waiting: deque[T]) -> tuple[list[T], deque[T]]:
        taken: list[T] = []
        left: deque[T] = deque()
        keys: set[Hashable] = set()
        size = 0
        while waiting:
            item = waiting.popleft()
            if not self._is_wanted(item):
                continue
            key, item_size = self._key(item), self._size(item)
            if key in keys:
                left.append(item)
                continue
            if taken and size + item_size > self._size_max:
                left.append(item)
                break
            keys.add(key)
            taken.append(item)
            size += item_size
        left.extend(waiting)
        return taken, left
