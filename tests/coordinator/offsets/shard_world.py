"""The shard of a group coordinator without a broker; its records can be loaded again."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.group.offsets.commit import (
    NO_RETENTION,
    Commit,
    NewOffset,
    commit_offsets,
    stored_offset,
)
from pykafka_core.coordinator.group.offsets.deletion import delete_offsets
from pykafka_core.coordinator.group.offsets.fetch import (
    Fetched,
    Reader,
    Selection,
    fetch_offsets,
)
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID, Committed
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, TransactionEnd, Waiter, Within
from pykafka_core.errors import KafkaError
from tests.coordinator.classic.world import BYTES_MAX, MS, SETTINGS, Operation

Row = tuple[str, str, int]
"""Group, topic and partition."""
Logged = tuple[int, bytes, bytes | None] | tuple[int, bool]
"""A record with its producer id, or a producer's marker."""


class ShardWorld:
    """A loaded shard and its log.

    Attributes:
        log: The records and markers, in order.
        topic_id: The id of every topic; None if there are no topics.
    """

    def __init__(self, bytes_max: int = BYTES_MAX, topic_id: bytes | None = NO_TOPIC_ID) -> None:
        self.topic_id = topic_id
        self.shard = GroupShard(SETTINGS, lambda: "uuid", lambda _: self.topic_id)
        self.now_ms = 1_000
        self.bytes_max = bytes_max
        self.log: list[Logged] = []
        self._take(self._loaded())

    def ask(self, operation: Operation) -> object:
        """Run an operation; return its immediate response or its error code. Checks that a refusal
        changes nothing.
        """
        result, before = self._turn(), self.rows()
        groups = set(self.shard.groups)
        try:
            operation(self.shard, "waiter", result)
        except KafkaError as error:
            assert not result.records
            assert not result.responses
            assert (self.rows(), set(self.shard.groups)) == (before, groups)
            return error.code
        self._take(result)
        ((waiter, response),) = result.responses
        assert waiter == "waiter"
        return response

    def write(self, producer_id: int, row: Row, committed: Committed) -> None:
        """Add an offset of a transaction to the log."""
        group_id, topic, partition = row
        record = OffsetRecords(group_id, topic).of(partition, committed)
        self._replay((producer_id, *record))

    def end(self, producer_id: int, *, committed: bool) -> None:
        """Add a transaction's marker to the log."""
        self._replay((producer_id, committed))

    def fetched(self, group_id: str, topics: Sequence[str] | None = None) -> Fetched:
        """Return all offsets of a group, or those of partition 0 of some topics."""
        named = None if topics is None else {topic: Counter([0]) for topic in topics}
        selection = Selection(named, {Reader()})
        read = self.ask(partial(fetch_offsets, group_id, selection, Budget(UNRESERVED_BYTES_MAX)))
        assert isinstance(read, Read)
        assert isinstance(read.value, Fetched)
        return read.value

    def rows(self) -> dict[Row, Committed]:
        """Return all committed offsets."""
        return {
            (group_id, topic, partition): committed
            for group_id in self.shard.groups
            for topic, partitions in self.shard.offsets.topics(group_id).items()
            for partition, committed in partitions.items()
        }

    def pending(self) -> set[Row]:
        """Return the places with offsets of open transactions."""
        pending_places = self.shard.offsets.pending_places
        return {(name, *place) for name in self.shard.groups for place in pending_places(name)}

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass, and run the deadlines that are due."""
        self.now_ms += duration_ms
        while self.shard.deadlines.next_ns() <= self.now_ms * MS:
            result = self._turn()
            self.shard.run_due(result)
            self._take(result)

    def reload(self, topic_id: bytes = NO_TOPIC_ID) -> "ShardWorld":
        """Return a world that was loaded from the log. All topics have the same id."""
        other = ShardWorld(self.bytes_max, topic_id)
        other.now_ms = self.now_ms
        for logged in self.log:
            other._replay(logged)
        other._take(other._loaded())
        return other

    def _replay(self, logged: Logged) -> None:
        self.log.append(logged)
        if len(logged) == 3:
            self.shard.replay(*logged)
        else:
            self.shard.replay_marker(logged[0], committed=logged[1])

    def _turn(self) -> CoordinatorResult:
        return CoordinatorResult(self.now_ms * MS, self.now_ms, self.bytes_max)

    def _loaded(self) -> CoordinatorResult:
        result = self._turn()
        self.shard.loaded(result)
        return result

    def _take(self, result: CoordinatorResult) -> None:
        stamp = result.stamp
        if isinstance(stamp, TransactionEnd):
            assert not result.records
            self.log.append((stamp.producer_id, stamp.committed))
        producer_id = stamp.producer_id if isinstance(stamp, Within) else -1
        self.log += [(producer_id, *record) for record in result.records]


def commit(
    *offsets: NewOffset,
    group_id: str = "g",
    member_id: str = "",
    generation_id: int = -1,
    retention_ms: int = NO_RETENTION,
    api_version: int = 9,
) -> Operation:
    """Return an OffsetCommit; by default without a member."""

    def run(state: GroupState, waiter: Waiter, result: CoordinatorResult) -> None:
        stored = [
            stored_offset(OffsetRecords(group_id, one.topic), one, retention_ms, result.now_ms)
            for one in offsets
        ]
        wanted = Commit(group_id, member_id, None, generation_id, stored, api_version)
        commit_offsets(wanted, state, waiter, result)

    return run


def delete(group_id: str, *places: tuple[str, int]) -> Operation:
    """Return an OffsetDelete."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return partial(delete_offsets, group_id, topics)


def at(
    offset: int, topic: str = "t", partition: int = 0, topic_id: bytes = NO_TOPIC_ID
) -> NewOffset:
    """Return an offset for a commit."""
    return NewOffset(topic, partition, offset, leader_epoch=3, metadata="m", topic_id=topic_id)


def stored(offset: int, topic_id: bytes = NO_TOPIC_ID) -> Committed:
    """Return an offset as a transaction commits it."""
    return Committed(
        offset, leader_epoch=3, metadata="m", commit_timestamp_ms=1_000, topic_id=topic_id
    )
