"""Time slices of the control thread."""

from pykafka_core._core import Core
from pykafka_core.handlers.outcome import Work

TIME_SLICE_NS = 10_000_000
"""Maximum time for one kind of work before the loop handles events again."""


def advanced(work: Work[None], core: Core, deadline_ns: int) -> bool:
    """Do at least one step of work, until the deadline; return whether it is complete.

    Exceptions of the work are raised.
    """
    try:
        next(work)
        while core.now_ns() < deadline_ns:
            next(work)
    except StopIteration:
        return True
    return False
