"""Loads the on-disk state of a quorum replica: offsets and epochs of its metadata log, and its
newest snapshot.
"""

from collections.abc import Sequence

from pykafka_core._core import Core, Maintained
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.start.loading import apply_snapshot, check_snapshot
from pykafka_core.broker.storage.data_directory import DataDirectory, SnapshotFile
from pykafka_core.broker.storage.snapshot_parts import LoadedSnapshot
from pykafka_core.errors import MetadataError, StorageError, error_of
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum.log.batches import cut
from pykafka_core.quorum.log.state import NO_VOTERS, EpochStart, LogState, recovered
from pykafka_core.quorum.log.voters import after
from pykafka_core.quorum.values import OffsetAndEpoch, VoterSet

READ_BYTES = 64 * 1024
WAIT_NS = 30 * 10**9
"""If emptying the log takes longer, the disk counts as failed."""
RESTART_TOKEN = 2**64 - 1
"""No other command is pending before the control thread runs."""

_log = GuardedLogger(__name__)


def log_state(
    core: Core, snapshots: Sequence[SnapshotFile], first: VoterSet = NO_VOTERS
) -> LogState:
    """Return the state of the metadata log; its batch headers are read from start to end.

    If a snapshot was installed and the previous log still exists, the log is emptied now. The
    caller must have checked before that the newest snapshot is complete.

    Args:
        core: Has opened the log; its events have not been taken.
        snapshots: The snapshots in the data directory.
        first: The voters at the end of the newest snapshot, or those of the formatted directory.

    Raises:
        MetadataError: No snapshot covers the records before the log's start.
        StorageError: The log cannot be emptied.
    """
    offsets = core.offsets(METADATA_PARTITION)
    epochs: list[EpochStart] = []
    voter_sets: tuple[VoterSet, ...] = (first,)
    at = offsets.log_start_offset
    while data := core.read(METADATA_PARTITION, at, READ_BYTES, "log_end"):
        for batch in cut(data):
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs.append(EpochStart(batch.leader_epoch, batch.base_offset))
            at = batch.end_offset
            if batch.change is not None and at > first.end:
                voter_sets += (after(voter_sets[-1], batch.change, at),)
    ids = [OffsetAndEpoch(found.end_offset, found.leader_epoch) for found in snapshots]
    start, end = offsets.log_start_offset, offsets.log_end_offset
    try:
        found = recovered(start, end, tuple(epochs), ids, voter_sets)
    except ValueError as error:
        raise MetadataError(
            f"the metadata log cannot be used: {error}: "
            "restore the .checkpoint files of __cluster_metadata-0"
        ) from error
    if found.is_replaced:
        text = "the metadata log from %d to %d gives way to snapshot %d-%d"
        _log.warning(text, start, end, *found.log.last)
        _restart(core, found.log.start)
    return found.log


def _restart(core: Core, offset: int) -> None:
    core.restart_log(RESTART_TOKEN, METADATA_PARTITION, offset)
    deadline_ns = core.now_ns() + WAIT_NS
    while core.now_ns() < deadline_ns:
        for event in core.wait(deadline_ns):
            if isinstance(event, Maintained) and event.token == RESTART_TOKEN:
                if event.error_code:
                    name = error_of(event.error_code).name
                    raise StorageError(f"the metadata log cannot begin at {offset}: {name}")
                return
    raise StorageError("the metadata log was not emptied in time")


def newest_snapshot(directory: DataDirectory) -> tuple[LoadedSnapshot, int]:
    """Return the content of the newest snapshot and its end; an empty image and 0 if there is none.

    Raises:
        StorageError: It cannot be read.
        MetadataError: It is damaged, or has unknown records.
    """
    snapshot = directory.latest_snapshot()
    replay, quorum = Replay(), QuorumRecords()
    if snapshot is None:
        return LoadedSnapshot(replay, quorum), 0
    if snapshot.end_offset:
        apply_snapshot(replay, snapshot)
    else:
        check_snapshot(snapshot)
    return LoadedSnapshot(replay, quorum.after(snapshot.bytes)), snapshot.end_offset
