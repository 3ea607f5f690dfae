"""Faults on the control thread: which exceptions are caught, and how they are reported.

Theory of operation. An exception in an independent item (a request, a timer, a log line, a report
from the core) is caught and reported, and the next item is handled. Any other exception ends the
control thread and the broker: after a fault between the commit of metadata records and the end of
their step, the state of the control plane and that of the core would differ. So a broker is either
healthy or stopped; its process, or `Broker.healthy`, shows which.
"""

from collections.abc import Callable

from pykafka_core.broker.rate_limited_logging import Notices
from pykafka_core.broker.safe_logging import SURVIVED, GuardedLogger


class Faults:
    """Counts and reports caught exceptions.

    Used only by the control thread; any thread may read `count`.

    Args:
        now_ns: The monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.count = 0
        self._log = GuardedLogger(__name__)
        self._notices = Notices(now_ns)

    def guard(self, what: str, action: Callable[[], object]) -> bool:
        """Call ``action``; report an exception and return False.

        Args:
            what: Name of the kind of item. One fault a minute of each kind is reported.
            action: The item.
        """
        try:
            action()
        except SURVIVED as fault:
            self.caught(what, fault)
            return False
        return True

    def caught(self, what: str, fault: BaseException) -> None:
        """Count a fault of one item, and report it unless its kind was reported within a minute."""
        self.count += 1
        more = self._notices.admit(what)
        if more is None:
            return
        since = f" ({more} more since the last report)" if more else ""
        self._log.error("%s failed%s; the broker continues", what, since, error=fault)
