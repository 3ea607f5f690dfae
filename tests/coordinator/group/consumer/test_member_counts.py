"""The cost of a heartbeat in a large group.

A group updates its counters when a member changes. Before, `ConsumerGroup.state` visited every
member after each step of one member: a million visits for a rebalance of 1,000 members.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.member import (
    ClassicSide,
    ConsumerGroupState,
    ConsumerMember,
    MemberState,
)
from pykafka_core.coordinator.group.member_memory import MemberMemory
from tests.support.calls import counting_calls

PROTOCOLS = ("range", "sticky", "cooperative-sticky")
EPOCHS = st.integers(0, 3)
SIDES = st.none() | st.lists(st.sampled_from(PROTOCOLS), max_size=4).map(
    lambda names: ClassicSide(1_000, tuple((name, b"") for name in names))
)
MEMBERS = st.builds(
    ConsumerMember,
    member_id=st.sampled_from("abcd"),
    epoch=EPOCHS,
    state=st.sampled_from(MemberState),
    classic=SIDES,
)
EPOCHS_OF_GROUPS = st.tuples(EPOCHS, EPOCHS)
STEPS = st.lists(MEMBERS | st.sampled_from("abcd") | EPOCHS_OF_GROUPS | st.just(None), max_size=20)


def new_group() -> ConsumerGroup:
    return ConsumerGroup("g", MemberMemory())


def state_by_members(group: ConsumerGroup) -> ConsumerGroupState:
    if not group.members:
        return ConsumerGroupState.EMPTY
    if group.epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    reconciled = (MemberState.STABLE, group.assignment_epoch)
    is_stable = all((one.state, one.epoch) == reconciled for one in group.members.values())
    return ConsumerGroupState.STABLE if is_stable else ConsumerGroupState.RECONCILING


def common_by_members(group: ConsumerGroup) -> frozenset[str]:
    supported = [
        {name for name, _ in member.classic.protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return frozenset(set.intersection(*supported)) if supported else frozenset()


def assert_as_by_members(group: ConsumerGroup) -> None:
    assert group.state is state_by_members(group)
    common = common_by_members(group)
    assert group.common_protocols() == common
    classic = [member.classic is not None for member in group.members.values()]
    assert group.is_classic_only == all(classic)
    for names in ((), PROTOCOLS[:1], PROTOCOLS[1:]):
        expected = not common.isdisjoint(names) if any(classic) else bool(names)
        assert group.supports_classic(names) == expected


@given(STEPS)
def test_counts_equal_those_over_all_members(
    steps: "list[ConsumerMember | str | tuple[int, int] | None]",
) -> None:
    group = new_group()
    for step in steps:
        match step:
            case ConsumerMember():
                group.put(step)
            case str():
                group.remove(step)
            case None:
                before, group = group, group.copy()
                assert_as_by_members(before)
            case _:
                group.epoch, group.assignment_epoch = step
        assert_as_by_members(group)


@pytest.mark.parametrize(
    "ask",
    [
        lambda group: group.state,
        lambda group: group.common_protocols(),
        lambda group: group.supports_classic(PROTOCOLS),
    ],
    ids=["state", "common protocols", "supports"],
)
def test_cost_of_a_query_does_not_grow_with_the_group(
    ask: Callable[[ConsumerGroup], object],
) -> None:
    def calls(count: int) -> int:
        group = new_group()
        side = ClassicSide(1_000, tuple((name, b"") for name in PROTOCOLS))
        for number in range(count):
            group.put(ConsumerMember(f"m{number}", classic=side))
        with counting_calls() as counted:
            ask(group)
        return counted.count

    assert calls(500) == calls(2)
