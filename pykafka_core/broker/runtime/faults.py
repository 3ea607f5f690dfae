"""Faults on the control thread: what is caught, and how it is reported.

Theory of operation. What stands alone (a request, a timer, a log line, a fact from the core) is caught alone: it is
reported, and the next item is handled. Everything else ends the control thread, and the broker with it: after a fault
between the commit of metadata records and the end of their step, what the broker decides and what the core
serves would differ. So a broker is healthy or it has stopped; its process, or `Broker.healthy`, says which.
"""

from collections.abc import Callable

from pykafka_core.broker.guarded_log import SURVIVED, GuardedLogger
from pykafka_core.broker.notices import Notices


class Faults:
    """Counts and reports what was caught. Belongs to the control thread; `count` may be read by any.

    Args:
        now_ns: The monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.count = 0
        self._log = GuardedLogger(__name__)
        self._notices = Notices(now_ns)

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
        more = self._notices.admit(what)
        if more is None:
            return
        since = f" ({more} more since the last report)" if more else ""
        self._log.error("%s failed%s; the broker goes on", what, since, error=fault)
