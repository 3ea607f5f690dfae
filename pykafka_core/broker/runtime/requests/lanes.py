"""Lanes: a burst of requests about one group delays that group, not the others."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC

T = TypeVar("T")

Lane = tuple[str, bytes]
"""The topic whose partition coordinates a key, and the key."""

KEY_BYTES_MAX = 2**15 - 1
"""The longest string that a request may hold."""

NO_LANE: Lane = ("", b"")
"""The one of all that does not concern one key: it stays in the order of arrival."""


class Lanes(Generic[T]):
    """Items that wait, each in a lane.

    Theory of operation. `pop` returns in turn the oldest item of all and the oldest one of the next
    lane. So an item waits for at most twice as many items as came before it, however many lanes
    have some; and the first item of a lane waits for some two items of each other lane, however
    many wait in one. A lane keeps its order.
    """

    def __init__(self) -> None:
        self._lanes: OrderedDict[Lane, OrderedDict[Hashable, T]] = OrderedDict()
        """In the order of their turns."""
        self.arrived: OrderedDict[Hashable, Lane] = OrderedDict()
        """The lanes of all items by their keys, the oldest one first; empty if none waits."""
        self._takes_oldest = False

    def push(self, lane: Lane, key: Hashable, item: T) -> None:
        """Add an item; no other that waits has its key."""
        items = self._lanes.get(lane)
        if items is None:
            items = self._lanes[lane] = OrderedDict()
        items[key] = item
        self.arrived[key] = lane

    def pop(self) -> T:
        """Remove the next item, of which there is one."""
        self._takes_oldest = not self._takes_oldest
        if self._takes_oldest or len(self._lanes) == 1:
            key, lane = self.arrived.popitem(last=False)
            items = self._lanes[lane]
            item = items.pop(key)
        else:
            lane, items = next(iter(self._lanes.items()))
            self._lanes.move_to_end(lane)
            key, item = items.popitem(last=False)
            del self.arrived[key]
        if not items:
            del self._lanes[lane]
        return item

    def remove(self, key: Hashable) -> Lane | None:
        """Remove an item; the lane in which it waited, if it did."""
        lane = self.arrived.pop(key, None)
        if lane is not None:
            items = self._lanes[lane]
            del items[key]
            if not items:
                del self._lanes[lane]
        return lane

    def clear(self) -> None:
        """Remove all."""
        self._lanes.clear()
        self.arrived.clear()


class _Form:
    """Where the key stands in requests of an API: it is the first string.

    Args:
        topic: Whose partition coordinates the key.
        compact: The first version with compact lengths.
        array: The first version in which the key is in an array.
    """

    __slots__ = "array", "compact", "topic"

    def __init__(self, topic: str, compact: int, array: int = 100) -> None:
        self.topic = topic
        self.compact = compact
        self.array = array


_FORMS = {
    8: _Form(GROUP_TOPIC, 8),
    9: _Form(GROUP_TOPIC, 6, array=8),
    11: _Form(GROUP_TOPIC, 6),
    12: _Form(GROUP_TOPIC, 4),
    13: _Form(GROUP_TOPIC, 4),
    14: _Form(GROUP_TOPIC, 4),
    22: _Form(TRANSACTION_TOPIC, 2),
    24: _Form(TRANSACTION_TOPIC, 3, array=4),
    25: _Form(TRANSACTION_TOPIC, 3),
    26: _Form(TRANSACTION_TOPIC, 3),
    28: _Form(TRANSACTION_TOPIC, 3),
    47: _Form(GROUP_TOPIC, 100),
    68: _Form(GROUP_TOPIC, 0),
}
"""APIs whose requests concern one key, at least in some versions. A producer's requests have the lane
of its transactional id, TxnOffsetCommit too."""
_ONE_ITEM = b"\2"
"""A compact array of one item begins so."""


def lane_of(api_key: int, api_version: int, body: bytes) -> Lane:
    """The lane of a request; `NO_LANE` if it concerns several keys, or none, or is malformed."""
    form = _FORMS.get(api_key)
    if form is None:
        return NO_LANE
    at = 0
    if api_version >= form.array:
        if body[:1] != _ONE_ITEM:
            return NO_LANE
        at = 1
    key = _compact(body, at) if api_version >= form.compact else _plain(body)
    return (form.topic, key) if key else NO_LANE


def _plain(body: bytes) -> bytes:
    size = int.from_bytes(body[:2], "big", signed=True)
    return body[2 : 2 + size] if size > 0 else b""


def _compact(body: bytes, at: int) -> bytes:
    size = shift = 0
    for byte in body[at : at + 3]:
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return body[at : at + size - 1] if 1 < size <= KEY_BYTES_MAX + 1 else b""
        shift += 7
    return b""
