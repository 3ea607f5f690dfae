"""The assignor `uniform` for members of equal subscriptions, as ``UniformHomogeneousAssignmentBuilder``.

Then it is known at once how many partitions each member may keep: the quotient of partitions and members, and one more
for as many members as the remainder says. Who has more gives the rest up; what nobody has goes to those who have
fewest. Nothing is done for each partition of a member that keeps all it had: a group of many topics mostly has such.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import islice

from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec
from pykafka_core.coordinator.group.consumer.member import Assignment

_Place = tuple[bytes, int]


def assign_equal(
    members: Collection[MemberSpec], counts: Mapping[bytes, int]
) -> Mapping[str, Assignment]:
    """An `Assignor` of members that are all subscribed to the same topics."""
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
    """What a member may keep of what it had: what is still there, and no member before it has."""
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
    """How many partitions each may have; the larger quotas go to those who have so many already."""
    if not sizes:
        return []
    quota, extra = divmod(partitions_count, len(sizes))
    quotas = [quota] * len(sizes)
    for number in islice((n for n, size in enumerate(sizes) if size > quota), extra):
        quotas[number] += 1
    return quotas


def _give_up(has: Assignment, count: int, taken: Mapping[bytes, set[int]]) -> Assignment:
    """The assignment without some partitions: those of topics of which it has most."""
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


def _free(counts: Mapping[bytes, int], taken: Mapping[bytes, set[int]]) -> Iterator[_Place]:
    for topic_id, numbers in taken.items():
        if len(numbers) < counts[topic_id]:
            for number in range(counts[topic_id]):
                if number not in numbers:
                    yield topic_id, number


def _share(free: Collection[_Place], sizes: Sequence[int]) -> Mapping[int, list[_Place]]:
    """Give partitions one by one to who has fewest."""
    gained: dict[int, list[_Place]] = {}
    least = [(size, number) for number, size in enumerate(sizes)]
    heapify(least)
    for place in free:
        size, number = least[0]
        gained.setdefault(number, []).append(place)
        heapreplace(least, (size + 1, number))
    return gained


def _joined(has: Assignment, places: Collection[_Place]) -> Assignment:
    more: dict[bytes, set[int]] = {}
    for topic_id, number in places:
        more.setdefault(topic_id, set()).add(number)
    return {**has, **{topic: has.get(topic, frozenset()) | more[topic] for topic in more}}
