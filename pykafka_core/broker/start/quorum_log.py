"""What a replica of the quorum finds on its disk: its metadata log as numbers."""

from collections.abc import Sequence

from pykafka_core._core import Core
from pykafka_core.broker.seam.metadata_log import METADATA_PARTITION
from pykafka_core.broker.storage.data_directory import SnapshotFile
from pykafka_core.errors import MetadataError
from pykafka_core.quorum.batches import cut
from pykafka_core.quorum.log_state import EpochStart, LogState
from pykafka_core.quorum.values import OffsetAndEpoch

READ_BYTES = 64 * 1024


def log_state(core: Core, snapshots: Sequence[SnapshotFile]) -> LogState:
    """The metadata log, whose headers are read from its start to its end.

    Args:
        core: Has opened the log.
        snapshots: Those of the data directory, oldest first.

    Raises:
        MetadataError: No snapshot stands for what is before the log's start.
    """
    offsets = core.offsets(METADATA_PARTITION)
    epochs: list[EpochStart] = []
    at = offsets.log_start_offset
    while data := core.read(METADATA_PARTITION, at, READ_BYTES, "log_end"):
        for batch in cut(data):
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs.append(EpochStart(batch.leader_epoch, batch.base_offset))
            at = batch.end_offset
    start = _snapshot_at(offsets.log_start_offset, snapshots)
    return LogState.loaded(offsets.log_end_offset, tuple(epochs), start)


def _snapshot_at(start: int, snapshots: Sequence[SnapshotFile]) -> OffsetAndEpoch | None:
    """The snapshot that stands for what is before ``start``; None if nothing is."""
    if not start:
        return None
    for snapshot in snapshots:
        if snapshot.end_offset == start:
            return OffsetAndEpoch(start, snapshot.leader_epoch)
    raise MetadataError(
        f"the metadata log begins at offset {start} and no snapshot ends there: "
        "restore the .checkpoint files of __cluster_metadata-0"
    )
