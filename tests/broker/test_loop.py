"""The control loop on a virtual clock, driven turn by turn."""

from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.runtime.loop import ControlLoop, Timer
from pykafka_core.broker.runtime.requests import LocalRequest
from pykafka_core.errors import BrokerNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome
from pykafka_core.testing.fake_core import FakeCore, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_core._core import Event
    from pykafka_core.broker.runtime.requests import Asked
    from pykafka_core.broker.seam.core import Core


class Recorder:
    """A machine that notes what it is given."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.asked: list[Asked] = []

    def handle(self, events: "Sequence[Event]", asked: "Sequence[Asked]" = ()) -> None:
        self.notes += [type(event).__name__ for event in events]
        self.asked += asked

    def fail_all(self, error_code: int) -> None:
        for asked in self.asked:
            asked.abandon(error_code)


def nothing(context: Context) -> Outcome:
    raise AssertionError("nobody decides")


def request(received_ns: int) -> Request:
    return Request(id=1, api_key=60, api_version=0, body=b"", received_ns=received_ns)


def loop_of(core: FakeCore, notes: list[str], timers: list[Timer]) -> ControlLoop:
    return ControlLoop(cast("Core", core), Recorder(notes), timers, "test")


def test_requests_come_before_timers_however_late_the_thread_is() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, [Timer(10, 0, lambda: notes.append("timer"))])
    core.push(request(5))
    core.clock_ns = 60 * 10**9
    loop.turn()
    assert notes == ["Request", "timer"]


def test_a_timer_runs_when_due_and_not_before() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, [Timer(10, 0, lambda: notes.append("timer"))])
    core.push(request(0))
    loop.turn()
    assert notes == ["Request"]
    loop.turn()
    assert (notes, core.clock_ns) == (["Request", "timer"], 10_000_000)


def test_a_late_timer_runs_once() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, [Timer(10, 0, lambda: notes.append("timer"))])
    core.clock_ns = 10**9
    core.push(request(10**9))
    loop.turn()
    core.push(request(10**9))
    loop.turn()
    assert notes.count("timer") == 1


def test_the_wait_for_the_thread_is_counted() -> None:
    core = FakeCore()
    loop = loop_of(core, [], [])
    core.clock_ns = 1000
    for received in (400, 900):
        core.push(request(received))
    loop.turn()
    assert loop.waits.snapshot() == {
        "control.requests.count": 2,
        "control.wait.ns.sum": 700,
        "control.wait.ns.max": 600,
    }


def test_whoever_waits_is_told_when_the_loop_stops() -> None:
    core = FakeCore()
    loop = loop_of(core, [], [])
    local = LocalRequest(nothing)
    loop.submit(local)
    with pytest.raises(BrokerNotAvailableError):
        local.wait()
