"""Consumer groups without a broker: the test sends heartbeats, gets responses and records, and
controls time and topics.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from typing import Any

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.heartbeat import consumer_heartbeat
from pykafka_core.coordinator.group.consumer.heartbeat_request import Heartbeat
from pykafka_core.coordinator.group.consumer.leave import consumer_leave
from pykafka_core.coordinator.group.consumer.member import Assignment
from pykafka_core.coordinator.group.consumer.topics import GroupTopic
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.group.offsets.commit import (
    NO_RETENTION,
    NewOffset,
    StoredOffset,
    stored_offset,
)
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.settings import ConsumerGroupSettings, GroupSettings
from pykafka_core.coordinator.shard import CoordinatorResult, KeyValue, Waiter
from pykafka_core.errors import KafkaError
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.classic.world import SETTINGS as CLASSIC_SETTINGS

MS = 1_000_000
GROUP = "g"
FIRST = 2
"""The epoch of a group's first target assignment, as in Kafka since 4.3; in 4.2 it was 1."""
SESSION_MS, INTERVAL_MS, REBALANCE_MS = 45_000, 5_000, 60_000
BYTES_MAX = 1_000_000
SETTINGS = CLASSIC_SETTINGS._replace(
    consumer=ConsumerGroupSettings(max_size=100, assignment_interval_ms=0)
)
NOTHING_SAID = Heartbeat(
    group_id=GROUP,
    member_id="",
    member_epoch=0,
    instance_id=None,
    rack_id=None,
    rebalance_timeout_ms=-1,
    topic_names=None,
    topic_regex=None,
    server_assignor=None,
    owned=None,
    client_id="client",
    client_host="/127.0.0.1",
    session_timeout_ms=SESSION_MS,
    heartbeat_interval_ms=INTERVAL_MS,
)
Operation = Callable[[GroupShard, Waiter, CoordinatorResult], None]


def topic_id(name: str) -> bytes:
    """Return the id of the first topic with this name."""
    return name.encode().ljust(16, b"\0")


def offset_of(topic: str, partition: int) -> StoredOffset:
    """Return offset 5 of a partition, for a commit of `GROUP`."""
    new = NewOffset(topic, partition, 5, -1, "", topic_id(topic))
    return stored_offset(OffsetRecords(GROUP, topic), new, NO_RETENTION, 0)


class Topics:
    """A `TopicsView`: partition counts by name, which a test may change."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)
        self.version: object = object()
        self.offset = 7

    def set(self, name: str, partitions_count: int) -> None:
        """Set the number of partitions of a topic; 0 removes it."""
        self._counts[name] = partitions_count
        self.version = object()

    def topic(self, name: str) -> GroupTopic | None:
        found = self._counts.get(name)
        return GroupTopic(name, topic_id(name), found) if found else None

    def matching(self, regex: str) -> frozenset[str]:
        """Return the matching topics; an expression here is a prefix followed by ``.*``."""
        start = regex.removesuffix(".*")
        return frozenset(
            name for name, found in self._counts.items() if found and name.startswith(start)
        )


class World:
    """A shard and its records. After each step, a shard that is loaded from them must be equal."""

    def __init__(
        self,
        counts: Mapping[str, int] | None = None,
        settings: GroupSettings = SETTINGS,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self.topics = Topics({"t": 6} if counts is None else counts)
        self.settings, self.bytes_max = settings, bytes_max
        numbers = count(1)
        self.shard = GroupShard(settings, lambda: f"uuid{next(numbers)}", self._topic_id)
        self.now_ms = 1_000
        self.records: list[KeyValue] = []
        self.responses: dict[Waiter, object] = {}
        self._waiters = count(1)

    def ask(self, operation: Operation) -> object:
        """Run an operation; return its response or error code. Checks that a refusal changes
        nothing.
        """
        return self.responses.pop(self.submit(operation))

    def submit(self, operation: Operation) -> Waiter:
        """Run an operation; return its waiter, whose response may come later."""
        waiter, result, before = next(self._waiters), self._turn(), dump(self.shard)
        try:
            operation(self.shard, waiter, result)
        except KafkaError as error:
            assert dump(self.shard) == before, "a refusal changes nothing"
            self.responses[waiter] = error.code
            return waiter
        self._take(result)
        return waiter

    def beat(self, member_id: str, epoch: int, **said: Any) -> Any:
        """Send a heartbeat to `GROUP`; return the response."""
        given: dict[str, Any] = {"member_id": member_id, "member_epoch": epoch, **said}
        beat = NOTHING_SAID._replace(**given)
        return self.ask(partial(consumer_heartbeat, beat, self.topics))

    def join(self, member_id: str, *topics: str, **said: Any) -> Any:
        """Send the heartbeat of a member that joins, for the first time or again."""
        names = frozenset(topics or ("t",))
        full = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": names, "owned": {}} | said
        return self.beat(member_id, 0, **full)

    def leave(self, member_id: str, epoch: int = -1, instance_id: str | None = None) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, instance_id=instance_id
        )
        return self.ask(partial(consumer_leave, request, self.topics))

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; each deadline is run when it is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ns := self.shard.deadlines.next_ns()) <= end_ms * MS:
            self.now_ms = max(self.now_ms, -(-due_ns // MS))
            result = self._turn()
            self.shard.run_due(result)
            self._take(result)
        self.now_ms = end_ms

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.consumer_groups[GROUP]

    def reloaded(self) -> GroupShard:
        """Return a shard that was loaded from the stored records."""
        other = GroupShard(self.settings, lambda: "uuid", self._topic_id)
        for key, value in self.records:
            other.replay(-1, key, value)
        return other

    def _topic_id(self, name: str) -> bytes | None:
        topic = self.topics.topic(name)
        return None if topic is None else topic.topic_id

    def _turn(self) -> CoordinatorResult:
        return CoordinatorResult(self.now_ms * MS, self.now_ms, self.bytes_max)

    def _take(self, result: CoordinatorResult) -> None:
        self.records += result.records
        self.responses.update(result.responses)
        assert dump(self.reloaded()) == dump(self.shard), "the records say all"
        check(self.shard)


def with_interval(interval_ms: int) -> World:
    """Return a world with this assignment interval."""
    consumer = SETTINGS.consumer._replace(assignment_interval_ms=interval_ms)
    return World(settings=SETTINGS._replace(consumer=consumer))


def dump(shard: GroupShard) -> object:
    """Return the stored state of a shard's groups."""
    consumers = {
        group_id: (
            group.epoch,
            group.metadata_hash,
            group.assignment_epoch,
            group.assignment_time_ms,
            dict(group.members),
            dict(group.static_members),
            dict(group.targets),
            dict(group.regexes),
            {topic: dict(held) for topic, held in group.holders.items()},
            sorted(group.subscribed_names()),
            group.preferred_assignor(),
        )
        for group_id, group in shard.consumer_groups.items()
    }
    return consumers, set(shard.groups)


def check(shard: GroupShard) -> None:
    """Check that each partition has at most one holder, and is in at most one target."""
    for group in shard.consumer_groups.values():
        held = [place for member in group.members.values() for place in member.held()]
        assert len(held) == len(set(held)), "no partition has two holders"
        assert group.assignment_epoch <= group.epoch
        given = [
            (topic, number)
            for target in group.targets.values()
            for topic, numbers in target.items()
            for number in numbers
        ]
        assert len(given) == len(set(given)), "no partition is to go to two members"


def assigned(response: ConsumerGroupHeartbeatResponse) -> Assignment:
    """Return the assignment of a response, which must have one."""
    assert response.assignment is not None
    return {row.topic_id: frozenset(row.partitions) for row in response.assignment.topic_partitions}


class Client:
    """A member that behaves like a client: it owns its last assignment, and revokes all other
    partitions at once.
    """

    def __init__(self, world: World, member_id: str, *topics: str, **said: Any) -> None:
        self.world, self.member_id, self.topics, self.said = world, member_id, topics, said
        self.owned: Assignment = {}
        self.epoch = 0
        self.epochs: list[int] = []
        self.join()

    def join(self) -> None:
        """Join without partitions."""
        self.owned = {}
        self.take(self.world.join(self.member_id, *self.topics, **self.said))

    def beat(self, **said: Any) -> bool:
        """Send a heartbeat with the owned partitions; return whether anything has changed."""
        before = (self.epoch, self.owned)
        response = self.world.beat(self.member_id, self.epoch, owned=self.owned, **said)
        if isinstance(response, int):
            assert response in (25, 69, 110), "it was removed, perhaps with its group"
            self.epoch, self.epochs = 0, []
            self.join()
        else:
            self.take(response)
        return before != (self.epoch, self.owned)

    def take(self, response: Any) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResponse), response
        assert not self.epochs or response.member_epoch >= self.epochs[-1], "epochs grow"
        self.epoch = response.member_epoch
        self.epochs.append(self.epoch)
        if response.assignment is not None:
            self.owned = assigned(response)


def settle(clients: Collection[Client], rounds_max: int = 12) -> None:
    """Let all clients send heartbeats until nothing changes."""
    for _ in range(rounds_max):
        news = [client.beat() for client in clients]
        if not any(news):
            return
    raise AssertionError(f"not settled after {rounds_max} heartbeats of each member")
