"""Faults of a history, and their frequencies."""

from random import Random
from typing import NamedTuple

ACTIONS = (
    "crash",
    "crash_all",
    "isolate",
    "split",
    "one_way",
    "heal",
    "pause",
    "jump",
    "wipe",
    "disk_error",
    "resign",
    "hang",
    "slow",
)


class Faults(NamedTuple):
    """Frequencies and durations.

    Attributes:
        lost, doubled: Probabilities for a message.
        delay_ms_max: Of most messages; one in ten takes up to ten times as long.
        sync_ms_max: Of a write.
        actions: Weights, in the order of `ACTIONS`.
        pause_ms_mean: Between two actions.
        ambush: Probability that a leader fails just after an append.
        snapshot_ms_mean: Between two snapshots of any node, each with a possible cleanup of its
            log; 0: no snapshots.
        change_ms_mean: Between two requests to change the voters; 0: no changes.
    """

    lost: float
    doubled: float
    delay_ms_max: int
    sync_ms_max: int
    actions: tuple[float, ...]
    pause_ms_mean: int
    ambush: float
    snapshot_ms_mean: int
    change_ms_mean: int

    @staticmethod
    def drawn(random: Random) -> "Faults":
        """Draw frequencies: some seeds have few faults, some many of one kind."""
        scale = random.choice((0.0, 0.3, 1.0, 3.0))
        return Faults(
            lost=0.02 * scale,
            doubled=0.02 * scale,
            delay_ms_max=random.choice((2, 10, 60)),
            sync_ms_max=random.choice((2, 20, 150)),
            actions=tuple(random.choice((0.0, 1.0, 1.0, 4.0)) for _ in ACTIONS),
            pause_ms_mean=random.choice((150, 400, 1000)),
            ambush=random.choice((0.0, 0.2, 0.5)),
            snapshot_ms_mean=random.choice((0, 50, 200, 1000)),
            change_ms_mean=random.choice((0, 100, 300, 1000)),
        )


NO_FAULTS = Faults(0.0, 0.0, 10, 5, (), 1000, 0.0, 0, 0)
"""The end of a history, in which the quorum must recover."""
