"""The assignor `uniform`: the numbers of partitions are as equal as the subscriptions allow, and
members keep their partitions where possible.

Theory of operation, for different subscriptions; equal subscriptions are simpler (`equal`). First,
each member keeps the partitions of its previous target in topics that it still subscribes to. Then,
topic by topic, each partition without an owner goes to the subscriber with the fewest partitions;
topics with the fewest subscribers per partition come first, because they have the least choice.
Finally, again topic by topic, partitions move from the subscriber with the most partitions to the
one with the fewest, until these two differ by at most one, for every topic.

Kafka also has two builders (``UniformHomogeneousAssignmentBuilder``,
``UniformHeterogeneousAssignmentBuilder``).
"""

from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace

from pykafka_core.coordinator.group.consumer.assignors.equal import assign_equal
from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec, subscribers_of
from pykafka_core.coordinator.group.consumer.member import Assignment

PASSES_MAX = 16
"""Maximum number of passes over all topics, like Kafka's ``MAX_ITERATION_COUNT``: different
subscriptions may need many passes for a balance."""


def assign_uniform(
    members: Collection[MemberSpec], counts: Mapping[bytes, int]
) -> Mapping[str, Assignment]:
    """An `Assignor` for members with any subscriptions."""
    if len({member.topic_ids for member in members}) <= 1:
        return assign_equal(members, counts)
    balance = _Balance(members, counts)
    topics = balance.ordered_topics()
    for topic_id in topics:
        balance.assign_free(topic_id)
    for _ in range(PASSES_MAX):
        if not sum([balance.level(topic_id) for topic_id in topics]):
            break
    return balance.assignments()


class _Balance:
    """The current owners of all partitions; members are numbered in the order of their ids."""

    def __init__(self, members: Collection[MemberSpec], counts: Mapping[bytes, int]) -> None:
        self._members = sorted(members, key=lambda one: one.member_id)
        self._counts = counts
        self._sizes = [0] * len(self._members)
        self._spread: int | None = None
        """Difference of the largest and the smallest size; None if a size has changed since it was
        calculated."""
        self._subscribers = subscribers_of([one.topic_ids for one in self._members])
        self._owners: dict[bytes, dict[int, int]] = {topic_id: {} for topic_id in counts}
        for number, member in enumerate(self._members):
            self._keep(number, member)

    def _keep(self, number: int, member: MemberSpec) -> None:
        for topic_id in member.target.keys() & member.topic_ids:
            owners = self._owners[topic_id]
            for partition in member.target[topic_id]:
                if partition < self._counts[topic_id] and partition not in owners:
                    owners[partition] = number
                    self._sizes[number] += 1

    def ordered_topics(self) -> list[bytes]:
        """Return the subscribed topics, those with the most partitions per subscriber first."""
        subscribed = [topic_id for topic_id in self._counts if topic_id in self._subscribers]
        return sorted(
            subscribed,
            key=lambda one: (-self._counts[one] / len(self._subscribers[one]), one),
        )

    def assign_free(self, topic_id: bytes) -> None:
        """Give each partition of a topic without an owner to the subscriber with the fewest
        partitions.
        """
        owners = self._owners[topic_id]
        free = [number for number in range(self._counts[topic_id]) if number not in owners]
        if not free:
            return
        least = self._heap(self._subscribers[topic_id])
        for partition in free:
            _, number = least[0]
            owners[partition] = number
            self._sizes[number] += 1
            heapreplace(least, (self._sizes[number], number))
        self._spread = None

    def level(self, topic_id: bytes) -> int:
        """Move partitions of a topic from the subscriber with the most partitions to the one with
        the fewest; return the number of moves.
        """
        if self._is_level():
            return 0
        owned: dict[int, list[int]] = {}
        for partition in sorted(self._owners[topic_id]):
            owned.setdefault(self._owners[topic_id][partition], []).append(partition)
        least = self._heap(self._subscribers[topic_id])
        most = [(-self._sizes[number], number) for number in owned]
        heapify(most)
        moved = 0
        while most and -most[0][0] - self._fewest(least) > 1:
            giver, taker = heappop(most)[1], heappop(least)[1]
            self._move(topic_id, owned[giver].pop(), giver, taker)
            heappush(least, (self._sizes[taker], taker))
            if owned[giver]:
                heappush(most, (-self._sizes[giver], giver))
            moved += 1
        if moved:
            self._spread = None
        return moved

    def _is_level(self) -> bool:
        """Return whether all sizes are balanced. They are compared only if one has changed."""
        if self._spread is None:
            self._spread = max(self._sizes) - min(self._sizes)
        return self._spread <= 1

    def _move(self, topic_id: bytes, partition: int, giver: int, taker: int) -> None:
        self._owners[topic_id][partition] = taker
        self._sizes[giver] -= 1
        self._sizes[taker] += 1

    def _heap(self, numbers: Iterable[int]) -> list[tuple[int, int]]:
        heap = [(self._sizes[number], number) for number in numbers]
        heapify(heap)
        return heap

    def _fewest(self, least: list[tuple[int, int]]) -> int:
        """Return the smallest size of a subscriber; heap entries of members that have lost
        partitions since are corrected first.
        """
        while least[0][0] != self._sizes[least[0][1]]:
            number = least[0][1]
            heapreplace(least, (self._sizes[number], number))
        return least[0][0]

    def assignments(self) -> Mapping[str, Assignment]:
        """Return the assignments by member id."""
        made: list[dict[bytes, set[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, number in owners.items():
                made[number].setdefault(topic_id, set()).add(partition)
        return {
            member.member_id: {topic_id: frozenset(found) for topic_id, found in one.items()}
            for member, one in zip(self._members, made, strict=True)
        }
