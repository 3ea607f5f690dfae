"""Faults and their frequencies."""

from random import Random
from typing import NamedTuple

from pykafka_core.errors import (
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
)

FAILURES = (KafkaStorageError.code, NotLeaderOrFollowerError.code, RequestTimedOutError.code)
"""Error codes of failed appends."""


class Faults(NamedTuple):
    """Probability of each fault, per action."""

    lost: float
    fail: float
    restart: float
    move: float
    jump: float

    @staticmethod
    def drawn(random: Random) -> "Faults":
        """Draw probabilities: some seeds have few faults, some have many."""
        scale = random.choice((0.0, 0.5, 1.0, 2.0, 4.0))
        restart, move = random.choice(((0.003, 0.0), (0.0, 0.006)))
        # Not both: a restart of this single node resets leader epochs, which would fence markers.
        return Faults(
            0.04 * scale, 0.03 * scale, restart * scale, move * scale, 0.005 + 0.01 * scale
        )


NO_FAULTS = Faults(0.0, 0.0, 0.0, 0.0, 0.02)
