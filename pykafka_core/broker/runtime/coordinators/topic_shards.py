"""The shards of one internal topic on this node, one for each partition that it leads."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from pykafka_core._core import Core
from pykafka_core.broker.runtime.coordinators.shard_host import ShardHost, ShardPlace
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.time_slice import advanced
from pykafka_core.coordinator.shard import Shard
from pykafka_core.errors import NotCoordinatorError
from pykafka_core.handlers.outcome import Work
from pykafka_core.metadata.image.image import MetadataImage, Topic
from pykafka_core.types import RESOURCE_TOPIC

S = TypeVar("S", bound=Shard)


class MakeHost(Protocol[S]):
    """Creates the host of a shard, which starts to load it."""

    def __call__(
        self,
        place: ShardPlace,
        make: Callable[[], S],
        *,
        batch_bytes_max: int,
        ready: Callable[[ShardHost[S]], object],
    ) -> ShardHost[S]:
        """Create the host; for the arguments see `ShardHost`."""


class TopicShards(Generic[S]):
    """Hosts by partition. Used only by the control thread.

    Args:
        topic: Name of the internal topic.
        node_id: This node.
        core: Provides the clock.
        publisher: Has the committed image with the partitions that this node leads.
        host: Creates hosts.
        make: Creates an empty state machine.
    """

    def __init__(
        self,
        topic: str,
        *,
        node_id: int,
        core: Core,
        publisher: Publisher,
        host: MakeHost[S],
        make: Callable[[], S],
    ) -> None:
        self.topic = topic
        self._node_id = node_id
        self._core = core
        self._publisher = publisher
        self._host = host
        self._make = make
        self._hosts: dict[int, ShardHost[S]] = {}
        self._ready: dict[ShardHost[S], None] = {}
        """Hosts with records to replay or to append, or with queued operations, in the order of
        their calls of `ready`."""
        self._loading: deque[Work[None]] = deque()
        self._followed: Topic | None = None
        self._bytes_max = 0
        self.follow(publisher.image)
        publisher.followers.append(self.follow)

    def get(self, partition: int) -> ShardHost[S] | None:
        """Return the host of a partition, or None if this node does not lead it."""
        return self._hosts.get(partition)

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to do without an event."""
        return bool(self._loading or self._ready)

    def advance(self, deadline_ns: int) -> None:
        """Replay the records that were read, append the records of operations, and run queued
        operations until the deadline.
        """
        for host in self._ready:
            work = host.carry_on_loading()
            if work is not None:
                self._loading.append(work)
        while self._loading and self._core.now_ns() < deadline_ns:
            if advanced(self._loading[0], self._core, deadline_ns):
                self._loading.popleft()
        # A host that becomes ready during a flush is handled by the next call.
        ready, self._ready = self._ready, {}
        for host in ready:
            host.flush()
        self._work_off(deque(ready), deadline_ns)

    def drop_all(self) -> None:
        """Drop all hosts when the broker stops; all requests already have responses."""
        self._hosts.clear()
        self._ready.clear()
        self._loading.clear()

    def follow(
        self, image: MetadataImage, deleted: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Apply a committed image: load the shards of partitions that this node leads now, and
        close those that it no longer leads.

        Args:
            image: The new committed image.
            deleted: Ids of the deleted topics by name.
        """
        topic = image.topics.by_name.get(self.topic)
        if topic is not None:
            self._follow_limit(image)
        if topic is not self._followed:
            self._followed = topic
            self._follow_topic(topic)
        if deleted:
            for host in self._hosts.values():
                host.topics_deleted(deleted)

    def _work_off(self, hosts: deque[ShardHost[S]], deadline_ns: int) -> None:
        """Run queued operations. Hosts that get no time come first in the next call."""
        while hosts:
            hosts.popleft().work_off(deadline_ns)
            if self._core.now_ns() >= deadline_ns:
                break
        self._ready = {**dict.fromkeys(hosts), **self._ready}

    def _follow_limit(self, image: MetadataImage) -> None:
        """Apply a changed ``max.message.bytes`` to the shards in use."""
        overrides = image.configs.of(RESOURCE_TOPIC, self.topic)
        bytes_max = int(self._publisher.settings.topic_value("max.message.bytes", overrides) or 0)
        if bytes_max != self._bytes_max:
            self._bytes_max = bytes_max
            for host in self._hosts.values():
                host.limit_batches(bytes_max)

    def _follow_topic(self, topic: Topic | None) -> None:
        led = {} if topic is None else dict(self._led(topic))
        for index, host in list(self._hosts.items()):
            if led.get(index) != host.place:
                del self._hosts[index]
                host.close(NotCoordinatorError.code)
        for index, place in led.items():
            if index not in self._hosts:
                self._begin(place)

    def _begin(self, place: ShardPlace) -> None:
        self._hosts[place.partition] = self._host(
            place, self._make, batch_bytes_max=self._bytes_max, ready=self._note_ready
        )

    def _note_ready(self, host: ShardHost[S]) -> None:
        self._ready[host] = None

    def _led(self, topic: Topic) -> Iterator[tuple[int, ShardPlace]]:
        for index, partition in topic.partitions.items():
            if partition.leader == self._node_id:
                epoch = partition.leader_epoch
                yield index, ShardPlace(topic.name, topic.topic_id, index, epoch)
