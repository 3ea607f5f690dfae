"""Which producers' transactions are open on a group coordinator's partition, as far as is known since it was loaded."""

from collections import OrderedDict
from typing import NamedTuple

ENDS_KEPT = 10_000
"""More transactions than may end while one commit is verified."""


class Guard(NamedTuple):
    """Holds until a marker of the producer is written. ``owner`` is the table that gave it."""

    owner: "OpenTransactions"
    number: int


class OpenTransactions:
    """Open transactions by producer id, and the order in which others have ended.

    Only the last `ENDS_KEPT` ends are known; a guard that is older does not hold any more.
    """

    __slots__ = "_ends", "_epochs", "_floor", "_number"

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._ends: OrderedDict[int, int] = OrderedDict()
        self._number = 0
        self._floor = 0
        """Ends up to this number may be forgotten."""

    def epoch(self, producer_id: int) -> int | None:
        """The epoch in which a producer has offsets pending here; None also where it is not known after a load."""
        return self._epochs.get(producer_id)

    def begin(self, producer_id: int, producer_epoch: int) -> None:
        """Offsets of a transaction were taken."""
        self._epochs[producer_id] = producer_epoch

    def guard(self) -> Guard:
        """Made before a transaction is verified."""
        return Guard(self, self._number)

    def holds(self, guard: Guard, producer_id: int) -> bool:
        """Whether no marker of the producer was written since."""
        is_known = guard.owner is self and guard.number >= self._floor
        return is_known and self._ends.get(producer_id, 0) <= guard.number

    def end(self, producer_id: int) -> None:
        """A marker is written."""
        self._epochs.pop(producer_id, None)
        self._number += 1
        self._ends[producer_id] = self._number
        self._ends.move_to_end(producer_id)
        if len(self._ends) > ENDS_KEPT:
            _, self._floor = self._ends.popitem(last=False)
