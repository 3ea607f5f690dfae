"""The next state of a member for each state, each target, and each set of owned partitions."""

from typing import NamedTuple

import pytest

from pykafka_core.coordinator.group.consumer.assignment.reconcile import Target, reconciled
from pykafka_core.coordinator.group.consumer.member import (
    NOTHING,
    Assignment,
    ConsumerMember,
    Held,
    MemberState,
    held_since,
)
from pykafka_core.errors import FencedMemberEpochError

STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
UNRELEASED, UNKNOWN = MemberState.UNRELEASED_PARTITIONS, MemberState.UNKNOWN
T = b"t" * 16
OLD_EPOCH, EPOCH, TARGET_EPOCH = 3, 5, 9


def some(*numbers: int) -> Assignment:
    return {T: frozenset(numbers)} if numbers else {}


def places(held: Held) -> Assignment:
    return {topic_id: frozenset(numbers) for topic_id, numbers in held.items()}


class Case(NamedTuple):
    """A member with 1 and 2 assigned; in `UNREVOKED` it must revoke 3. Others hold 8 and 9."""

    state: MemberState
    target: Assignment
    owned: Assignment | None
    after: MemberState
    epoch: int
    assigned: Assignment
    revoking: Assignment = NOTHING


CASES = [
    # Stable: the target is newer.
    Case(STABLE, some(1, 2), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2)),
    Case(STABLE, some(1, 2), None, STABLE, TARGET_EPOCH, some(1, 2)),
    Case(STABLE, some(1, 2, 4), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2, 4)),
    Case(STABLE, some(1, 2, 4, 8), some(1, 2), UNRELEASED, TARGET_EPOCH, some(1, 2, 4)),
    Case(STABLE, some(1, 2, 8), some(1, 2), UNRELEASED, TARGET_EPOCH, some(1, 2)),
    Case(STABLE, some(1), some(1, 2), UNREVOKED, EPOCH, some(1), some(2)),
    Case(STABLE, some(1), None, UNREVOKED, EPOCH, some(1), some(2)),
    Case(STABLE, some(1), some(1), STABLE, TARGET_EPOCH, some(1)),
    Case(STABLE, some(4, 8), some(1, 2), UNREVOKED, EPOCH, {}, some(1, 2)),
    # The member must revoke 3.
    Case(UNREVOKED, some(1, 2), some(1, 2, 3), UNREVOKED, EPOCH, some(1, 2), some(3)),
    Case(UNREVOKED, some(1, 2), None, UNREVOKED, EPOCH, some(1, 2), some(3)),
    Case(UNREVOKED, some(1, 2), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2)),
    Case(UNREVOKED, some(1, 2, 4), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2, 4)),
    Case(UNREVOKED, some(1, 2, 8), some(1, 2), UNRELEASED, TARGET_EPOCH, some(1, 2)),
    Case(UNREVOKED, some(1), some(1, 2), UNREVOKED, EPOCH, some(1), some(2)),
    Case(UNREVOKED, some(1, 2, 3), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2, 3)),
    Case(UNREVOKED, some(1, 2, 3, 8), some(1, 2), UNRELEASED, TARGET_EPOCH, some(1, 2, 3)),
    Case(UNREVOKED, some(1, 3), some(1, 2), UNREVOKED, EPOCH, some(1), some(2)),
    # Other members hold partitions of its target.
    Case(UNRELEASED, some(1, 2, 8), some(1, 2), UNRELEASED, TARGET_EPOCH, some(1, 2)),
    Case(UNRELEASED, some(1, 2, 4), some(1, 2), STABLE, TARGET_EPOCH, some(1, 2, 4)),
    Case(UNRELEASED, some(1, 2, 4, 9), None, UNRELEASED, TARGET_EPOCH, some(1, 2, 4)),
    Case(UNRELEASED, some(2), some(1, 2), UNREVOKED, EPOCH, some(2), some(1)),
    Case(UNRELEASED, some(1, 2), None, STABLE, TARGET_EPOCH, some(1, 2)),
    # A state of a later version: the member must own no partitions.
    Case(UNKNOWN, some(1, 2), {}, STABLE, TARGET_EPOCH, some(1, 2)),
    Case(UNKNOWN, some(1, 2, 8), {}, UNRELEASED, TARGET_EPOCH, some(1, 2)),
    Case(UNKNOWN, some(1), {}, STABLE, TARGET_EPOCH, some(1)),
]


def member(state: MemberState) -> ConsumerMember:
    assigned = held_since(OLD_EPOCH, some(1, 2))
    revoking = held_since(OLD_EPOCH, some(3)) if state is UNREVOKED else {}
    return ConsumerMember(
        "m", epoch=EPOCH, previous_epoch=4, state=state, assigned=assigned, revoking=revoking
    )


def is_free(_: bytes, number: int) -> bool:
    return number not in (1, 2, 3, 8, 9)


@pytest.mark.parametrize("case", CASES)
def test_member_moves_to_its_next_state(case: Case) -> None:
    before = member(case.state)
    after = reconciled(before, Target(TARGET_EPOCH, case.target), case.owned, is_free)
    assert (after.state, after.epoch) == (case.after, case.epoch)
    assert (places(after.assigned), places(after.revoking)) == (case.assigned, case.revoking)
    assert after is before or after.previous_epoch == EPOCH


@pytest.mark.parametrize("case", CASES)
def test_partition_keeps_the_epoch_in_which_it_was_assigned(case: Case) -> None:
    before = member(case.state)
    after = reconciled(before, Target(TARGET_EPOCH, case.target), case.owned, is_free)
    for held in (after.assigned, after.revoking):
        for number, epoch in held.get(T, {}).items():
            is_kept = number in before.assigned[T] or number in after.revoking.get(T, ())
            assert epoch == (OLD_EPOCH if is_kept else TARGET_EPOCH)


def test_every_state_has_its_cases() -> None:
    assert {case.state for case in CASES} == set(MemberState)
    assert {case.after for case in CASES} == set(MemberState) - {UNKNOWN}


def test_stable_member_in_the_epoch_of_its_target_is_unchanged() -> None:
    before = member(STABLE)
    assert reconciled(before, Target(EPOCH, some(1)), some(1, 2), is_free) is before


@pytest.mark.parametrize("owned", [None, some(1)])
def test_member_in_an_unknown_state_must_own_no_partitions(
    owned: Assignment | None,
) -> None:
    with pytest.raises(FencedMemberEpochError):
        reconciled(member(UNKNOWN), Target(TARGET_EPOCH, some(1)), owned, is_free)
