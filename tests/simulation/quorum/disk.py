"""A replica's disk: what was asked for, and what a crash leaves of it."""

from bisect import bisect_right
from collections import deque
from random import Random

from pykafka_core.quorum.events import AppendFetched, Truncate
from pykafka_core.quorum.log_state import EpochStart, LogState
from pykafka_core.quorum.values import Batch, ElectionState, OffsetAndEpoch


class Disk:
    """Writes are in ``batches`` at once, and in ``synced`` in their order, when the world says so.

    Attributes:
        states: Quorum-states that are being written, the oldest first.
        writes: Likewise of the log.
    """

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.synced: list[Batch] = []
        self.snapshot_id: OffsetAndEpoch | None = None
        self.state = ElectionState(0)
        self.states: deque[ElectionState] = deque()
        self.writes: deque[AppendFetched | Truncate] = deque()

    @property
    def start(self) -> int:
        return self.snapshot_id.offset if self.snapshot_id else 0

    @property
    def end(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start

    @property
    def synced_end(self) -> int:
        return self.synced[-1].end_offset if self.synced else self.start

    @property
    def last(self) -> OffsetAndEpoch:
        """The end, with all that is being written."""
        if self.batches:
            return OffsetAndEpoch(self.batches[-1].end_offset, self.batches[-1].leader_epoch)
        return self.snapshot_id or OffsetAndEpoch(0, 0)

    def read(self, offset: int, batches_max: int) -> tuple[Batch, ...]:
        """Batches from one that begins at ``offset``."""
        place = bisect_right(self.batches, offset, key=lambda batch: batch.end_offset)
        found = tuple(self.batches[place : place + batches_max])
        assert found, "there are records to read"
        assert found[0].base_offset == offset, "a fetch begins with a batch"
        return found

    # What is written.

    def write(self, command: AppendFetched | Truncate) -> None:
        self.writes.append(command)
        _carry_out(command, self.batches)

    def sync_log(self) -> AppendFetched | Truncate:
        """The oldest write is safe."""
        command = self.writes.popleft()
        _carry_out(command, self.synced)
        return command

    def sync_state(self) -> None:
        """The oldest quorum-state is safe."""
        self.state = self.states.popleft()

    def clean(self, snapshot_id: OffsetAndEpoch) -> None:
        """Batches before a snapshot's end are deleted."""
        self.snapshot_id = snapshot_id
        for log in (self.batches, self.synced):
            log[:] = [batch for batch in log if batch.base_offset >= snapshot_id.offset]

    def install(self, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot takes the place of the log."""
        assert not self.writes
        self.snapshot_id = snapshot_id
        self.batches.clear()
        self.synced.clear()

    # Crashes.

    def crash(self, random: Random) -> int:
        """What is not synced is gone, but for a beginning of it; how many offsets are gone."""
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
        self.batches = list(self.synced)
        return before - self.end

    def loaded(self) -> LogState:
        """As a start of the node finds it."""
        epochs: list[EpochStart] = []
        for batch in self.synced:
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs.append(EpochStart(batch.leader_epoch, batch.base_offset))
        return LogState.loaded(self.synced_end, tuple(epochs), self.snapshot_id)


def _carry_out(command: AppendFetched | Truncate, log: list[Batch]) -> None:
    if isinstance(command, AppendFetched):
        log.extend(command.batches)
    else:
        while log and log[-1].end_offset > command.end_offset:
            removed = log.pop()
            assert removed.base_offset >= command.end_offset, "batches are cut whole"
