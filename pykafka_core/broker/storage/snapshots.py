"""When the metadata is written as a snapshot, and what of the metadata log goes for it.

Theory of operation. After a commit a snapshot is written when enough bytes were committed since the
last one (``metadata.log.max.record.bytes.between.snapshots``), or when the last one is old and there
is news (``metadata.log.max.snapshot.interval.ms``). The file gets its name only when all of it is
synced; from then on a start needs nothing of the log below its end offset. While there are two or
more and the log with them is larger than ``metadata.max.retention.bytes``, or the oldest is older
than ``metadata.max.retention.ms``, the log start moves up to the end of the second oldest, and the
oldest goes. So the newest always stays, with the log behind it, and a crash between any two steps
leaves more than a start needs, never less.

Encoding 10,000 partitions takes some 80 ms of CPU and the file a sync, so a thread of its own does both;
an image never changes, so it needs no lock. The control thread starts one at a time and takes note
of how the last one ended. A snapshot that cannot be written is logged and tried again an interval
later: the log still holds everything.
"""

from collections.abc import Callable

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.guarded_log import GuardedLogger, never_raise_here
from pykafka_core.broker.seam.metadata_log import METADATA_PARTITION
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum.values import OffsetAndEpoch

RETRY_MS = 60_000
"""After a snapshot that could not be written."""

_log = GuardedLogger(__name__)


def _nobody(*_: object) -> None:
    """Tell nobody."""


class Snapshots:
    """Writes snapshots of one broker's metadata.

    Args:
        core: Moves the log start, and knows the time.
        directory: Where the files are.
        settings: As given at start; these cannot be altered afterwards.
        id_at: The id of a snapshot that ends at an offset: the epoch of the record before it; None if there is one.
        new_token: Gives a token that is not open.
        bytes_before: Of the log behind the newest snapshot, as the start found it.
        quorum: Gives the quorum's own records as they are before an offset that is committed.
        taken: Called with the id of each snapshot that is on the disk, and cleaned: with that of the snapshot at
            which the log begins; by the thread that writes.
        and_finish: Waits for what else reads and writes snapshots.
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
        """Why the thread that ended could not write; the control thread has not seen it yet."""

    @property
    def check_interval_ms(self) -> int:
        """How often `write_if_due` has to be called when nothing is committed."""
        return max(1000, min(self._interval_ms or RETRY_MS, RETRY_MS))

    def committed(self, image: MetadataImage, size: int) -> None:
        """Take note of a batch of ``size`` bytes that led to ``image``."""
        self._bytes += size
        self.write_if_due(image)

    def write_if_due(self, image: MetadataImage) -> None:
        """Begin a snapshot of the committed ``image`` if it is time and none is being written."""
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
        """Wait for the snapshot that is being written; nothing may be committed any more."""
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
        """Write, then drop what that makes needless; on the thread of this one snapshot."""
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
        # Not before: a start has no use for it.
        from pykafka_core.metadata.records.snapshot import encode_snapshot, records_of

        end, epoch = snapshot_id
        content = encode_snapshot(records_of(image), epoch, now_ms, quorum)
        self._directory.write_snapshot(end, epoch, content)

    def _clean(self, now_ms: int) -> None:
        """Drop the oldest snapshots that retention lets go, and the log below those that follow them."""
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
