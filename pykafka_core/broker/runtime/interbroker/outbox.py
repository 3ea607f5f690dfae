"""What is to be asked of each node: one request is under way to a node, what comes meanwhile goes with the next one.

A value: it sends nothing. So a node that is slow, or many that ask at once, make requests larger, not more of them.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Outbox(Generic[T]):
    """Items by node, in the order in which they came.

    Args:
        key: A request holds one item of each key, as its answer names items by it.
        size: Of an item.
        size_max: Of the items of one request; an item that is larger goes alone.
        is_wanted: Asked before an item leaves; one that is not wanted any more is dropped.
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
        """Have an item asked of a node."""
        self._waiting.setdefault(node_id, deque()).append(item)

    def ready(self) -> list[int]:
        """Nodes for which something waits, and to which nothing is under way."""
        return [node_id for node_id in self._waiting if node_id not in self._under_way]

    def take(self, node_id: int) -> list[T]:
        """The items of the next request to a node, which is under way from here on.

        Empty if one is under way already, or no item is wanted.
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
        """The request to a node has ended."""
        self._under_way.discard(node_id)

    def clear(self) -> None:
        """Forget all."""
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
