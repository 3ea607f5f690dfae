"""What goes wrong, and how often."""

from random import Random
from typing import NamedTuple

from pykafka_core.errors import (
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
)

FAILURES = (KafkaStorageError.code, NotLeaderOrFollowerError.code, RequestTimedOutError.code)
"""Of appends."""


class Faults(NamedTuple):
    """How often what fails; chances of one action."""

    lost: float
    fail: float
    restart: float
    move: float
    jump: float

    @staticmethod
    def drawn(random: Random) -> "Faults":
        """Some seeds are calm, some are bad."""
        scale = random.choice((0.0, 0.5, 1.0, 2.0, 4.0))
        restart, move = random.choice(((0.003, 0.0), (0.0, 0.006)))
        # Not both: after a restart of this one node leader epochs are what they were, and markers would be fenced.
        return Faults(
            0.04 * scale, 0.03 * scale, restart * scale, move * scale, 0.005 + 0.01 * scale
        )


NO_FAULTS = Faults(0.0, 0.0, 0.0, 0.0, 0.02)
