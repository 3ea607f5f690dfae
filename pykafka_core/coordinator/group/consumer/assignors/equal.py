"""The assignor `uniform` for members with equal subscriptions, like
``UniformHomogeneousAssignmentBuilder``.

Each member gets the quotient of partitions and members, and as many members as the remainder get
one more. A member with more partitions than that loses the excess. Partitions without an owner go
to the members with the fewest partitions. The partitions of a member that keeps all of them are not
visited one by one: in a group with many topics, most members keep all.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import islice

from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec
from pykafka_core.coordinator.group.consumer.member import Assignment

_TopicIdPartition = tuple[bytes, int]


def assign_equal(
    members: Collection[MemberSpec], counts: Mapping[bytes, int]
) -> Mapping[str, Assignment]:
    """An `Assignor` for members that are all subscribed to the same topics."""
    ordered = sorted(members, key=lambda one: one.member_id)
    topic_ids = ordered[0].topic_ids if ordered else frozenset()
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in sorted(topic_ids)}
    kept = [_claim(member.target, counts, taken) for member in ordered]
    sizes = [sum(map(len, one.values())) for one in kept]
    quotas = _quotas(sizes, sum(counts[topic_id] for topic_id in taken))
    for number, quota in enumerate(quotas):
        if sizes[number] > quota:
            kept[number] = _give_up(kept[number], sizes[number] - quota, taken)
            sizes[number] = quota
    gained = _share(list(_free(counts, taken)), sizes)
    for number, places in gained.items():
        kept[number] = _joined(kept[number], places)
    return {member.member_id: one for member, one in zip(ordered, kept, strict=True)}


def _claim(
    target: Assignment, counts: Mapping[bytes, int], taken: Mapping[bytes, set[int]]
) -> Assignment:
    """Return the partitions of a member's target that still exist and that no previous member
    claimed; add them to ``taken``.
    """
    claimed, is_all = {}, True
    for topic_id, numbers in target.items():
        others = taken.get(topic_id)
        if others is None:
            is_all = False
            continue
        usable = numbers
        if max(numbers) >= counts[topic_id] or not others.isdisjoint(numbers):
            usable = frozenset(one for one in numbers - others if one < counts[topic_id])
            is_all = False
        if usable:
            others |= usable
            claimed[topic_id] = usable
    return target if is_all else claimed


def _quotas(sizes: Sequence[int], partitions_count: int) -> list[int]:
    """Return the maximum number of partitions of each member; the larger quotas go to members that
    already have that many.
    """
    if not sizes:
        return []
    quota, extra = divmod(partitions_count, len(sizes))
    quotas = [quota] * len(sizes)
    for number in islice((n for n, size in enumerate(sizes) if size > quota), extra):
        quotas[number] += 1
    return quotas


def _give_up(has: Assignment, count: int, taken: Mapping[bytes, set[int]]) -> Assignment:
    """Return an assignment without ``count`` of its partitions, taken from the topics in which the
    member has the most partitions.
    """
    ranked = [
        (rank, topic_id, number)
        for topic_id, numbers in has.items()
        for rank, number in enumerate(sorted(numbers))
    ]
    ranked.sort()
    given: dict[bytes, set[int]] = {}
    for _, topic_id, number in ranked[-count:]:
        given.setdefault(topic_id, set()).add(number)
        taken[topic_id].remove(number)
    left = dict(has)
    for topic_id, numbers in given.items():
        left[topic_id] -= numbers
    return {topic_id: numbers for topic_id, numbers in left.items() if numbers}


def _free(
    counts: Mapping[bytes, int], taken: Mapping[bytes, set[int]]
) -> Iterator[_TopicIdPartition]:
    for topic_id, numbers in taken.items():
        if len(numbers) < counts[topic_id]:
            for number in range(counts[topic_id]):
                if number not in numbers:
                    yield topic_id, number


def _share(
    free: Collection[_TopicIdPartition], sizes: Sequence[int]
) -> Mapping[int, list[_TopicIdPartition]]:
    """Give each partition to the member that has the fewest at that time; return the new partitions
    by member number.
    """
    gained: dict[int, list[_TopicIdPartition]] = {}
    least = [(size, number) for number, size in enumerate(sizes)]
    heapify(least)
    for place in free:
        size, number = least[0]
        gained.setdefault(number, []).append(place)
        heapreplace(least, (size + 1, number))
    return gained


def _joined(has: Assignment, places: Collection[_TopicIdPartition]) -> Assignment:
    more: dict[bytes, set[int]] = {}
    for topic_id, number in places:
        more.setdefault(topic_id, set()).add(number)
    return {**has, **{topic: has.get(topic, frozenset()) | more[topic] for topic in more}}
