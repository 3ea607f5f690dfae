"""Trust in a disk, or in the files of a partition: lost with a failure, regained after a while."""

from typing import Final

SECOND_NS: Final = 1_000_000_000
GRACE_NS: Final = 5 * SECOND_NS
"""How long it has to work before it is trusted again; each relapse doubles that."""
GRACE_NS_MAX: Final = 80 * SECOND_NS
RELAPSE_NS: Final = 600 * SECOND_NS
"""A failure later than this after the return is not a relapse."""


class Trust:
    """State of one subject. All times are monotonic.

    Attributes:
        failed_ns: When trust was lost; None while there is trust.
    """

    def __init__(self) -> None:
        self.failed_ns: int | None = None
        self._grace_ns = GRACE_NS
        self._well_since_ns: int | None = None
        self._trusted_ns: int | None = None

    def failed(self, now_ns: int) -> bool:
        """Note a failure; whether trust is lost by it."""
        self._well_since_ns = None
        if self.failed_ns is not None:
            return False
        is_relapse = self._trusted_ns is not None and now_ns - self._trusted_ns < RELAPSE_NS
        self._grace_ns = min(2 * self._grace_ns, GRACE_NS_MAX) if is_relapse else GRACE_NS
        self.failed_ns = now_ns
        return True

    def succeeded(self, now_ns: int) -> bool:
        """Note that it works; whether trust is regained by it."""
        if self.failed_ns is None:
            return False
        if self._well_since_ns is None:
            self._well_since_ns = now_ns
        if now_ns - self._well_since_ns < self._grace_ns:
            return False
        self.failed_ns, self._trusted_ns = None, now_ns
        return True

    def is_forgettable(self, now_ns: int) -> bool:
        """Whether a new state would behave the same from now on."""
        is_trusted = self.failed_ns is None
        return is_trusted and (self._trusted_ns is None or now_ns - self._trusted_ns >= RELAPSE_NS)
