"""What a replica knows of its metadata log without reading it: ends, epochs, and the writes that are under way.

``0 <= start <= synced_end <= end``, always. ``end`` includes what the log was asked to write and has not synced;
``synced_end`` is what a crash leaves, and all that may be counted.

The voter set is part of the log: the newest one counts from its append on, committed or not, and a truncation gives it
up again (KIP-853).
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from pykafka_core.quorum.log.voters import after
from pykafka_core.quorum.values import Batch, OffsetAndEpoch, VoterSet

TRUNCATION = -1
"""In place of an offset."""

NO_VOTERS = VoterSet(0, ())
"""Of a node that knows nobody yet."""


class EpochStart(NamedTuple):
    """An epoch and the offset of its first record, as in ``leader-epoch-checkpoint``."""

    epoch: int
    start_offset: int


class UnderWay(NamedTuple):
    """A write that the log was asked for: where it begins, -1 for a truncation, and where the log ends then."""

    base_offset: int
    end: int


class LogState(NamedTuple):
    """The metadata log as numbers.

    Attributes:
        epochs: Both numbers increase, but an epoch all of whose records are before ``start`` begins there too.
        snapshot_id: What is before ``start``; None if that is 0.
        writes: The writes under way, in order.
        newest: The snapshot with the highest end, which may be behind ``start``; None if there is none.
        voter_sets: The first is that at the end of the newest snapshot or before, or of the start; ``end`` increases.
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
        """As a disk holds it; what the log begins with is the newest snapshot if no other one is named."""
        if snapshot_id is not None:
            epochs = _from_snapshot(epochs, snapshot_id)
        return cls(end, end, epochs, snapshot_id, (), newest or snapshot_id, voter_sets)

    @property
    def voter_set(self) -> VoterSet:
        """That of the log's end, which counts."""
        return self.voter_sets[-1]

    def voter_set_at(self, end: int) -> VoterSet:
        """That of all records before ``end``, which is not before the newest snapshot's end."""
        before = (one for one in reversed(self.voter_sets) if one.end <= end)
        return next(before, self.voter_sets[0])

    @property
    def start(self) -> int:
        """The log start offset."""
        return self.snapshot_id.offset if self.snapshot_id else 0

    @property
    def last_epoch(self) -> int:
        """Of the last record, 0 for an empty log."""
        return self.epochs[-1].epoch if self.epochs else 0

    @property
    def last(self) -> OffsetAndEpoch:
        """The end, and the epoch of what is before it."""
        return OffsetAndEpoch(self.end, self.last_epoch)

    def end_of(self, epoch: int) -> OffsetAndEpoch:
        """The latest epoch that is not later than ``epoch``, and where it ends; (start, 0) if there is none."""
        end = self.end
        for entry in reversed(self.epochs):
            if entry.epoch <= epoch:
                return OffsetAndEpoch(end, entry.epoch)
            end = entry.start_offset
        return OffsetAndEpoch(self.start, 0)

    def id_at(self, end: int) -> OffsetAndEpoch:
        """The id of a snapshot of all before ``end``; start <= ``end`` <= the log's, and not 0."""
        assert max(1, self.start) <= end <= self.end
        before = (entry for entry in reversed(self.epochs) if entry.start_offset < end)
        first = self.epochs[0]
        return OffsetAndEpoch(end, next(before, first).epoch)

    # What changes it.

    def appending(self, batches: tuple[Batch, ...]) -> Self:
        """With a write under way.

        Raises:
            AssertionError: The batches do not follow each other and the log.
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
        """With a truncation under way; start <= ``end`` <= the log's."""
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
        """After the oldest write under way was synced."""
        assert self.writes, "a write completes once"
        first, *later = self.writes
        assert base_offset == first.base_offset, (
            "writes complete in order, where they were asked for"
        )
        return self._replace(synced_end=max(self.synced_end, first.end), writes=tuple(later))

    def cleaned(self, snapshot_id: OffsetAndEpoch) -> Self:
        """Without the records before a snapshot's end."""
        assert self.start <= snapshot_id.offset <= self.synced_end
        epochs = _from_snapshot(self.epochs, snapshot_id)
        return self.with_snapshot(snapshot_id)._replace(epochs=epochs, snapshot_id=snapshot_id)

    def with_snapshot(self, snapshot_id: OffsetAndEpoch) -> Self:
        """With a snapshot of synced records."""
        assert snapshot_id.offset <= self.synced_end
        known = self.newest
        if known is not None and known.offset >= snapshot_id.offset:
            return self
        passed = _up_to(self.voter_sets, snapshot_id.offset)
        sets = self.voter_sets[len(passed) - 1 :]
        return self._replace(newest=snapshot_id, voter_sets=sets)

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch, voters: VoterSet = NO_VOTERS) -> Self:
        """A snapshot and no records; ``voters`` are those at its end."""
        sets = (voters._replace(end=snapshot_id.offset),)
        return cls.loaded(snapshot_id.offset, (), snapshot_id, voter_sets=sets)


class Recovered(NamedTuple):
    """The log of a disk, and whether it is still to be emptied, to begin at its snapshot's end."""

    log: LogState
    is_replaced: bool = False


def recovered(
    start: int,
    end: int,
    epochs: tuple[EpochStart, ...],
    snapshots: Iterable[OffsetAndEpoch],
    voter_sets: tuple[VoterSet, ...] = (NO_VOTERS,),
) -> Recovered:
    """The log of a disk on which something may have ended half way.

    A snapshot holds what is committed. A log that ends before the newest one, or has records of another epoch there,
    was about to be replaced by it, and is to be. One that begins before the oldest snapshot, and not at 0, was about to
    lose what is before: it counts from there on.

    Args:
        start, end: Of the log as it was found.
        epochs: Of its records.
        snapshots: That are whole, in any order.
        voter_sets: First that of the newest snapshot, or what the node was formatted with, then those of the records.

    Raises:
        ValueError: No snapshot stands for what is before ``start``.
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
    """Whether a log holds, or begins behind, the last record that a snapshot stands for."""
    if snapshot_id.offset == start:
        return True
    before = [entry.epoch for entry in epochs if entry.start_offset < snapshot_id.offset]
    return snapshot_id.offset <= end and before[-1:] == [snapshot_id.epoch]


def _from_snapshot(
    epochs: tuple[EpochStart, ...], snapshot_id: OffsetAndEpoch
) -> tuple[EpochStart, ...]:
    """The snapshot's epoch begins at its end, for the fetch that names it; then the epochs after it."""
    later = tuple(entry for entry in epochs if entry.epoch > snapshot_id.epoch)
    return (EpochStart(snapshot_id.epoch, snapshot_id.offset), *later)


def _up_to(sets: tuple[VoterSet, ...], end: int) -> tuple[VoterSet, ...]:
    """Those that the records before ``end`` say, and the first in any case."""
    return sets[:1] + tuple(one for one in sets[1:] if one.end <= end)
