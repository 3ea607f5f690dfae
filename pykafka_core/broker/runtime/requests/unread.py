"""Requests that a shard has not run yet. The shard's deadlines must not run before them."""

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.broker.runtime.requests.requests import Asked
from pykafka_core.coordinator.deadlines import FOREVER_NS
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.metadata.image.image import Topic

_Shard = tuple[str, int]
"""Topic and partition."""


class _Arrivals(NamedTuple):
    shard: _Shard
    times: dict[Hashable, int]


class Unread:
    """Arrival times of the requests that wait for their turn, by the shard that they concern.

    A member's session does not expire while its heartbeat waits here (docs/SEAM.md S6). Requests
    about other shards do not count, nor do requests about several keys, which members do not send.

    Args:
        topics: Returns the committed topics by name: their partitions are the shards.
    """

    def __init__(self, topics: Callable[[], Mapping[str, Topic]]) -> None:
        self._topics = topics
        self._lanes: dict[Lane, _Arrivals] = {}
        self._shards: dict[_Shard, set[Lane]] = {}

    def add(self, asked: Asked) -> None:
        """Add a request that waits for its turn."""
        lane = asked.lane
        if lane is NO_LANE:
            return
        arrivals = self._lanes.get(lane)
        if arrivals is None:
            arrivals = self._lanes[lane] = _Arrivals(self._shard_of(lane), {})
            self._shards.setdefault(arrivals.shard, set()).add(lane)
        arrivals.times[asked.key] = asked.caller.received_ns

    def remove(self, lane: Lane, key: Hashable) -> None:
        """Remove a request that its shard has run, or that has ended."""
        arrivals = self._lanes.get(lane)
        if arrivals is None:
            return
        arrivals.times.pop(key, None)
        if not arrivals.times:
            del self._lanes[lane]
            lanes = self._shards[arrivals.shard]
            lanes.remove(lane)
            if not lanes:
                del self._shards[arrivals.shard]

    def clear(self) -> None:
        """Remove all requests when the broker stops."""
        self._lanes.clear()
        self._shards.clear()

    def oldest_ns(self, topic: str, partition: int, due_ns: int) -> int:
        """Return the arrival time of the oldest request of a shard; `FOREVER_NS` if there is none.

        If any request arrived before ``due_ns``, the result is the arrival time of such a request,
        which need not be the oldest one: a deadline at ``due_ns`` waits for it anyway, and the
        search ends early, because a shard with many waiting requests repeats it in each turn.
        """
        oldest_ns = FOREVER_NS
        for lane in self._shards.get((topic, partition), ()):
            oldest_ns = min(oldest_ns, min(self._lanes[lane].times.values()))
            if oldest_ns < due_ns:
                break
        return oldest_ns

    def _shard_of(self, lane: Lane) -> _Shard:
        name, key = lane
        topic = self._topics().get(name)
        if topic is None or not topic.partitions:
            return name, -1
        return name, coordinator_partition(key.decode(errors="replace"), len(topic.partitions))
