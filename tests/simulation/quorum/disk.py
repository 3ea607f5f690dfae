"""A replica's disk: requested writes, and the part of them that survives a crash."""

import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from random import Random

from pykafka_core.quorum.events import AppendFetched, StorePart, Truncate
from pykafka_core.quorum.log.state import EpochStart, LogState, recovered
from pykafka_core.quorum.log.voters import after
from pykafka_core.quorum.values import Batch, ElectionState, OffsetAndEpoch, VoterSet


def digest_of(batches: Iterable[Batch], before: int = 0) -> int:
    """Return the digest of all records; ``before`` is the digest of those before the batches."""
    for batch in batches:
        before = zlib.crc32(repr(batch).encode(), before)
    return before


class Snapshot:
    """A snapshot as bytes: the digest of its records, twice, around bytes specific to its writer.

    Nodes write different bytes for the same records, so parts of two snapshots are not a snapshot.
    """

    @staticmethod
    def encode(digest: int, node_id: int, padding: int) -> bytes:
        edge = digest.to_bytes(4, "big")
        return edge + bytes((node_id,)) * padding + edge

    @staticmethod
    def digest(content: bytes) -> int | None:
        """Return the digest, or None if the bytes are not a snapshot."""
        head, middle, foot = content[:4], content[4:-4], content[-4:]
        is_whole = len(content) >= 8 and head == foot and len(set(middle)) <= 1
        return int.from_bytes(head, "big") if is_whole else None


class Disk:
    """Writes are in ``batches`` at once, and in ``synced`` in order, when the world syncs them.

    Attributes:
        states: Quorum-states that are being written, the oldest first.
        writes: Writes to the log that are in progress, the oldest first.
        start: The log start offset.
        snapshots: Complete snapshots.
        parts: Stored parts of a snapshot that is downloaded.
        formatted: The voters that the directory was formatted with.
        snapshot_voters: The voter set at each snapshot's end.
    """

    def __init__(self, formatted: VoterSet) -> None:
        self.formatted = formatted
        self.snapshot_voters: dict[OffsetAndEpoch, VoterSet] = {}
        self.batches: list[Batch] = []
        self.synced: list[Batch] = []
        self.start = 0
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.parts = b""
        self.state = ElectionState(0)
        self.states: deque[ElectionState] = deque()
        self.writes: deque[AppendFetched | Truncate] = deque()

    @property
    def end(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start

    @property
    def synced_end(self) -> int:
        return self.synced[-1].end_offset if self.synced else self.start

    @property
    def last(self) -> OffsetAndEpoch:
        """The end, including writes in progress."""
        if self.batches:
            return OffsetAndEpoch(self.batches[-1].end_offset, self.batches[-1].leader_epoch)
        return self.snapshot_at(self.start) or OffsetAndEpoch(0, 0)

    def snapshot_at(self, offset: int) -> OffsetAndEpoch | None:
        return next((one for one in self.snapshots if one.offset == offset), None)

    def digest(self, end: int) -> int:
        """Return the digest of all synced records before ``end``, including the snapshot."""
        first = self.snapshot_at(self.start)
        before = Snapshot.digest(self.snapshots[first]) if first else 0
        assert before is not None
        return digest_of((one for one in self.synced if one.end_offset <= end), before)

    def read(self, offset: int, batches_max: int) -> tuple[Batch, ...]:
        """Return batches from the one that starts at ``offset``."""
        place = bisect_right(self.batches, offset, key=lambda batch: batch.end_offset)
        found = tuple(self.batches[place : place + batches_max])
        assert found, "there are records to read"
        assert found[0].base_offset == offset, "a fetch begins with a batch"
        return found

    # Writes.

    def write(self, command: AppendFetched | Truncate) -> None:
        self.writes.append(command)
        _carry_out(command, self.batches)

    def sync_log(self) -> AppendFetched | Truncate:
        """Sync the oldest write."""
        command = self.writes.popleft()
        _carry_out(command, self.synced)
        return command

    def sync_state(self) -> None:
        """Sync the oldest quorum-state."""
        self.state = self.states.popleft()

    # Snapshots.

    def take(self, snapshot_id: OffsetAndEpoch, content: bytes, voters: VoterSet) -> None:
        self.snapshots[snapshot_id] = content
        self.snapshot_voters[snapshot_id] = voters._replace(end=snapshot_id.offset)

    def voter_sets(self, log: Iterable[Batch]) -> tuple[VoterSet, ...]:
        """Return the newest snapshot's (or the formatted) voter set, and those in the log."""
        newest = max(self.snapshots, default=None)
        first = self.formatted if newest is None else self.snapshot_voters[newest]
        sets: tuple[VoterSet, ...] = (first,)
        for batch in log:
            if batch.change is not None and batch.end_offset > sets[-1].end:
                sets += (after(sets[-1], batch.change, batch.end_offset),)
        return sets

    def clean(self, offset: int) -> None:
        """Delete everything before a snapshot's end."""
        self.start = offset
        for log in (self.batches, self.synced):
            log[:] = [batch for batch in log if batch.base_offset >= offset]
        self.snapshots = {one: at for one, at in self.snapshots.items() if one.offset >= offset}

    def store(self, command: StorePart) -> None:
        """Store a part: the first one starts a snapshot, others continue it."""
        kept = self.parts if command.position else b""
        assert len(kept) == command.position, "parts follow each other"
        self.parts = kept + command.part

    def restart_log(self, offset: int) -> None:
        """Empty the log; it starts at a snapshot's end."""
        assert not self.writes
        self.batches.clear()
        self.synced.clear()
        self.clean(offset)

    # Crashes.

    def crash(self, random: Random) -> int:
        """Keep a random prefix of the unsynced writes; return the number of lost offsets."""
        before = self.end
        for _ in range(random.randint(0, len(self.states))):
            self.sync_state()
        self.states.clear()
        for _ in range(random.randint(0, len(self.writes))):
            self.sync_log()
        if self.writes and isinstance(self.writes[0], AppendFetched):
            batches = self.writes[0].batches
            _carry_out(AppendFetched(batches[: random.randrange(len(batches))]), self.synced)
        self.writes.clear()
        self.parts = b""
        self.batches = list(self.synced)
        return before - self.end

    def loaded(self) -> LogState:
        """Return the log state that a start of the node finds."""
        epochs: list[EpochStart] = []
        for batch in self.synced:
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs.append(EpochStart(batch.leader_epoch, batch.base_offset))
        sets = self.voter_sets(self.synced)
        found = recovered(self.start, self.synced_end, tuple(epochs), self.snapshots, sets)
        if found.is_replaced:
            self.restart_log(found.log.start)
        return found.log


def _carry_out(command: AppendFetched | Truncate, log: list[Batch]) -> None:
    if isinstance(command, AppendFetched):
        log.extend(command.batches)
    else:
        while log and log[-1].end_offset > command.end_offset:
            removed = log.pop()
            assert removed.base_offset >= command.end_offset, "batches are cut whole"
