"""Requests that a shard has not run yet. The shard's deadlines must not run before them."""

from collections.abc import Callable, Hashable, Mapping
from heapq import heappop, heappush
from itertools import count

from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.metadata.image.image import Topic
from pykafka_core.types import FOREVER_NS

FORGOTTEN_MAX = 64
"""Removed requests that one call forgets."""

_Shard = tuple[str, int]
"""Topic and partition."""


class _Arrivals:
    """Arrival times of one shard's requests.

    Theory of operation. A removed request stays in the heap until it is the oldest one. Each call
    forgets a limited number of them, more than one call removes. Until then the result is the
    arrival time of a removed request, which is earlier than that of any waiting one: a deadline
    waits for one more turn, but never runs too early.
    """

    __slots__ = "_heap", "numbers", "shard"

    def __init__(self, shard: _Shard) -> None:
        self.shard = shard
        self.numbers: set[int] = set()
        """Numbers of the requests that wait."""
        self._heap: list[tuple[int, int]] = []

    def add(self, received_ns: int, number: int) -> None:
        self.numbers.add(number)
        heappush(self._heap, (received_ns, number))

    def remove(self, number: int) -> None:
        self.numbers.remove(number)
        self._forget(2)

    def oldest_ns(self) -> int:
        self._forget(FORGOTTEN_MAX)
        return self._heap[0][0]

    def _forget(self, count_max: int) -> None:
        for _ in range(count_max):
            if not self._heap or self._heap[0][1] in self.numbers:
                break
            heappop(self._heap)


class Unread:
    """Arrival times of the requests that wait for their turn, by the shard that they concern.

    A member's session does not expire while its heartbeat waits here (docs/PLANES.md S6). Requests
    about other shards do not count, nor do requests about several keys, which members do not send.

    Args:
        topics: Returns the committed topics by name: their partitions are the shards.
    """

    def __init__(self, topics: Callable[[], Mapping[str, Topic]]) -> None:
        self._topics = topics
        self._numbers = count()
        self._waiting: dict[Hashable, tuple[_Arrivals, int]] = {}
        self._shards: dict[_Shard, _Arrivals] = {}

    def add(self, request: PendingRequest) -> None:
        """Add a request that waits for its turn."""
        if request.lane is NO_LANE:
            return
        shard = self._shard_of(request.lane)
        arrivals = self._shards.get(shard)
        if arrivals is None:
            arrivals = self._shards[shard] = _Arrivals(shard)
        number = next(self._numbers)
        arrivals.add(request.caller.received_ns, number)
        self._waiting[request.key] = arrivals, number

    def remove(self, key: Hashable) -> None:
        """Remove a request that its shard has run, or that has ended."""
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return
        arrivals, number = waiting
        arrivals.remove(number)
        if not arrivals.numbers:
            del self._shards[arrivals.shard]

    def clear(self) -> None:
        """Remove all requests when the broker stops."""
        self._waiting.clear()
        self._shards.clear()

    def oldest_ns(self, topic: str, partition: int) -> int:
        """Return the arrival time of the oldest request of a shard, or an earlier time;
        `FOREVER_NS` if there is none.

        The time that this takes does not grow with the number of requests.
        """
        arrivals = self._shards.get((topic, partition))
        return FOREVER_NS if arrivals is None else arrivals.oldest_ns()

    def _shard_of(self, lane: Lane) -> _Shard:
        name, key = lane
        topic = self._topics().get(name)
        if topic is None or not topic.partitions:
            return name, -1
        return name, coordinator_partition(key.decode(errors="replace"), len(topic.partitions))
