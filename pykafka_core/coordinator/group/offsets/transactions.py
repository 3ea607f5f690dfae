"""Open transactions on a group coordinator's partition, as far as known since it was loaded."""

from collections import OrderedDict
from typing import NamedTuple

from pykafka_core.coordinator.shard import TransactionEnd

MARKER_RAISES_EPOCH = 2
"""From this transaction version on, the epoch of a marker is one higher than that of the records
(KIP-890)."""
ENDS_KEPT = 10_000
"""More than the number of transactions that may end during one verification."""


class Guard(NamedTuple):
    """Valid until the transaction that is verified under it ends.

    ``owner`` is the table that created it.
    """

    owner: "OpenTransactions"
    number: int


class _End(NamedTuple):
    """The number of a producer's last transaction end, and the epoch of that transaction."""

    number: int
    epoch: int


class OpenTransactions:
    """Open transactions by producer id, and the order in which others have ended.

    Only the last `ENDS_KEPT` ends are known; an older guard is invalid.
    """

    __slots__ = "_ends", "_epochs", "_floor", "_number"

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._ends: OrderedDict[int, _End] = OrderedDict()
        self._number = 0
        self._floor = 0
        """Ends up to this number may be forgotten."""

    def epoch(self, producer_id: int) -> int | None:
        """Return the epoch of a producer's pending offsets; None if there are none or if unknown
        after a load.
        """
        return self._epochs.get(producer_id)

    def begin(self, producer_id: int, producer_epoch: int) -> None:
        """Note that offsets of a transaction were accepted."""
        self._epochs[producer_id] = producer_epoch

    def guard(self) -> Guard:
        """Return a guard; call this before the verification."""
        return Guard(self, self._number)

    def knows(self, guard: Guard) -> bool:
        """Return whether all ends since the guard was created are known."""
        return guard.owner is self and guard.number >= self._floor

    def has_ended(self, guard: Guard, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a transaction in that epoch or a later one has ended since the guard,
        which must be known.
        """
        last = self._ends.get(producer_id)
        return last is not None and last.number > guard.number and last.epoch >= producer_epoch

    def end(self, end: TransactionEnd) -> None:
        """Note that a marker is written."""
        self._epochs.pop(end.producer_id, None)
        self._number += 1
        # A client of TV2 continues in the marker's epoch, maybe before the marker is written.
        epoch = end.producer_epoch - (end.transaction_version >= MARKER_RAISES_EPOCH)
        self._ends[end.producer_id] = _End(self._number, epoch)
        self._ends.move_to_end(end.producer_id)
        if len(self._ends) > ENDS_KEPT:
            _, forgotten = self._ends.popitem(last=False)
            self._floor = forgotten.number
