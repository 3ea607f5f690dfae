"""`Deadlines`, compared with a plain dictionary."""

from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.deadlines import _STALE_MIN, Deadlines
from pykafka_core.types import FOREVER_NS

keys = st.sampled_from("abcd")
moments = st.integers(0, 30)
sets = st.tuples(st.just("set"), keys, moments)
cancels = st.tuples(st.just("cancel"), keys, st.just(0))
takes = st.tuples(st.just("take"), st.just(""), moments)
histories = st.lists(st.one_of(sets, sets, cancels, takes), max_size=60)


def apply(deadlines: Deadlines, model: dict[Hashable, int], kind: str, key: str, at: int) -> None:
    """Make the same change to both."""
    if kind == "set":
        deadlines.set(key, at)
        model[key] = at
    elif kind == "cancel":
        deadlines.cancel(key)
        model.pop(key, None)
    else:
        for taken in deadlines.take_due(at):
            assert model[taken] == min(model.values()) <= at
            del model[taken]
        assert all(due > at for due in model.values())


def check(deadlines: Deadlines, model: dict[Hashable, int]) -> None:
    assert len(deadlines) == len(model)
    assert {key: deadlines.get(key) for key in "abcd"} == {key: model.get(key) for key in "abcd"}
    assert deadlines.next_ns() <= min(model.values(), default=FOREVER_NS)
    assert (deadlines.next_ns() == FOREVER_NS) == (not model)


@given(histories)
def test_each_deadline_is_returned_once_in_order(
    history: list[tuple[str, str, int]],
) -> None:
    deadlines, model = Deadlines(), dict[Hashable, int]()
    for step in history:
        apply(deadlines, model, *step)
        check(deadlines, model)
    apply(deadlines, model, "take", "", 30)
    assert deadlines.next_ns() == FOREVER_NS


@given(histories, st.lists(st.one_of(sets, cancels), max_size=20))
def test_deadlines_may_change_during_iteration(
    history: list[tuple[str, str, int]], changes: list[tuple[str, str, int]]
) -> None:
    deadlines, model = Deadlines(), dict[Hashable, int]()
    for step in history:
        apply(deadlines, model, *step)
    left = iter(changes)
    for taken in deadlines.take_due(15):
        assert model.pop(taken) <= 15
        change = next(left, None)
        if change is not None:
            apply(deadlines, model, *change)
        check(deadlines, model)
    assert all(due > 15 for due in model.values())


def test_deadline_is_due_at_its_time() -> None:
    deadlines = Deadlines()
    deadlines.set("a", 5)
    assert list(deadlines.take_due(4)) == []
    assert list(deadlines.take_due(5)) == ["a"]
    assert deadlines.get("a") is None


def test_a_deadline_that_moves_later_is_queued_once() -> None:
    deadlines = Deadlines()
    for due in range(1_000):
        deadlines.set("a", due)
    assert len(deadlines._heap) == 1


def test_cancelled_deadlines_do_not_accumulate() -> None:
    deadlines = Deadlines()
    for number in range(1_000):
        deadlines.set(number, number)
        deadlines.cancel(number)
    assert len(deadlines._heap) <= _STALE_MIN + 1


def test_deadlines_that_move_earlier_repeatedly_leave_no_old_entries() -> None:
    deadlines = Deadlines()
    for step in range(10_000):
        deadlines.set("key", 10**9 - step)
    assert len(deadlines._heap) < 100
    assert list(deadlines.take_due(10**9)) == ["key"]
