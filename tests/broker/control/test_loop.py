"""The control loop on a virtual clock, run turn by turn."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core._core import Request
from pykafka_core.broker.runtime import loop as loop_module
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.errors import BrokerNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome
from tests.support.simulated import fake_core
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core, Event
    from pykafka_core.broker.runtime.requests.pending_request import PendingRequest


class Recorder:
    """A machine that records its calls."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.asked: list[PendingRequest] = []

    def take(self, event: "Event") -> None:
        self.notes.append(type(event).__name__)

    def take_late(self, event: "Event") -> None:
        self.notes.append(f"late {type(event).__name__}")

    def ask(self, asked: "PendingRequest") -> None:
        self.asked.append(asked)

    def advance(self) -> bool:
        return False

    def fail_all(self, error_code: int) -> None:
        for asked in self.asked:
            asked.abandon(error_code)


class Advancing(Recorder):
    """Also records the calls of `advance`."""

    def advance(self) -> bool:
        self.notes.append("advanced")
        return False


def nothing(context: Context) -> Outcome:
    raise AssertionError("no decision is expected")


def request(received_ns: int) -> Request:
    return fake_core.request(id=1, api_key=60, api_version=0, body=b"", received_ns=received_ns)


def loop_of(core: FakeCore, notes: list[str], *actions: Callable[[], None]) -> ControlLoop:
    """Return a loop with timers that are due every 10 ms from time 0 on."""
    timers = Timers(Faults(core.now_ns))
    for action in actions:
        timers.every("test", 10, 0, action)
    return ControlLoop(cast("Core", core), Recorder(notes), timers, "test")


def timer(notes: list[str]) -> Callable[[], None]:
    return lambda: notes.append("timer")


def test_requests_run_before_timers_even_if_the_thread_is_late() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    core.push(request(5))
    core.clock_ns = 60 * 10**9
    loop.turn()
    assert notes == ["Request", "timer"]


@pytest.fixture
def one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a turn to one batch of events."""
    monkeypatch.setattr(loop_module, "_TAKING_NS", 0)


def test_a_turn_takes_all_events_so_that_requests_wait_in_their_lanes() -> None:
    """After 8,000 requests of one group, a heartbeat stayed in the queue for 31 turns."""
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes)
    for _ in range(8_000):
        core.push(request(0))
    loop.turn()
    assert notes == ["Request"] * 8_000


def test_a_turn_reads_events_for_a_bounded_time() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes)

    def tick() -> int:
        core.clock_ns += loop_module._TAKING_NS // 4
        return core.clock_ns

    core.now_ns = tick  # type: ignore[method-assign]
    for _ in range(8_000):
        core.push(request(0))
    loop.turn()
    assert 256 < len(notes) < 8_000


@pytest.mark.usefixtures("one_batch")
def test_unread_requests_delay_timers_that_were_due_after_them() -> None:
    """With more than one batch of events, timers ran first: a stall could expire the sessions of
    members whose heartbeats were queued.
    """
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    for received_ns in range(600):
        core.push(request(received_ns))
    core.clock_ns = 60 * 10**9
    for _ in range(3):
        loop.turn()
    assert notes == ["Request"] * 600 + ["timer"]


def test_work_of_a_timer_does_not_wait_for_an_event() -> None:
    """A retried addition of partitions to a transaction was only stored when the next event
    arrived.
    """
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    loop._machine = Advancing(notes)
    loop.turn()
    assert notes == ["advanced", "timer", "advanced"]
    assert core.clock_ns == 10_000_000


@pytest.mark.usefixtures("one_batch")
def test_a_timer_that_was_due_before_an_unread_request_runs() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    for _ in range(300):
        core.push(request(20_000_000))
    core.clock_ns = 60 * 10**9
    loop.turn()
    assert notes == ["Request"] * 256 + ["timer"]


def test_a_failing_timer_is_reported_and_runs_again(caplog: pytest.LogCaptureFixture) -> None:
    core, notes = FakeCore(), list[str]()

    def fail() -> None:
        notes.append("failed")
        raise ZeroDivisionError

    loop = loop_of(core, notes, fail, timer(notes))
    for _ in range(3):
        loop.turn()
    assert notes == ["failed", "timer"] * 3
    assert caplog.text.count("timer test failed") == 1, "once a minute"


def test_stop_is_checked_between_requests() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    core.push(request(0))
    core.push(request(0))
    loop._stopping = True
    loop.turn()
    assert notes == ["late Request", "late Request"]


def test_a_timer_runs_when_due_and_not_before() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    core.push(request(0))
    loop.turn()
    assert notes == ["Request"]
    loop.turn()
    assert (notes, core.clock_ns) == (["Request", "timer"], 10_000_000)


def test_timer_beyond_the_horizon_does_not_keep_the_loop_busy() -> None:
    core = FakeCore()
    loop = loop_of(core, [], timer([]))
    core.clock_ns = 10**9
    loop.turn()
    assert core.clock_ns > 10**9, "it waited, though the timer is long due"


def test_a_late_timer_runs_once() -> None:
    core, notes = FakeCore(), list[str]()
    loop = loop_of(core, notes, timer(notes))
    core.clock_ns = 10**9
    core.push(request(10**9))
    loop.turn()
    core.push(request(10**9))
    loop.turn()
    assert notes.count("timer") == 1


def test_waiting_time_of_requests_is_counted() -> None:
    core = FakeCore()
    loop = loop_of(core, [])
    core.clock_ns = 1000
    for received in (400, 900):
        core.push(request(received))
    loop.turn()
    assert loop.waits.snapshot() == {
        "control.requests.count": 2,
        "control.wait.ns.sum": 700,
        "control.wait.ns.max": 600,
    }


def test_local_request_fails_when_the_loop_stops() -> None:
    core = FakeCore()
    loop = loop_of(core, [])
    local = LocalRequest(nothing)
    loop.submit(local)
    with pytest.raises(BrokerNotAvailableError):
        local.wait()
