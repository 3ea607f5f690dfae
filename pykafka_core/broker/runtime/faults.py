"""Faults on the control thread: what is caught, and how it is reported.

Theory of operation. What stands alone (a request, a timer, a log line, a fact from the core) is caught alone: it is
reported, and the next item is handled. Everything else ends the control thread, and the broker with it: after a fault
between the commit of metadata records and the end of their step, what the broker decides and what the core
serves would differ. So a broker is healthy or it has stopped; its process, or `Broker.healthy`, says which.
"""

from collections.abc import Callable

from pykafka_core.broker.guarded_log import SURVIVED, GuardedLogger

REPORT_INTERVAL_NS = 60 * 10**9


class Faults:
    """Counts and reports what was caught. Belongs to the control thread; `count` may be read by any.

    Args:
        now_ns: The monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.count = 0
        self._now_ns = now_ns
        self._log = GuardedLogger(__name__)
        self._not_before_ns: dict[str, int] = {}
        self._unreported: dict[str, int] = {}

    def guard(self, what: str, action: Callable[[], object]) -> bool:
        """Call ``action``; False if it raised, which is reported.

        Args:
            what: Names the kind of item. Of each kind one fault a minute is reported.
            action: The item.
        """
        try:
            action()
        except SURVIVED as fault:
            self.caught(what, fault)
            return False
        return True

    def caught(self, what: str, fault: BaseException) -> None:
        """Take note of a fault of one item, and report it unless its kind was reported within a minute."""
        self.count += 1
        now_ns = self._now_ns()
        if now_ns < self._not_before_ns.get(what, 0):
            self._unreported[what] = self._unreported.get(what, 0) + 1
            return
        self._not_before_ns[what] = now_ns + REPORT_INTERVAL_NS
        more = self._unreported.pop(what, 0)
        since = f" ({more} more since the last report)" if more else ""
        self._log.error("%s failed%s; the broker goes on", what, since, error=fault)
