"""Which producers' transactions are open on a group coordinator's partition, as far as is known since it was loaded."""

from collections import OrderedDict
from typing import NamedTuple

from pykafka_core.coordinator.shard import TransactionEnd

MARKER_RAISES_EPOCH = 2
"""From this transaction version on a marker's epoch is one higher than that of the records (KIP-890)."""
ENDS_KEPT = 10_000
"""More transactions than may end while one commit is verified."""


class Guard(NamedTuple):
    """Holds until the transaction that is verified under it ends. ``owner`` is the table that gave it."""

    owner: "OpenTransactions"
    number: int


class _End(NamedTuple):
    """The last end of a producer's transactions, and the epoch of what ended."""

    number: int
    epoch: int


class OpenTransactions:
    """Open transactions by producer id, and the order in which others have ended.

    Only the last `ENDS_KEPT` ends are known; a guard that is older does not hold any more.
    """

    __slots__ = "_ends", "_epochs", "_floor", "_number"

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._ends: OrderedDict[int, _End] = OrderedDict()
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

    def knows(self, guard: Guard) -> bool:
        """Whether all ends since are known."""
        return guard.owner is self and guard.number >= self._floor

    def has_ended(self, guard: Guard, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer's transaction in that epoch, or a later one, has ended since a guard that is known."""
        last = self._ends.get(producer_id)
        return last is not None and last.number > guard.number and last.epoch >= producer_epoch

    def end(self, end: TransactionEnd) -> None:
        """A marker is written."""
        self._epochs.pop(end.producer_id, None)
        self._number += 1
        # A client of TV2 goes on in the marker's epoch, maybe before that is written.
        epoch = end.producer_epoch - (end.transaction_version >= MARKER_RAISES_EPOCH)
        self._ends[end.producer_id] = _End(self._number, epoch)
        self._ends.move_to_end(end.producer_id)
        if len(self._ends) > ENDS_KEPT:
            _, forgotten = self._ends.popitem(last=False)
            self._floor = forgotten.number
