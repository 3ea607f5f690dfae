"""`LogState` is compared with a list that contains the epoch of every record."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pykafka_core.quorum.log.state import TRUNCATION, EpochStart, LogState, recovered
from pykafka_core.quorum.values import Batch, OffsetAndEpoch


class Logs(RuleBasedStateMachine):
    """Appends, truncations, syncs and cleanings in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.log = LogState()
        self.epochs: list[int] = []
        """The epoch of each record from offset 0 on."""
        self.start = 0
        self.writes: list[tuple[int, list[int]]] = []
        """Pending writes: the base offset, and the epochs of all records on disk after the
        write."""
        self.synced: list[int] = []

    @rule(count=st.integers(1, 3), step=st.integers(0, 2))
    def append(self, count: int, step: int) -> None:
        base = len(self.epochs)
        epoch = max(1, self.log.last_epoch + step)
        self.log = self.log.appending((Batch(base, epoch, count, b""),))
        self.epochs += [epoch] * count
        self.writes.append((base, list(self.epochs)))

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.start, len(self.epochs)))
        self.log = self.log.truncating(end)
        self.epochs = self.epochs[:end]
        self.writes.append((TRUNCATION, list(self.epochs)))

    @precondition(lambda self: self.writes)
    @rule()
    def sync(self) -> None:
        base, self.synced = self.writes.pop(0)
        self.log = self.log.written(base)

    @rule(data=st.data())
    def clean(self, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.start, self.log.synced_end))
        if end > self.start:
            self.start = end
            self.log = self.log.cleaned(OffsetAndEpoch(end, self.epochs[end - 1]))

    @invariant()
    def it_agrees_with_the_list(self) -> None:
        log = self.log
        assert (log.start, log.end) == (self.start, len(self.epochs))
        assert log.last_epoch == (self.epochs[-1] if self.epochs else 0)
        assert log.start <= log.synced_end <= log.end
        agreed = self.epochs[: log.synced_end]
        assert self.synced[: log.synced_end] == agreed, "what counts as synced is on the disk"
        if not self.writes:
            assert log.synced_end == log.end

    @invariant()
    def the_end_of_an_epoch_is_where_a_later_one_begins(self) -> None:
        first = self.epochs[self.start - 1] if self.start else 0
        for asked in range(first, self.log.last_epoch + 2):
            held = [place for place, epoch in enumerate(self.epochs) if epoch <= asked]
            end = held[-1] + 1 if held else 0
            assert self.log.end_of(asked) == (end, self.epochs[end - 1] if end else 0)

    @invariant()
    def a_start_finds_the_same(self) -> None:
        if not self.writes:
            starts: list[EpochStart] = []
            for place, epoch in enumerate(self.epochs[self.start :], self.start):
                if not starts or epoch > starts[-1].epoch:
                    starts.append(EpochStart(epoch, place))
            loaded = LogState.loaded(self.log.end, tuple(starts), self.log.snapshot_id)
            assert loaded == self.log
            snapshots = [self.log.snapshot_id] if self.log.snapshot_id else []
            assert recovered(self.start, self.log.end, tuple(starts), snapshots) == (loaded, False)

    @invariant()
    def a_snapshots_id_has_the_epoch_of_its_last_record(self) -> None:
        for end in range(max(1, self.start), self.log.end + 1):
            assert self.log.id_at(end) == (end, self.epochs[end - 1])


TestLogs = Logs.TestCase


@pytest.mark.parametrize(
    "batches",
    [
        (Batch(1, 1, 1, b""),),
        (Batch(0, 2, 1, b""), Batch(1, 1, 1, b"")),
    ],
)
def test_batches_that_do_not_follow_the_log_are_a_bug(batches: tuple[Batch, ...]) -> None:
    with pytest.raises(AssertionError):
        LogState().appending(batches)


def test_writes_complete_in_order() -> None:
    log = LogState().appending((Batch(0, 1, 2, b""),)).truncating(1)
    with pytest.raises(AssertionError, match="in order"):
        log.written(TRUNCATION)
    assert log.written(0).written(TRUNCATION) == LogState(1, 1, (EpochStart(1, 0),))


EPOCHS = (EpochStart(1, 4), EpochStart(3, 6))
FIRST = OffsetAndEpoch(4, 1)


@pytest.mark.parametrize(
    ("newest", "is_replaced"),
    [
        (OffsetAndEpoch(5, 1), False),
        (OffsetAndEpoch(6, 1), False),
        (OffsetAndEpoch(8, 3), False),
        (OffsetAndEpoch(8, 2), True),
        (OffsetAndEpoch(6, 2), True),
        (OffsetAndEpoch(9, 3), True),
        (OffsetAndEpoch(99, 1), True),
    ],
)
def test_snapshot_beyond_the_log_replaces_it(newest: OffsetAndEpoch, is_replaced: bool) -> None:
    """A crash may have happened after the snapshot got its name, before the log was emptied."""
    found = recovered(4, 8, EPOCHS, [newest, FIRST, OffsetAndEpoch(2, 1)])
    kept = LogState.loaded(8, EPOCHS, FIRST, newest)
    assert found == (LogState.of_snapshot(newest) if is_replaced else kept, is_replaced)


def test_log_whose_start_was_about_to_be_deleted_starts_at_the_oldest_snapshot() -> None:
    found = recovered(4, 8, EPOCHS, [OffsetAndEpoch(2, 1), OffsetAndEpoch(6, 1)])
    assert found == (LogState.loaded(8, EPOCHS, OffsetAndEpoch(6, 1)), False)


def test_log_without_a_snapshot_of_its_deleted_start_is_damaged() -> None:
    with pytest.raises(ValueError, match="offset 4"):
        recovered(4, 8, EPOCHS, [OffsetAndEpoch(2, 1)])


def test_bootstrap_snapshot_of_a_formatted_directory_is_ignored() -> None:
    found = recovered(0, 2, (EpochStart(1, 0),), [OffsetAndEpoch(0, 0)])
    assert found == (LogState.loaded(2, (EpochStart(1, 0),)), False)
