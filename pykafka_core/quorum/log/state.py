"""A replica's in-memory state of its metadata log: ends, epochs, and pending writes.

``0 <= start <= synced_end <= end``, always. ``end`` includes pending writes; ``synced_end`` is what
survives a crash, and the only end that may be reported.

The voter set is part of the log: the newest one is effective from its append on, committed or not,
and a truncation reverts it (KIP-853).
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from pykafka_core.quorum.log.voters import after
from pykafka_core.quorum.values import Batch, OffsetAndEpoch, VoterSet

TRUNCATION = -1
"""Value of ``base_offset`` for a truncation."""

NO_VOTERS = VoterSet(0, ())
"""The set of a node that has no voters yet."""


class EpochStart(NamedTuple):
    """An epoch and the offset of its first record, as in ``leader-epoch-checkpoint``."""

    epoch: int
    start_offset: int


class UnderWay(NamedTuple):
    """A pending write: its base offset, or -1 for a truncation, and the log end after it."""

    base_offset: int
    end: int


class LogState(NamedTuple):
    """The state of the metadata log.

    Attributes:
        epochs: Both numbers increase. An epoch whose records are all before ``start`` starts there.
        snapshot_id: The snapshot of the records before ``start``; None if ``start`` is 0.
        writes: Pending writes, in order.
        newest: The snapshot with the highest end, which may be after ``start``; None without one.
        voter_sets: The first is the set at the end of the newest snapshot or before it, or the
            initial one; ``end`` increases.
    """

    end: int = 0
    synced_end: int = 0
    epochs: tuple[EpochStart, ...] = ()
    snapshot_id: OffsetAndEpoch | None = None
    writes: tuple[UnderWay, ...] = ()
    newest: OffsetAndEpoch | None = None
    voter_sets: tuple[VoterSet, ...] = (NO_VOTERS,)

    @classmethod
    def loaded(
        cls,
        end: int,
        epochs: tuple[EpochStart, ...],
        snapshot_id: OffsetAndEpoch | None = None,
        newest: OffsetAndEpoch | None = None,
        voter_sets: tuple[VoterSet, ...] = (NO_VOTERS,),
    ) -> Self:
        """Return the state of a log on disk; `snapshot_id` is the default for ``newest``."""
        if snapshot_id is not None:
            epochs = _from_snapshot(epochs, snapshot_id)
        return cls(end, end, epochs, snapshot_id, (), newest or snapshot_id, voter_sets)

    @property
    def voter_set(self) -> VoterSet:
        """The set at the end of the log, which is effective."""
        return self.voter_sets[-1]

    def voter_set_at(self, end: int) -> VoterSet:
        """Return the set after all records before ``end``, from the newest snapshot's end on."""
        before = (one for one in reversed(self.voter_sets) if one.end <= end)
        return next(before, self.voter_sets[0])

    @property
    def start(self) -> int:
        """The log start offset."""
        return self.snapshot_id.offset if self.snapshot_id else 0

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, 0 for an empty log."""
        return self.epochs[-1].epoch if self.epochs else 0

    @property
    def last(self) -> OffsetAndEpoch:
        """The end of the log, and the epoch of the last record."""
        return OffsetAndEpoch(self.end, self.last_epoch)

    def end_of(self, epoch: int) -> OffsetAndEpoch:
        """Return the latest epoch up to ``epoch`` and its end; (start, 0) if there is none."""
        end = self.end
        for entry in reversed(self.epochs):
            if entry.epoch <= epoch:
                return OffsetAndEpoch(end, entry.epoch)
            end = entry.start_offset
        return OffsetAndEpoch(self.start, 0)

    def id_at(self, end: int) -> OffsetAndEpoch:
        """Return the id of a snapshot of all records before ``end``: 1, start <= end <= log end."""
        assert max(1, self.start) <= end <= self.end
        before = (entry for entry in reversed(self.epochs) if entry.start_offset < end)
        first = self.epochs[0]
        return OffsetAndEpoch(end, next(before, first).epoch)

    # Changes.

    def appending(self, batches: tuple[Batch, ...]) -> Self:
        """Add a pending write.

        Raises:
            AssertionError: The batches are not consecutive, or do not continue the log.
        """
        end, epochs, sets = self.end, self.epochs, self.voter_sets
        for batch in batches:
            assert batch.base_offset == end, "batches follow each other"
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs += (EpochStart(batch.leader_epoch, end),)
            assert batch.leader_epoch == epochs[-1].epoch, "epochs never go back"
            end = batch.end_offset
            if batch.change is not None:
                sets += (after(sets[-1], batch.change, end),)
        writes = self.writes + (UnderWay(self.end, end),)
        return self._replace(end=end, epochs=epochs, writes=writes, voter_sets=sets)

    def truncating(self, end: int) -> Self:
        """Add a pending truncation; start <= ``end`` <= log end."""
        assert self.start <= end <= self.end
        return self._replace(
            end=end,
            synced_end=min(self.synced_end, end),
            epochs=tuple(entry for entry in self.epochs if entry.start_offset < end)
            if end > self.start
            else self.epochs[:1] * (self.snapshot_id is not None),
            writes=tuple(UnderWay(base, min(old, end)) for base, old in self.writes)
            + (UnderWay(TRUNCATION, end),),
            voter_sets=_up_to(self.voter_sets, end),
        )

    def written(self, base_offset: int) -> Self:
        """Complete the oldest pending write, which is synced."""
        assert self.writes, "a write completes once"
        first, *later = self.writes
        assert base_offset == first.base_offset, (
            "writes complete in order, where they were asked for"
        )
        return self._replace(synced_end=max(self.synced_end, first.end), writes=tuple(later))

    def cleaned(self, snapshot_id: OffsetAndEpoch) -> Self:
        """Remove the records before a snapshot's end."""
        assert self.start <= snapshot_id.offset <= self.synced_end
        epochs = _from_snapshot(self.epochs, snapshot_id)
        return self.with_snapshot(snapshot_id)._replace(epochs=epochs, snapshot_id=snapshot_id)

    def with_snapshot(self, snapshot_id: OffsetAndEpoch) -> Self:
        """Add a snapshot of synced records."""
        assert snapshot_id.offset <= self.synced_end
        known = self.newest
        if known is not None and known.offset >= snapshot_id.offset:
            return self
        passed = _up_to(self.voter_sets, snapshot_id.offset)
        sets = self.voter_sets[len(passed) - 1 :]
        return self._replace(newest=snapshot_id, voter_sets=sets)

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch, voters: VoterSet = NO_VOTERS) -> Self:
        """Return the state of a snapshot without records; ``voters`` is the set at its end."""
        sets = (voters._replace(end=snapshot_id.offset),)
        return cls.loaded(snapshot_id.offset, (), snapshot_id, voter_sets=sets)


class Recovered(NamedTuple):
    """The log on disk, and whether it must be emptied to start at its snapshot's end."""

    log: LogState
    is_replaced: bool = False


def recovered(
    start: int,
    end: int,
    epochs: tuple[EpochStart, ...],
    snapshots: Iterable[OffsetAndEpoch],
    voter_sets: tuple[VoterSet, ...] = (NO_VOTERS,),
) -> Recovered:
    """Return the state of a log on disk, where an operation may have been interrupted.

    A snapshot only contains committed records. A log that ends before the newest snapshot, or has
    another epoch there, was about to be replaced by it, and must be. A log that starts before the
    oldest snapshot, but not at 0, was about to be cleaned up to it: it starts at that snapshot.

    Args:
        start, end: Offsets of the log as found.
        epochs: Epochs of its records.
        snapshots: Complete snapshots, in any order.
        voter_sets: First the set of the newest snapshot, or the one that the node was formatted
            with, then those in the records.

    Raises:
        ValueError: No snapshot covers the records before ``start``.
    """
    held = sorted(one for one in snapshots if one.offset >= max(1, start))
    newest = held[-1] if held else None
    if newest is not None and not _has(start, end, epochs, newest):
        return Recovered(LogState.of_snapshot(newest, voter_sets[0]), is_replaced=True)
    if start and not held:
        raise ValueError(f"it begins at offset {start} and no snapshot reaches up to it")
    first = held[0] if start else None
    return Recovered(LogState.loaded(end, epochs, first, newest, voter_sets))


def _has(start: int, end: int, epochs: tuple[EpochStart, ...], snapshot_id: OffsetAndEpoch) -> bool:
    """Return whether a log contains, or starts after, the last record of a snapshot."""
    if snapshot_id.offset == start:
        return True
    before = [entry.epoch for entry in epochs if entry.start_offset < snapshot_id.offset]
    return snapshot_id.offset <= end and before[-1:] == [snapshot_id.epoch]


def _from_snapshot(
    epochs: tuple[EpochStart, ...], snapshot_id: OffsetAndEpoch
) -> tuple[EpochStart, ...]:
    """Start the snapshot's epoch at its end, for fetches that name it; keep later epochs."""
    later = tuple(entry for entry in epochs if entry.epoch > snapshot_id.epoch)
    return (EpochStart(snapshot_id.epoch, snapshot_id.offset), *later)


def _up_to(sets: tuple[VoterSet, ...], end: int) -> tuple[VoterSet, ...]:
    """Return the sets of the records before ``end``, and always the first set."""
    return sets[:1] + tuple(one for one in sets[1:] if one.end <= end)
