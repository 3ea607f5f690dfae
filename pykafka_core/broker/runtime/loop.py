"""The control loop: one daemon thread that pulls events from the core and never polls.

It sleeps inside ``core.wait`` with the GIL released until something happened or the next timer is due.
A machine that fails ends the thread: it catches itself what may be survived (`faults`).
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.guarded_log import GuardedLogger, never_raise_here
from pykafka_core.broker.runtime.requests.requests import Asked
from pykafka_core.broker.runtime.statistics import WaitStatistics
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.errors import BrokerNotAvailableError, ClusterError

if TYPE_CHECKING:
    from pykafka_core import _core

_EVENTS_MAX = 256
_TAKING_NS = 5_000_000
"""How long events are read in one turn."""
_PAUSE_NS = 1_000_000
_PAUSE_CHECK_S = 0.1

_log = GuardedLogger(__name__)


class Machine(Protocol):
    """What the loop drives: the controller. What it raises ends the loop."""

    def take(self, event: "_core.Event") -> None:
        """Take in one event."""

    def take_late(self, event: "_core.Event") -> None:
        """Report the faults of one event that a stop left in the queue."""

    def ask(self, asked: Asked) -> None:
        """Take in one request of this process."""

    def advance(self) -> bool:
        """Carry on with what was taken in, for a bounded time; whether something is left that needs no event."""

    def fail_all(self, error_code: int) -> None:
        """Answer everything that waits with an error."""


class ControlLoop:
    """Runs a machine on its own thread.

    Args:
        core: Where events come from.
        machine: Belongs to the loop's thread from `start` on.
        timers: Run on the loop's thread.
        name: Of the thread.
        on_failure: Called one after the other on the loop's thread when the machine failed, with what it raised,
            once nobody waits for an answer any more; each whatever those before it raise.
    """

    def __init__(
        self,
        core: Core,
        machine: Machine,
        timers: Timers,
        name: str,
        on_failure: Sequence[Callable[[BaseException], object]] = (),
    ) -> None:
        self._core = core
        self._machine = machine
        self._timers = timers
        self._on_failure = on_failure
        self._asked: deque[Asked] = deque()
        self._goes_on = native.Event()
        self._goes_on.set()
        self._paused = native.Event()
        self._stopping = False
        self._ended = False
        self._is_busy = False
        self.failure: BaseException | None = None
        """Why the thread ended by itself; None as long as it is healthy, and after `stop`."""
        self.waits = WaitStatistics()
        self._thread = native.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def submit(self, asked: Asked) -> None:
        """Hand over a request of this process, from any thread but the loop's, which cannot wait for itself.

        Raises:
            RuntimeError: From the loop's own thread, as by a handler of `logging`.
        """
        if self.is_current:
            raise RuntimeError("the broker's control thread cannot wait for its own answer")
        self._asked.append(asked)
        self._core.wake()
        if self._ended or not self._thread.is_alive():
            self._abandon_asked()

    def stop(self) -> None:
        """Finish the request at hand, fail what waits, end the thread, also one that pauses. Idempotent."""
        self._stopping = True
        self._goes_on.set()
        self._core.wake()
        if not self.is_current and self._thread.ident is not None:
            self._thread.join()
        self._drain()

    def pause(self) -> None:
        """Have the thread do nothing from the end of its turn on, which is waited for, until `resume`."""
        self._goes_on.clear()
        self._core.wake()
        while not self._paused.wait(_PAUSE_CHECK_S) and self._thread.is_alive():
            pass

    def resume(self) -> None:
        """Go on, with all that happened meanwhile."""
        self._goes_on.set()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return self._thread.ident == native.get_ident() and self._thread.is_alive()

    def _run(self) -> None:
        never_raise_here()
        # Innermost first, and each whatever the one before raised: nothing keeps a failed broker from its end.
        with ExitStack() as end:
            for step in reversed(self._on_failure):
                end.callback(self._after_failure, step)
            end.callback(self._drain)
            end.push(self._note_failure)
            while not self._stopping:
                if not self._goes_on.is_set():
                    self._wait_to_go_on()
                self.turn()

    def _wait_to_go_on(self) -> None:
        self._paused.set()
        self._goes_on.wait()
        self._paused.clear()

    def _note_failure(
        self, _: object, failure: BaseException | None, _traceback: TracebackType | None
    ) -> bool:
        if failure is not None:
            self.failure = failure
            text = "this broker stops and serves nothing any more"
            if isinstance(failure, ClusterError):
                _log.log(logging.CRITICAL, f"{text}: %s", failure)
            else:
                _log.log(logging.CRITICAL, f"the control thread failed; {text}", error=failure)
        return True

    def _after_failure(self, step: Callable[[BaseException], object]) -> None:
        if self.failure is None:
            return
        try:
            step(self.failure)
        except BaseException as fault:
            _log.error("what was to follow the failure failed as well", error=fault)

    def turn(self) -> None:
        """One batch of events, then the timers that are due. A stop is looked at between any two."""
        # A timer may be due by the clock and not at the horizon, which a request that waits for room holds back.
        soonest_ns = self._core.now_ns() + _PAUSE_NS
        deadline_ns = 0 if self._is_busy else max(self._timers.next_due_ns(), soonest_ns)
        if not self._take_events(deadline_ns):
            return
        for _ in range(len(self._asked)):
            self._machine.ask(self._asked.popleft())
        self._is_busy = self._machine.advance()
        if self._timers.run(self._core.horizon_ns(), lambda: self._stopping):
            # What they left to the machine must not wait for an event: there may be none for a long time.
            self._is_busy = self._machine.advance() or self._is_busy

    def _take_events(self, deadline_ns: int) -> bool:
        """Read events, for a bounded time; False if the loop stops.

        Requests wait in their lanes, not in the queue of events, where they would delay all others.
        """
        events = self._core.wait(deadline_ns, _EVENTS_MAX)
        stop_ns = self._core.now_ns() + _TAKING_NS
        while events:
            now_ns = self._core.now_ns()
            self.waits.note(events, now_ns)
            for index, event in enumerate(events):
                if self._stopping:
                    for late in events[index:]:
                        self._machine.take_late(late)
                    return False
                self._machine.take(event)
            if len(events) < _EVENTS_MAX or now_ns >= stop_ns:
                break
            events = self._core.wait(0, _EVENTS_MAX)
        return True

    def _drain(self) -> None:
        self._ended = True
        try:
            self._machine.fail_all(BrokerNotAvailableError.code)
        finally:
            self._abandon_asked()

    def _abandon_asked(self) -> None:
        """By the thread that ends, or by one that was late: between them nothing is left."""
        while True:
            try:
                asked = self._asked.popleft()
            except IndexError:
                return
            asked.abandon(BrokerNotAvailableError.code)
