"""Committed offsets by group, topic and partition, and those of open transactions."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple, cast

from pykafka_core._offsets import Committed as Committed
from pykafka_core.coordinator.shard import Waiter

NO_EPOCH = -1
NO_EXPIRY = -1
NO_TOPIC_ID = bytes(16)


class _Pending(NamedTuple):
    number: int
    """Incremented with each offset of a transaction; the order of the log."""
    committed: Committed


TopicPartition = tuple[str, int]
"""Topic and partition of an offset, within a group."""
Row = tuple[str, str]
"""Group id and topic."""


class Search:
    """Position of a search through all groups; no groups are left before it starts and after it
    ends.

    Attributes:
        groups: Groups that are not completely searched.
        topics: Topics of the first group that are not searched; None before the search of that
            group starts.
    """

    __slots__ = "groups", "topics"

    def __init__(self) -> None:
        self.groups: deque[str] = deque()
        self.topics: deque[str] | None = None

    def next_group(self) -> None:
        """Continue with the next group."""
        self.groups.popleft()
        self.topics = None


class Deletion:
    """Topics that were deleted together: ids by name, and the names that are not looked up yet."""

    __slots__ = "names", "topics"

    def __init__(self, topics: Mapping[str, bytes]) -> None:
        self.topics, self.names = topics, iter(topics)


class Detached:
    """Offsets that are removed from the table but have no tombstone yet; each is removed when its
    tombstone is written.

    Attributes:
        group_id: A new group may have this id.
        waiter: The request that deleted the group; it gets its response when no offset is left.
            None if no request waits.
    """

    __slots__ = "_topics", "group_id", "waiter"

    def __init__(
        self, group_id: str, topics: dict[str, dict[int, object]], waiter: Waiter | None
    ) -> None:
        self.group_id, self._topics, self.waiter = group_id, topics, waiter

    def places(self) -> Iterator[TopicPartition]:
        """Yield the remaining topics and partitions."""
        for topic, partitions in self._topics.items():
            for partition in partitions:
                yield topic, partition

    def remove(self, places: Iterable[TopicPartition]) -> None:
        """Remove places whose tombstones are written or not needed."""
        for topic, partition in places:
            del self._topics[topic][partition]
            if not self._topics[topic]:
                del self._topics[topic]


class OffsetTable:
    """The offsets of all groups of a shard.

    An offset of a transaction waits for the marker. It then takes effect unless a later offset was
    committed before.

    Attributes:
        detached: Offsets whose tombstones are not written, in the order of their removal. Their
            groups accept no offsets of transactions.
        deletions: Deleted topics of which some are not looked up yet.
        gone: Ids of deleted topics by name, while their offsets are not removed.
        leaving: Group ids and topics whose offsets must be compared with `gone`.
        replayed: Topic ids of stored offsets by topic name. Empty once the shard is used.
        search: The search for expired offsets.
    """

    __slots__ = (
        "_groups",
        "_groups_of",
        "_hidden",
        "_number",
        "_pending",
        "_writers",
        "deletions",
        "detached",
        "gone",
        "leaving",
        "replayed",
        "search",
    )

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, Committed]]] = {}
        self._groups_of: dict[str, str | dict[str, None]] = {}
        """By topic: the group with committed offsets in it, or several groups in order."""
        self._pending: dict[int, dict[str, dict[TopicPartition, _Pending | None]]] = {}
        """By producer id; None where a later commit replaces it."""
        self._writers: dict[str, dict[TopicPartition, set[int]]] = {}
        """Producer ids with a pending offset, by group and place."""
        self._hidden: set[tuple[str, TopicPartition]] = set()
        """Group ids and places where `hide_gone` removed an offset, until the transactions there
        end: always places of pending offsets."""
        self._number = 0
        self.detached: deque[Detached] = deque()
        self.deletions: deque[Deletion] = deque()
        self.gone: dict[str, set[bytes]] = {}
        self.leaving: deque[Row] = deque()
        self.replayed: dict[str, set[bytes]] = {}
        self.search = Search()

    def __len__(self) -> int:
        return sum(len(parts) for topics in self._groups.values() for parts in topics.values())

    def topics(self, group_id: str) -> Mapping[str, Mapping[int, Committed]]:
        """Return the offsets of a group by topic and partition; later commits change the
        mapping.
        """
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """Return the last offset that was committed outside of open transactions."""
        return self.topics(group_id).get(topic, {}).get(partition)

    def places(self, group_id: str) -> Iterator[TopicPartition]:
        """Yield each place with offsets of a group, committed or pending, once."""
        topics = self.topics(group_id)
        for topic, partitions in topics.items():
            for partition in partitions:
                yield topic, partition
        for topic, partition in self._writers.get(group_id, ()):
            if partition not in topics.get(topic, {}):
                yield topic, partition

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has an offset there."""
        return (topic, partition) in self._writers.get(group_id, ())

    def pending_places(self, group_id: str) -> frozenset[TopicPartition]:
        """Return the places with offsets of open transactions."""
        return frozenset(self._writers.get(group_id, ()))

    def pending_count(self, group_id: str) -> int:
        """Return the number of places with offsets of open transactions."""
        return len(self._writers.get(group_id, ()))

    def gone_ids(self, topic: str) -> set[bytes]:
        """Return ids of deleted topics of this name whose offsets will be removed.

        `NO_TOPIC_ID` is one of them if offsets without an id belong to such a topic.
        """
        ids = set(self.gone.get(topic, ()))
        for deletion in self.deletions:
            topic_id = deletion.topics.get(topic)
            if topic_id is not None:
                ids.update((topic_id, NO_TOPIC_ID))
        return ids

    def is_gone(self, topic: str, topic_id: bytes) -> bool:
        """Return whether offsets with that id belong to a deleted topic and will be removed."""
        return topic_id in self.gone_ids(topic)

    def note_deleted(self, topics: Mapping[str, bytes]) -> None:
        """Queue deleted topics for `look_up_deleted`, if the shard has offsets.

        All shards share the mapping, so that thousands of topics cost each shard almost nothing at
        this time.
        """
        if self._groups_of or self._writers:
            self.deletions.append(Deletion(topics))

    def look_up_deleted(self, count_max: int) -> int:
        """Look up some deleted topics and note those with offsets; return the number of topics."""
        deletion = self.deletions[0]
        names = list(islice(deletion.names, count_max))
        for topic in names:
            self.note_gone(topic, (deletion.topics[topic], NO_TOPIC_ID))
        if len(names) < count_max:
            self.deletions.popleft()
        return len(names)

    def note_gone(self, topic: str, topic_ids: Iterable[bytes]) -> None:
        """Schedule the removal of a deleted topic's offsets, if there are any.

        Takes a time that grows with its groups and with the offsets of open transactions, not with
        all offsets.
        """
        if rows := [(group_id, topic) for group_id in self._groups_in(topic)]:
            self.gone.setdefault(topic, set()).update(topic_ids)
            self.leaving.extend(rows)

    def has_gone(self, group_id: str, place: TopicPartition) -> bool:
        """Return whether all offsets at a place, committed and pending, belong to deleted
        topics.
        """
        return all(
            self.is_gone(place[0], one.topic_id) for one in self._that_count(group_id, place)
        )

    def hide_gone(self, group_id: str, place: TopicPartition) -> None:
        """Forget offsets of deleted topics at a place that also has an offset of a newer topic of
        that name.

        A tombstone would also remove the newer offset. If it is pending, the tombstone is written
        after the transaction, unless another offset is committed.
        """
        topic, partition = place
        committed = self.get(group_id, topic, partition)
        if committed is not None and self.is_gone(topic, committed.topic_id):
            self._remove_committed(group_id, topic, partition)
            self._hidden.add((group_id, place))
        for producer_id in self._writers.get(group_id, {}).get(place, ()):
            places = self._pending[producer_id][group_id]
            pending = places[place]
            if pending is not None and self.is_gone(topic, pending.committed.topic_id):
                places[place] = None
                self._hidden.add((group_id, place))

    def partitions(self, group_id: str, topic: str) -> list[int]:
        """Return the partitions of a topic where a group has offsets, committed or pending."""
        partitions = dict.fromkeys(self.topics(group_id).get(topic, ()))
        pending = self._writers.get(group_id, ())
        return list(partitions | {place[1]: None for place in pending if place[0] == topic})

    def note_replayed(self, topic: str, topic_id: bytes) -> None:
        """Note that a stored offset belongs to this topic."""
        ids = self.replayed.get(topic)
        if ids is None:
            ids = self.replayed[topic] = set()
        ids.add(topic_id)

    def put(self, group_id: str, topic: str, partition: int, committed: Committed) -> None:
        """Commit an offset outside of transactions."""
        self._store(group_id, topic, partition, committed)
        if group_id in self._writers:
            self._overtake(group_id, (topic, partition), self._number + 1)

    def put_pending(
        self, producer_id: int, group_id: str, place: TopicPartition, committed: Committed
    ) -> None:
        """Commit an offset within a transaction."""
        self._number += 1
        groups = self._pending.setdefault(producer_id, {})
        groups.setdefault(group_id, {})[place] = _Pending(self._number, committed)
        self._writers.setdefault(group_id, {}).setdefault(place, set()).add(producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or forget the offsets of a transaction."""
        for group_id, places in self._pending.pop(producer_id, {}).items():
            for place, pending in places.items():
                self._withdraw(producer_id, group_id, place)
                if committed and pending is not None:
                    self._store(group_id, *place, pending.committed)
                    self._overtake(group_id, place, pending.number)
            self._detach_hidden(group_id, places)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget an offset, committed or pending."""
        self._remove_committed(group_id, topic, partition)
        place = (topic, partition)
        self._hidden.discard((group_id, place))
        for producer_id in list(self._writers.get(group_id, {}).get(place, ())):
            del self._pending[producer_id][group_id][place]
            self._withdraw(producer_id, group_id, place)

    def detach(self, group_id: str, waiter: Waiter) -> None:
        """Move all offsets of a group from the table to `detached`, for their tombstones.

        Takes a time that grows with the group's topics and with its open transactions.
        """
        topics = cast("dict[str, dict[int, object]]", self._groups.pop(group_id, {}))
        for topic in topics:
            self._leave_topic(group_id, topic)
        for topic, partition in self.pending_places(group_id):
            topics.setdefault(topic, {}).setdefault(partition, None)
            self.remove(group_id, topic, partition)
        self.detached.append(Detached(group_id, topics, waiter))

    def is_detached(self, group_id: str) -> bool:
        """Return whether tombstones of a group with this id are not written yet."""
        return any(one.group_id == group_id for one in self.detached)

    def group_ids(self) -> Iterator[str]:
        """Yield groups with committed or pending offsets; a group with both twice."""
        yield from self._groups
        yield from self._writers

    def _groups_in(self, topic: str) -> Iterator[str]:
        """Yield groups with committed or pending offsets in a topic, each once."""
        known = self._groups_of.get(topic, {})
        groups = {known: None} if isinstance(known, str) else known
        yield from groups
        for group_id, places in self._writers.items():
            if group_id not in groups and any(place[0] == topic for place in places):
                yield group_id

    def _that_count(self, group_id: str, place: TopicPartition) -> Iterator[Committed]:
        """Yield the committed offset of a place, and the pending ones that may still take
        effect.
        """
        committed = self.get(group_id, *place)
        if committed is not None:
            yield committed
        for producer_id in self._writers.get(group_id, {}).get(place, ()):
            pending = self._pending[producer_id][group_id][place]
            if pending is not None:
                yield pending.committed

    def _detach_hidden(self, group_id: str, places: Iterable[TopicPartition]) -> None:
        """Move hidden places to `detached` that no transaction has an offset at."""
        topics: dict[str, dict[int, object]] = {}
        for place in places:
            if (group_id, place) in self._hidden and not self.is_pending(group_id, *place):
                self._hidden.remove((group_id, place))
                topics.setdefault(place[0], {})[place[1]] = None
        if topics:
            self.detached.append(Detached(group_id, topics, None))

    def _remove_committed(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if topics and not partitions and topics.pop(topic, None) is not None:
            self._leave_topic(group_id, topic)
            if not topics:
                del self._groups[group_id]

    def _store(self, group_id: str, topic: str, partition: int, committed: Committed) -> None:
        try:
            self._groups[group_id][topic][partition] = committed
        except KeyError:
            self._groups.setdefault(group_id, {})[topic] = {partition: committed}
            self._enter_topic(group_id, topic)

    def _enter_topic(self, group_id: str, topic: str) -> None:
        known = self._groups_of.setdefault(topic, group_id)
        if isinstance(known, dict):
            known[group_id] = None
        elif known != group_id:
            self._groups_of[topic] = {known: None, group_id: None}

    def _leave_topic(self, group_id: str, topic: str) -> None:
        known = self._groups_of[topic]
        if isinstance(known, dict) and len(known) > 1:
            del known[group_id]
        else:
            del self._groups_of[topic]

    def _overtake(self, group_id: str, place: TopicPartition, number: int) -> None:
        """Discard pending offsets with a number below ``number``."""
        for producer_id in self._writers.get(group_id, {}).get(place, ()):
            places = self._pending[producer_id][group_id]
            pending = places[place]
            if pending is not None and pending.number < number:
                places[place] = None

    def _withdraw(self, producer_id: int, group_id: str, place: TopicPartition) -> None:
        writers = self._writers[group_id]
        writers[place].discard(producer_id)
        if not writers[place]:
            del writers[place]
        if not writers:
            del self._writers[group_id]
