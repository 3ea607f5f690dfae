"""How long the control thread works on one thing before it looks at others."""

from pykafka_core._core import Core
from pykafka_core.handlers.outcome import Slices

TURN_NS = 10_000_000
"""How long one kind of work may go on before the loop looks at events again."""


def advanced(work: Slices[None], core: Core, deadline_ns: int) -> bool:
    """Do one item of work, and more until the deadline; whether it is at its end. Raises what the work raises."""
    try:
        next(work)
        while core.now_ns() < deadline_ns:
            next(work)
    except StopIteration:
        return True
    return False
