"""Every assignment is valid; `uniform` is balanced and sticky, `range` has contiguous ranges."""

import random
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.consumer.assignment.target import ASSIGNORS
from pykafka_core.coordinator.group.consumer.assignors.range import assign_range
from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec, subscribers_of
from pykafka_core.coordinator.group.consumer.assignors.uniform import assign_uniform
from pykafka_core.coordinator.group.consumer.member import Assignment
from tests.support.calls import counting_calls

TOPICS = [name.encode() * 16 for name in "tuvw"]
T, U = TOPICS[:2]


def members(count: int, *topics: bytes) -> list[MemberSpec]:
    return [MemberSpec(f"m{number:02}", None, frozenset(topics or (T,))) for number in range(count)]


def again(specs: Collection[MemberSpec], made: Mapping[str, Assignment]) -> list[MemberSpec]:
    return [spec._replace(target=made.get(spec.member_id, {})) for spec in specs]


def places(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic_id, number) for topic_id, numbers in assignment.items() for number in numbers}


def sizes(made: Mapping[str, Assignment]) -> list[int]:
    return sorted(len(places(assignment)) for assignment in made.values())


def assert_valid(
    specs: Collection[MemberSpec], counts: Mapping[bytes, int], made: Mapping[str, Assignment]
) -> None:
    assert made.keys() == {spec.member_id for spec in specs}
    for spec in specs:
        assert made[spec.member_id].keys() <= spec.topic_ids
        assert all(made[spec.member_id].values()), "no topic is without partitions"
    wanted = {topic_id for spec in specs for topic_id in spec.topic_ids}
    given_out = [place for assignment in made.values() for place in places(assignment)]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == {
        (topic_id, number) for topic_id in wanted for number in range(counts[topic_id])
    }


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """Return the number of partitions that moved from one member to another."""
    return sum(len(places(before[name]) - places(after.get(name, {}))) for name in before)


COUNTS = st.fixed_dictionaries({topic_id: st.integers(1, 12) for topic_id in TOPICS})
SPECS = st.lists(st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=7).map(
    lambda subscriptions: [
        MemberSpec(f"m{number}", f"i{number}" if number % 3 == 0 else None, topics)
        for number, topics in enumerate(subscriptions)
    ]
)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(specs=SPECS, later=SPECS, counts=COUNTS, grown=COUNTS)
def test_each_partition_is_assigned_to_one_of_its_subscribers(
    name: str,
    specs: list[MemberSpec],
    later: list[MemberSpec],
    counts: dict[bytes, int],
    grown: dict[bytes, int],
) -> None:
    made = ASSIGNORS[name](specs, counts)
    assert_valid(specs, counts, made)
    assert_valid(later, grown, ASSIGNORS[name](again(later, made), grown))


@given(specs=SPECS, counts=COUNTS)
def test_uniform_differs_by_at_most_one_movable_partition(
    specs: list[MemberSpec], counts: dict[bytes, int]
) -> None:
    made = assign_uniform(specs, counts)
    size = {name: len(places(assignment)) for name, assignment in made.items()}
    for spec in specs:
        for topic_id in made[spec.member_id]:
            for other in specs:
                if topic_id in other.topic_ids:
                    assert size[spec.member_id] - size[other.member_id] <= 1


@given(specs=SPECS, counts=COUNTS)
def test_uniform_keeps_a_balanced_assignment(
    specs: list[MemberSpec], counts: dict[bytes, int]
) -> None:
    made = assign_uniform(specs, counts)
    assert assign_uniform(again(specs, made), counts) == made


@given(before=st.integers(1, 9), after=st.integers(1, 9), partitions=st.integers(1, 40))
def test_uniform_moves_as_few_partitions_as_possible(
    before: int, after: int, partitions: int
) -> None:
    counts = {T: partitions, U: partitions}
    first = assign_uniform(members(before, T, U), counts)
    second = assign_uniform(again(members(after, T, U), first), counts)
    assert max(sizes(second)) - min(sizes(second)) <= 1
    lost = sum(len(places(first[name])) for name in first if name not in second)
    quota, extra = divmod(2 * partitions, after)
    kept = sorted((len(places(first[name])) for name in first if name in second), reverse=True)
    # The members with the most partitions may keep one more than the others, up to the remainder.
    surplus = sum(max(0, size - quota - (place < extra)) for place, size in enumerate(kept))
    assert moved(first, second) - lost == surplus


def test_uniform_assigns_a_topic_to_its_only_subscriber() -> None:
    specs = [MemberSpec("a", None, frozenset((T,))), MemberSpec("b", None, frozenset((T, U)))]
    made = assign_uniform(specs, {T: 4, U: 4})
    assert made == {"a": {T: frozenset(range(4))}, "b": {U: frozenset(range(4))}}


def test_range_assigns_ranges_and_one_more_to_the_first_members() -> None:
    made = assign_range(members(3, T, U), {T: 5, U: 2})
    assert made == {
        "m00": {T: frozenset((0, 1)), U: frozenset((0,))},
        "m01": {T: frozenset((2, 3)), U: frozenset((1,))},
        "m02": {T: frozenset((4,))},
    }


def test_range_orders_static_members_first_and_by_instance_id() -> None:
    specs = [
        MemberSpec("a", None, frozenset((T,))),
        MemberSpec("b", "2", frozenset((T,))),
        MemberSpec("c", "1", frozenset((T,))),
    ]
    made = assign_range(specs, {T: 3})
    assert made == {"c": {T: frozenset((0,))}, "b": {T: frozenset((1,))}, "a": {T: frozenset((2,))}}


def test_subscribers_of_equal_and_different_subscriptions() -> None:
    both, one, none = frozenset((T, U)), frozenset((T,)), frozenset[bytes]()
    found = subscribers_of([both, one, none, frozenset((U, T))])
    assert {topic_id: sorted(places) for topic_id, places in found.items()} == {
        T: [0, 1, 3],
        U: [0, 3],
    }


def test_many_members_and_partitions_are_assigned_in_one_turn() -> None:
    counts = {number.to_bytes(16, "big"): 100 for number in range(50)}
    specs = members(200, *counts)
    made = assign_uniform(specs, counts)
    assert sizes(made) == [25] * 200


def test_joining_member_takes_partitions_of_every_topic() -> None:
    counts = dict.fromkeys(TOPICS, 8)
    alone = again(members(2, *TOPICS), ASSIGNORS["uniform"](members(1, *TOPICS), counts))
    made = ASSIGNORS["uniform"](alone, counts)
    assert [len(numbers) for numbers in made["m01"].values()] == [4, 4, 4, 4]


def test_unchanged_assignment_is_reused_as_an_object() -> None:
    """The assignment is the same object, which saves a comparison."""
    counts = {T: 7, U: 7}
    specs = again(members(3, T, U), assign_uniform(members(3, T, U), counts))
    made = assign_uniform(specs, counts)
    assert all(made[spec.member_id] is spec.target for spec in specs)


def test_partition_of_two_members_stays_with_one_of_them() -> None:
    """Damaged records may assign it to both."""
    specs = [spec._replace(target={T: frozenset({0, 1, 99})}) for spec in members(2)]
    made = assign_uniform(specs, {T: 4})
    assert_valid(specs, {T: 4}, made)
    assert made["m00"] == {T: frozenset({0, 1})}


def test_the_calls_of_an_assignment_are_fewer_than_its_subscriptions() -> None:
    """For 150 members that each subscribe to 500 of 2,000 topics, an assignment took 66 ms."""
    rng = random.Random(1)
    topics = [b"%d" % number for number in range(200)]
    specs = [
        MemberSpec(f"m{number:03}", None, frozenset(rng.sample(topics, 100)))
        for number in range(100)
    ]
    counts = dict.fromkeys(topics, 1)
    made = assign_uniform(specs, counts)
    with counting_calls() as calls:
        assert assign_uniform(again(specs, made), counts) == made
    assert calls.count < sum(len(spec.topic_ids) for spec in specs)
