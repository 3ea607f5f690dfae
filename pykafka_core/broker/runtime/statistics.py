"""Counters of the control plane, in addition to the core's counters."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pykafka_core._core import Request

if TYPE_CHECKING:
    from pykafka_core._core import Event


class WaitStatistics:
    """The time that requests waited for the control thread, including the GIL.

    A request's wait ends when the thread has it in Python: these are the only counters that show
    the cost of the user's threads that hold the GIL. A wait in a lane after that is not included.
    """

    __slots__ = "requests_count", "wait_ns_max", "wait_ns_sum"

    def __init__(self) -> None:
        self.requests_count = self.wait_ns_sum = self.wait_ns_max = 0

    def note(self, events: "Sequence[Event]", now_ns: int) -> None:
        """Count a batch of events that the core returned at ``now_ns``."""
        for event in events:
            if isinstance(event, Request):
                wait = max(now_ns - event.received_ns, 0)
                self.requests_count += 1
                self.wait_ns_sum += wait
                self.wait_ns_max = max(self.wait_ns_max, wait)

    def snapshot(self) -> Mapping[str, int]:
        """Return the counters by name; times in nanoseconds."""
        return {
            "control.requests.count": self.requests_count,
            "control.wait.ns.sum": self.wait_ns_sum,
            "control.wait.ns.max": self.wait_ns_max,
        }
