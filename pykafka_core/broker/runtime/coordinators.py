"""The coordinators' shards on this node: those of the partitions that it leads."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completions
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.gathering import Answer, Gathering
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests import Asked
from pykafka_core.broker.runtime.shard_host import ShardHost, ShardPlace
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.broker.runtime.turns import advanced
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import Waiter
from pykafka_core.errors import NotCoordinatorError
from pykafka_core.handlers.outcome import Coordinate, Coordinated, Slices
from pykafka_core.metadata.image.image import MetadataImage, Topic
from pykafka_core.types import GROUP_TOPIC, RESOURCE_TOPIC


class _Slot(NamedTuple):
    """Where the result of one operation goes."""

    gathering: Gathering[Coordinated]
    place: int


class _Answers:
    """The shards' `Answers`."""

    def answered(self, waiter: Waiter, answer: object) -> None:
        """Give it to the request."""
        assert isinstance(waiter, _Slot), "waiters are made here"
        waiter.gathering.add(waiter.place, Coordinated(0, answer))

    def refused(self, waiter: Waiter, error_code: int) -> None:
        """Give it to the request."""
        assert isinstance(waiter, _Slot), "waiters are made here"
        waiter.gathering.add(waiter.place, Coordinated(error_code))


class Coordinators:
    """Runs operations on shards. Belongs to the control thread.

    Args:
        core: Has the logs.
        node_id: This node.
        completions: Where appends are waited for.
        requests: Where requests end that wait for operations.
        timers: Run what is due in the shards.
        faults: Takes note of what fails alone.
        publisher: Has the committed image, which says what this node leads.
        make_group_shard: Makes an empty machine.
    """

    def __init__(
        self,
        *,
        core: Core,
        node_id: int,
        completions: Completions,
        requests: OpenRequests,
        timers: Timers,
        faults: Faults,
        publisher: Publisher,
        make_group_shard: Callable[[], GroupShard],
    ) -> None:
        self._core = core
        self._node_id = node_id
        self._requests = requests
        self._publisher = publisher
        self._make_group_shard = make_group_shard
        self._host = partial(
            ShardHost[GroupShard],
            core=core,
            completions=completions,
            timers=timers,
            faults=faults,
            answers=_Answers(),
        )
        self._groups: dict[int, ShardHost[GroupShard]] = {}
        self._loading: deque[Slices[None]] = deque()
        self._topic: Topic | None = None
        self.follow(publisher.image)
        publisher.followers.append(self.follow)

    def begin(self, asked: Asked, outcome: Coordinate, answer: Answer) -> Slices[None]:
        """Run a request's operations; ``answer`` gets its reply when all are answered."""
        count = len(outcome.operations)
        gathering = Gathering(asked, count, outcome.reply, answer)
        if self._requests.is_open(asked):
            self._requests.when_over(asked, gathering.drop)
        now_ns = asked.caller.received_ns or self._core.now_ns()
        for place, operation in enumerate(outcome.operations):
            waiter = _Slot(gathering, place)
            host = self._groups.get(operation.partition)
            if host is None:
                gathering.add(place, Coordinated(NotCoordinatorError.code))
            else:
                host.submit(operation.run, waiter, now_ns)
            yield
        gathering.answer_if_complete()

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to do without an event."""
        return bool(self._loading)

    def advance(self, deadline_ns: int) -> None:
        """Replay what was read, and append what operations came to."""
        for host in self._groups.values():
            work = host.carry_on_loading()
            if work is not None:
                self._loading.append(work)
        while self._loading and self._core.now_ns() < deadline_ns:
            if advanced(self._loading[0], self._core, deadline_ns):
                self._loading.popleft()
        for host in self._groups.values():
            host.flush()

    def drop_all(self) -> None:
        """The broker stops: whoever waited has been told."""
        self._groups.clear()
        self._loading.clear()

    def follow(
        self, image: MetadataImage, deleted: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Take in a committed image: load the shards of partitions that this node leads now, close those of others.

        Args:
            image: From now on it is what counts.
            deleted: Topics that it does not have any more: ids by name.
        """
        topic = image.topics.by_name.get(GROUP_TOPIC)
        if topic is not self._topic:
            self._topic = topic
            self._follow_topic(image, topic)
        if deleted:
            for host in self._groups.values():
                host.topics_deleted(deleted)

    def _follow_topic(self, image: MetadataImage, topic: Topic | None) -> None:
        led = {} if topic is None else dict(self._led(topic))
        for index, host in list(self._groups.items()):
            if led.get(index) != host.place:
                del self._groups[index]
                host.close(NotCoordinatorError.code)
        overrides = image.configs.of(RESOURCE_TOPIC, GROUP_TOPIC)
        bytes_max = int(self._publisher.settings.topic_value("max.message.bytes", overrides) or 0)
        for index, place in led.items():
            if index not in self._groups:
                make = self._make_group_shard
                self._groups[index] = self._host(place, make, batch_bytes_max=bytes_max)

    def _led(self, topic: Topic) -> Iterator[tuple[int, ShardPlace]]:
        for index, partition in topic.partitions.items():
            if partition.leader == self._node_id:
                epoch = partition.leader_epoch
                yield index, ShardPlace(topic.name, topic.topic_id, index, epoch)
