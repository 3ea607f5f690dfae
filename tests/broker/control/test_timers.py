"""The heap of timers: due timers run once, in order; cancelled ones never run and use no memory."""

import gc
import weakref
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.timers import CANCELLED_MIN, Timer, Timers
from pykafka_core.types import FOREVER_NS


@pytest.fixture
def timers() -> Timers:
    return Timers(Faults(lambda: 0))


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=200), st.integers(0, 60))
def test_due_timers_run_once_and_cancelled_ones_never(
    asked: list[tuple[int, bool]], horizon: int
) -> None:
    timers, ran = Timers(Faults(lambda: 0)), list[int]()
    armed = [timers.once("one", due, partial(ran.append, due)) for due, _ in asked]
    for timer, (_, is_cancelled) in zip(armed, asked, strict=True):
        if is_cancelled:
            timer.cancel()
            timer.cancel()
    kept = sorted(due for due, is_cancelled in asked if not is_cancelled)
    assert len(timers) == len(kept)
    for _ in range(2):
        timers.run(horizon)
        assert ran == [due for due in kept if due <= horizon]
    later = [due for due in kept if due > horizon]
    assert len(timers) == len(later)
    assert timers.next_due_ns() == min(later, default=FOREVER_NS)


def test_a_timer_may_cancel_the_next_one_and_itself(timers: Timers) -> None:
    ran: list[str] = []
    armed: list[Timer] = []

    def first() -> None:
        ran.append("first")
        for timer in armed:
            timer.cancel()

    armed.append(timers.every("first", 1, 0, first))
    armed.append(timers.once("second", 2_000_000, lambda: ran.append("second")))
    timers.run(5_000_000)
    timers.run(50_000_000)
    assert (ran, len(timers), timers.next_due_ns()) == (["first"], 0, FOREVER_NS)


def test_timer_armed_by_an_action_runs_in_the_next_turn(timers: Timers) -> None:
    ran: list[int] = []

    def again() -> None:
        ran.append(len(ran))
        timers.once("again", 0, again)

    timers.once("again", 0, again)
    timers.run(10)
    assert ran == [0]
    timers.run(10)
    assert ran == [0, 1]


def test_stop_is_checked_between_timers(timers: Timers) -> None:
    ran: list[str] = []
    timers.once("first", 1, lambda: ran.append("first"))
    timers.once("second", 2, lambda: ran.append("second"))
    timers.run(10, lambda: bool(ran))
    assert ran == ["first"]


def test_cancelled_timers_leave_the_heap_before_they_are_due(timers: Timers) -> None:
    class Needed:
        def use(self) -> None:
            raise AssertionError("it was cancelled")

    needed = Needed()
    gone = weakref.ref(needed)
    for _ in range(10_000):
        timers.once("long", FOREVER_NS - 1, needed.use).cancel()
    assert len(timers._heap) <= CANCELLED_MIN + 1
    del needed
    gc.collect()
    assert gone() is None
