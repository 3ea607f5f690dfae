"""Lanes: a burst of requests about one group delays that group, not the others."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC

T = TypeVar("T")

Lane = tuple[str, bytes]
"""A key, preceded by the internal topic whose partition coordinates it."""

KEY_BYTES_MAX = 2**15 - 1
"""The longest string that a request may hold."""

NO_LANE: Lane = ("", b"")
"""The lane of all items that do not concern exactly one key; they keep their order of arrival."""


class Lanes(Generic[T]):
    """A queue of items, each in a lane.

    Theory of operation. `pop` alternates between the oldest item of all and the oldest item of the
    next lane. So an item waits for at most twice as many items as arrived before it, whatever the
    number of lanes. The first item of a lane waits for some two items of each other lane, whatever
    the number of items in a lane. The order within a lane is kept.
    """

    def __init__(self) -> None:
        self._lanes: OrderedDict[Lane, OrderedDict[Hashable, T]] = OrderedDict()
        """Items by lane; the lanes are in the order of their turns."""
        self.arrived: OrderedDict[Hashable, Lane] = OrderedDict()
        """The lane of each item by the item's key, oldest item first."""
        self._takes_oldest = False

    def push(self, lane: Lane, key: Hashable, item: T) -> None:
        """Add an item; its key must be unique in the queue."""
        items = self._lanes.get(lane)
        if items is None:
            items = self._lanes[lane] = OrderedDict()
        items[key] = item
        self.arrived[key] = lane

    def pop(self) -> T:
        """Remove and return the next item; there must be one."""
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
        """Remove an item; return its lane, or None if it is not in the queue."""
        lane = self.arrived.pop(key, None)
        if lane is not None:
            items = self._lanes[lane]
            del items[key]
            if not items:
                del self._lanes[lane]
        return lane

    def clear(self) -> None:
        """Remove all items."""
        self._lanes.clear()
        self.arrived.clear()


_NEVER = 100
"""Stands for a version that no API has."""


class _Form:
    """The position of the key in the requests of an API: it is the first string.

    Args:
        topic: The internal topic whose partition coordinates the key.
        compact: The first version with compact lengths.
        array: The first version in which the key is an element of an array.
    """

    __slots__ = "array", "compact", "topic"

    def __init__(self, topic: str, compact: int, array: int = _NEVER) -> None:
        self.topic = topic
        self.compact = compact
        self.array = array


_FORMS = {
    8: _Form(GROUP_TOPIC, 8),  # OffsetCommit
    9: _Form(GROUP_TOPIC, 6, array=8),  # OffsetFetch
    11: _Form(GROUP_TOPIC, 6),  # JoinGroup
    12: _Form(GROUP_TOPIC, 4),  # Heartbeat
    13: _Form(GROUP_TOPIC, 4),  # LeaveGroup
    14: _Form(GROUP_TOPIC, 4),  # SyncGroup
    22: _Form(TRANSACTION_TOPIC, 2),  # InitProducerId
    24: _Form(TRANSACTION_TOPIC, 3, array=4),  # AddPartitionsToTxn
    25: _Form(TRANSACTION_TOPIC, 3),  # AddOffsetsToTxn
    26: _Form(TRANSACTION_TOPIC, 3),  # EndTxn
    28: _Form(TRANSACTION_TOPIC, 3),  # TxnOffsetCommit
    47: _Form(GROUP_TOPIC, _NEVER),  # OffsetDelete
    68: _Form(GROUP_TOPIC, 0),  # ConsumerGroupHeartbeat
}
"""APIs whose requests concern one key, at least in some versions. All requests of a producer, even
TxnOffsetCommit, are in the lane of its transactional id."""
_ONE_ITEM = b"\2"
"""The length of a compact array with one item."""


def lane_of(api_key: int, api_version: int, body: bytes) -> Lane:
    """Return the lane of a request; `NO_LANE` if it concerns several keys or none, or is
    malformed.
    """
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
