"""The control loop: one daemon thread that pulls events from the core and never polls.

It sleeps inside ``core.wait`` with the GIL released until something happened or the next timer is
due. A batch's requests are handled before its timers (rule S6), so a stalled interpreter never
lets a timer fire before the events that came first.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from pykafka_core.broker.runtime.requests import Asked
from pykafka_core.broker.runtime.statistics import WaitStatistics
from pykafka_core.broker.seam.core import Core
from pykafka_core.errors import BrokerNotAvailableError

if TYPE_CHECKING:
    from pykafka_core import _core

_FOREVER_NS = 2**62
_EVENTS_MAX = 256

_log = logging.getLogger(__name__)


class Machine(Protocol):
    """What the loop drives: the controller."""

    def handle(self, events: "Sequence[_core.Event]", asked: Sequence[Asked] = ()) -> None:
        """Take in one batch."""

    def fail_all(self, error_code: int) -> None:
        """Answer everything that waits with an error."""


class Timer:
    """Something to do every so often, first after one interval."""

    def __init__(self, interval_ms: int, now_ns: int, action: Callable[[], None]) -> None:
        self._interval_ns = interval_ms * 1_000_000
        self.due_ns = now_ns + self._interval_ns
        self._action = action

    def run(self, now_ns: int) -> None:
        """Act if due; however late, once."""
        if now_ns >= self.due_ns:
            self.due_ns = now_ns + self._interval_ns
            self._action()


class ControlLoop:
    """Runs a machine on its own thread.

    Args:
        core: Where events come from.
        machine: Belongs to the loop's thread from `start` on.
        timers: Run on the loop's thread.
        name: Of the thread.
    """

    def __init__(self, core: Core, machine: Machine, timers: Sequence[Timer], name: str) -> None:
        self._core = core
        self._machine = machine
        self._timers = timers
        self._asked: deque[Asked] = deque()
        self._stopping = False
        self.waits = WaitStatistics()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def submit(self, asked: Asked) -> None:
        """Hand over a request of this process, from any thread."""
        self._asked.append(asked)
        self._core.wake()
        if not self._thread.is_alive():
            self._drain()

    def stop(self) -> None:
        """Finish the batch at hand, fail what waits, end the thread. From any other thread."""
        self._stopping = True
        self._core.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._drain()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self.turn()
        except Exception:
            _log.exception("the control loop failed; this broker answers nothing any more")
        self._drain()

    def turn(self) -> None:
        """One batch of events, then the timers that are due."""
        deadline = min((timer.due_ns for timer in self._timers), default=_FOREVER_NS)
        events = self._core.wait(deadline, _EVENTS_MAX)
        now = self._core.now_ns()
        self.waits.note(events, now)
        asked = [self._asked.popleft() for _ in range(len(self._asked))]
        self._machine.handle(events, asked)
        for timer in self._timers:
            timer.run(now)

    def _drain(self) -> None:
        self._machine.fail_all(BrokerNotAvailableError.code)
        while self._asked:
            self._asked.popleft().abandon(BrokerNotAvailableError.code)
