"""Committed offsets according to the log: a model that is independent of the coordinator."""

from typing import Any, NamedTuple

from tests.simulation.rules.ledger import Batch

GroupPartition = tuple[str, str, int]
"""Group, topic and partition."""


class _Logged(NamedTuple):
    position: int
    offset: int


class OffsetsModel:
    """One partition of `__consumer_offsets`.

    An offset of a transaction counts from its marker on, unless a later one in the log counts
    already.
    """

    def __init__(self) -> None:
        self._counting: dict[GroupPartition, _Logged] = {}
        self._pending: dict[int, list[tuple[GroupPartition, _Logged]]] = {}

    def offset(self, batch: Batch, position: int, key: Any, value: Any) -> None:
        """Process an offset record; one without a value removes it, and pending ones too."""
        place = key.group, key.topic, key.partition
        if value is None:
            self._counting.pop(place, None)
            for pending in self._pending.values():
                pending[:] = [one for one in pending if one[0] != place]
        elif batch.is_transactional:
            logged = _Logged(position, value.offset)
            self._pending.setdefault(batch.producer_id, []).append((place, logged))
        else:
            self._counting[place] = _Logged(position, value.offset)

    def marker(self, producer_id: int, *, committed: bool) -> None:
        """Process the end of a transaction."""
        for place, logged in self._pending.pop(producer_id, ()):
            before = self._counting.get(place)
            if committed and (before is None or before.position < logged.position):
                self._counting[place] = logged

    def counting(self) -> dict[GroupPartition, int]:
        """Return the committed offsets of all groups."""
        return {place: logged.offset for place, logged in self._counting.items()}
