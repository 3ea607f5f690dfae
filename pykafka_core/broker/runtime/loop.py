"""The control loop: one daemon thread that takes events from the core and never polls.

It sleeps in ``core.wait`` with the GIL released, until an event arrives or the next timer is due.
An exception of the machine ends the thread: the machine catches those that the broker can survive
(`faults`).
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.statistics import WaitStatistics
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.broker.safe_logging import GuardedLogger, never_raise_here
from pykafka_core.errors import BrokerNotAvailableError, ClusterError

if TYPE_CHECKING:
    from pykafka_core import _core

_EVENTS_MAX = 256
_TAKING_NS = 5_000_000
"""Maximum time for reading events in one turn."""
_WAIT_NS_MIN = 1_000_000
"""Minimum wait for an event without other work. A timer may be due by the clock but not at the
horizon, which stays before the arrival of an unread request."""
_PAUSE_CHECK_S = 0.1

_log = GuardedLogger(__name__)


class Machine(Protocol):
    """The object that the loop drives: the dispatcher. Its exceptions end the loop."""

    def take(self, event: "_core.Event") -> None:
        """Handle one event."""

    def take_late(self, event: "_core.Event") -> None:
        """Report the faults in an event that was left in the queue by a stop."""

    def ask(self, request: PendingRequest) -> None:
        """Accept a request of this process."""

    def advance(self) -> bool:
        """Work on pending requests for a bounded time; return whether there is more work that needs
        no event.
        """

    def fail_all(self, error_code: int) -> None:
        """Complete all pending requests with an error."""


class ControlLoop:
    """Runs a machine on its own thread.

    Args:
        core: Provides the events.
        machine: Belongs to the loop's thread from `start` on.
        timers: Run on the loop's thread.
        name: Name of the thread.
        on_failure: Called in order on the loop's thread after a failure of the machine, with its
            exception, once all pending requests have failed. Each is called even if an earlier
            one raised an exception.
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
        self._requests: deque[PendingRequest] = deque()
        self._goes_on = native.Event()
        self._goes_on.set()
        self._paused = native.Event()
        self._stopping = False
        self._ended = False
        self._is_busy = False
        self.failure: BaseException | None = None
        """The exception that ended the thread; None while it is healthy, and after `stop`."""
        self.waits = WaitStatistics()
        self._thread = native.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread. Call this once."""
        self._thread.start()

    def submit(self, request: PendingRequest) -> None:
        """Hand over a request of this process, from any thread except the loop's.

        Raises:
            RuntimeError: Called on the loop's thread, for example by a handler of `logging`; that
                thread cannot wait for itself.
        """
        if self.is_current:
            raise RuntimeError("the broker's control thread cannot wait for its own response")
        self._requests.append(request)
        self._core.wake()
        if self._ended or not self._thread.is_alive():
            self._abandon_asked()

    def stop(self) -> None:
        """Finish the current request, fail all pending requests, and end the thread, even if it is
        paused. Idempotent.
        """
        self._stopping = True
        self._goes_on.set()
        self._core.wake()
        if not self.is_current and self._thread.ident is not None:
            self._thread.join()
        self._drain()

    def pause(self) -> None:
        """Pause the thread until `resume`; returns at the end of the thread's current turn."""
        self._goes_on.clear()
        self._core.wake()
        while not self._paused.wait(_PAUSE_CHECK_S) and self._thread.is_alive():
            pass

    def resume(self) -> None:
        """Continue, with the events that have arrived during the pause."""
        self._goes_on.set()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return self._thread.ident == native.get_ident() and self._thread.is_alive()

    def _run(self) -> None:
        never_raise_here()
        # Each step runs even if the previous one raised an exception, so a failed broker always
        # ends. An `ExitStack` calls the steps in reverse order.
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
            _log.error("the cleanup after the failure failed as well", error=fault)

    def turn(self) -> None:
        """Handle the events of a bounded time, then work on pending requests, then run the timers
        that are due. A stop ends it between two events or timers.
        """
        soonest_ns = self._core.now_ns() + _WAIT_NS_MIN
        deadline_ns = 0 if self._is_busy else max(self._timers.next_due_ns(), soonest_ns)
        if not self._take_events(deadline_ns):
            return
        for _ in range(len(self._requests)):
            self._machine.ask(self._requests.popleft())
        self._is_busy = self._machine.advance()
        if self._timers.run(self._core.horizon_ns(), lambda: self._stopping):
            # Work that the timers gave to the machine must not wait for an event: the next one may
            # arrive much later.
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
        """Fail the requests in the queue.

        The loop's thread calls this at its end, and so does a thread that submits a request after
        that; so no request is left.
        """
        while True:
            try:
                request = self._requests.popleft()
            except IndexError:
                return
            request.abandon(BrokerNotAvailableError.code)
