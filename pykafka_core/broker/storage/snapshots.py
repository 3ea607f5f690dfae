"""When a metadata snapshot is written, and which part of the metadata log is then deleted.

Theory of operation. After a commit a snapshot is written when enough bytes were committed since the
last one (``metadata.log.max.record.bytes.between.snapshots``), or when the last one is old and
there are new records (``metadata.log.max.snapshot.interval.ms``). The file gets its name only when
it is fully synced; from then on a start does not need the log below its end offset. While there are
two or more snapshots, and the log with them is larger than ``metadata.max.retention.bytes`` or the
oldest is older than ``metadata.max.retention.ms``, the log start offset moves up to the end of the
second oldest, and the oldest is deleted. So the newest always remains, with the log after it, and a
crash between any two steps leaves more than a start needs, never less.

Encoding 10,000 partitions takes some 80 ms of CPU time and the file a sync, so both run on a
separate thread; an image never changes, so it needs no lock. The control thread starts one snapshot
at a time and handles the result of the last one. A snapshot that cannot be written is logged and
retried an interval later: the log still has all records.
"""

from collections.abc import Callable

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.safe_logging import GuardedLogger, never_raise_here
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum.values import OffsetAndEpoch

RETRY_MS = 60_000
"""Delay after a snapshot that could not be written."""

_log = GuardedLogger(__name__)


def _nobody(*_: object) -> None:
    """Ignore the call."""


class Snapshots:
    """Writes snapshots of one broker's metadata.

    Args:
        core: Moves the log start offset, and provides the clock.
        directory: Directory of the files.
        settings: The settings at the start; these cannot be altered later.
        id_at: Returns the id of a snapshot that ends at an offset, with the epoch of the record
            before it; None if it exists.
        new_token: Returns an unused token.
        bytes_before: Size of the log after the newest snapshot at the start.
        quorum: Returns the quorum's own records before a committed offset.
        taken: Called with the id of each new snapshot, by the thread that writes.
        cleaned: Called with the id of the snapshot at which the log now starts, by the thread that
            writes.
        and_finish: Waits for other readers and writers of snapshots.
    """

    def __init__(
        self,
        *,
        core: Core,
        directory: DataDirectory,
        settings: BrokerConfigs,
        id_at: Callable[[int], OffsetAndEpoch | None],
        new_token: Callable[[], int],
        bytes_before: int,
        quorum: Callable[[int], QuorumRecords],
        taken: Callable[[OffsetAndEpoch], object] = _nobody,
        cleaned: Callable[[OffsetAndEpoch], object] = _nobody,
        and_finish: Callable[[], object] = _nobody,
    ) -> None:
        self._core = core
        self._directory = directory
        self._id_at = id_at
        self._new_token = new_token
        self._bytes_max = settings.int("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = settings.int("metadata.log.max.snapshot.interval.ms")
        self._retention_bytes = settings.int("metadata.max.retention.bytes")
        self._retention_ms = settings.int("metadata.max.retention.ms")
        self._bytes = bytes_before
        self._quorum = quorum
        self._taken = taken
        self._cleaned = cleaned
        self._and_finish = and_finish
        self._not_before_ms = 0
        self._last_ms = core.time_ms()
        self._last_offset = -1
        self._writing: native.Thread | None = None
        self._error: BaseException | None = None
        """Error of the last thread, which the control thread has not handled yet."""

    @property
    def check_interval_ms(self) -> int:
        """Interval at which `write_if_due` must be called when nothing is committed."""
        return max(1000, min(self._interval_ms or RETRY_MS, RETRY_MS))

    def committed(self, image: MetadataImage, size: int) -> None:
        """Count a batch of ``size`` bytes that resulted in ``image``."""
        self._bytes += size
        self.write_if_due(image)

    def write_if_due(self, image: MetadataImage) -> None:
        """Start a snapshot of the committed ``image`` if one is due and none is being written."""
        if self._writing is not None and self._writing.is_alive():
            return
        now_ms = self._core.time_ms()
        self._note_failure(now_ms)
        waited_ms = now_ms - self._last_ms
        is_old = 0 < self._interval_ms <= waited_ms and image.offset > self._last_offset
        if now_ms < self._not_before_ms or not (self._bytes >= self._bytes_max or is_old):
            return
        self._bytes = 0
        self._last_ms, self._last_offset = now_ms, image.offset
        snapshot_id = self._id_at(image.offset + 1)
        if snapshot_id is None:
            return
        what = image, snapshot_id, self._quorum(snapshot_id.offset), now_ms
        self._writing = native.Thread(
            target=self._run, args=what, name="pykafka-core-snapshot", daemon=True
        )
        self._writing.start()

    def finish(self) -> None:
        """Wait for the snapshot that is being written; nothing may be committed afterwards."""
        if self._writing is not None:
            self._writing.join()
            self._note_failure(self._core.time_ms())
        self._and_finish()

    def _note_failure(self, now_ms: int) -> None:
        if self._error is not None:
            reason = f"{type(self._error).__name__}: {self._error}"
            _log.error("the metadata snapshot could not be written: %s", reason)
            self._error = None
            self._bytes += self._bytes_max
            self._not_before_ms = now_ms + RETRY_MS

    def _run(
        self, image: MetadataImage, snapshot_id: OffsetAndEpoch, quorum: QuorumRecords, now_ms: int
    ) -> None:
        """Write the snapshot, then delete what it replaces; runs on a new thread for each
        snapshot.
        """
        never_raise_here()
        try:
            self._write(image, snapshot_id, quorum, now_ms)
            self._taken(snapshot_id)
            self._clean(now_ms)
        except BaseException as error:
            self._error = error

    def _write(
        self, image: MetadataImage, snapshot_id: OffsetAndEpoch, quorum: QuorumRecords, now_ms: int
    ) -> None:
        # Imported only here, because a start does not need it.
        from pykafka_core.metadata.records.snapshot import encode_snapshot, records_of

        end, epoch = snapshot_id
        content = encode_snapshot(records_of(image), epoch, now_ms, quorum)
        self._directory.write_snapshot(end, epoch, content)

    def _clean(self, now_ms: int) -> None:
        """Delete the oldest snapshots beyond their retention, and the log below their
        successors.
        """
        snapshots = self._directory.snapshots()
        size = self._directory.metadata_log_size() + sum(found.size for found in snapshots)
        while len(snapshots) > 1:
            oldest, following = snapshots[0], snapshots[1]
            is_expired = 0 <= self._retention_ms < now_ms - oldest.time_ms
            if not is_expired and not 0 <= self._retention_bytes < size:
                return
            self._core.delete_before(self._new_token(), METADATA_PARTITION, following.end_offset)
            self._cleaned(OffsetAndEpoch(following.end_offset, following.leader_epoch))
            self._directory.remove_snapshot(oldest)
            snapshots = snapshots[1:]
            size -= oldest.size
