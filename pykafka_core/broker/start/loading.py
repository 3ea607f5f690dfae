"""Loads the metadata at a start: replays the newest snapshot and the log after it into an image."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.start.lost_metadata import MetadataLog
from pykafka_core.broker.storage.data_directory import Content, DataDirectory
from pykafka_core.errors import CorruptMessageError, MetadataError
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.codec import decode_batches, decoded
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.protocol.messages import FeatureLevelRecord, Message

_log = GuardedLogger(__name__)

READ_BYTES = 64 * 1024
"""Bytes that are decoded at a time, or one batch: a larger read would use memory that is not
released."""


class Loaded(NamedTuple):
    """The loaded metadata. ``log_bytes`` is the size of the log after the newest snapshot."""

    replay: Replay
    log_bytes: int
    quorum: QuorumRecords


def load(core: Core, directory: DataDirectory | None) -> Loaded:
    """Replay a directory's metadata, or that of a new broker in memory.

    Raises:
        StorageError: A file cannot be read.
        MetadataError: Records are missing, damaged or unknown to this version; the message has the
            file and, for records, the offset.
    """
    if directory is not None:
        directory.remove_unfinished_snapshots()
    replay = Replay()
    snapshot = directory.latest_snapshot() if directory else None
    end = 0 if snapshot is None else snapshot.end_offset
    _check_no_gap(core, end)
    if snapshot is not None:
        apply_snapshot(replay, snapshot)
    quorum = QuorumRecords() if snapshot is None else QuorumRecords().after(snapshot.bytes)
    return _replay_log(core, directory, Loaded(replay, 0, quorum), end)


def apply_snapshot(replay: Replay, snapshot: Content) -> None:
    """Replay a snapshot file.

    Raises:
        MetadataError: It is damaged, or has unknown records.
    """
    with naming(snapshot.path):
        replay.apply_snapshot(_decoded(snapshot), snapshot.end_offset)


def check_snapshot(snapshot: Content) -> None:
    """Check that a snapshot file is complete.

    Raises:
        MetadataError: It is incomplete or damaged.
    """
    with naming(snapshot.path):
        _decoded(snapshot)


def formatted_records(directory: DataDirectory) -> list[Message] | None:
    """Return the records of ``kafka-storage format`` for a cluster's first start; None if the
    directory was not formatted.

    Raises:
        StorageError: The file cannot be read.
        MetadataError: It is damaged, or has unknown records.
    """
    found = directory.bootstrap()
    if found is None:
        return None
    with naming(found.path):
        records = _decoded(found)
        if not any(_is_metadata_version(record) for record in records):
            raise MetadataError(f"it has no FeatureLevelRecord of {METADATA_VERSION}")
        return records


def _decoded(found: Content) -> list[Message]:
    # Imported only here, because a start without such a file does not need it.
    from pykafka_core.metadata.records.snapshot import decode_snapshot

    return decode_snapshot(found.bytes)


def _is_metadata_version(record: Message) -> bool:
    return isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION


def _replay_log(core: Core, directory: DataDirectory | None, loaded: Loaded, end: int) -> Loaded:
    """Replay the log from ``end`` on, or from its start offset."""
    replay, size, quorum = loaded
    offset = max(end, core.offsets(METADATA_PARTITION).log_start_offset)
    while data := core.read(METADATA_PARTITION, offset, READ_BYTES, "log_end"):
        # A read does not cross segments.
        with naming(directory.metadata_segment(offset) if directory else Path("memory")):
            batches = decode_batches(data)
            if batches.next_offset <= offset:
                raise MetadataError(f"it cannot be read at offset {offset}")
            replay.apply((at, record) for at, record in batches.records if at >= offset)
            quorum = quorum.after(data)
        offset = batches.next_offset
        size += len(data)
    return Loaded(replay, size, quorum)


def whole_log(core: Core) -> MetadataLog:
    """Return the metadata log, including the part that the newest snapshot covers.

    Reading its records raises `MetadataError` if they are damaged, or unknown to this version.
    """
    start = core.offsets(METADATA_PARTITION).log_start_offset
    batches = decoded(lambda at: core.read(METADATA_PARTITION, at, READ_BYTES, "log_end"), start)
    return MetadataLog(start, batches)


def _check_no_gap(core: Core, snapshot_end: int) -> None:
    found = core.offsets(METADATA_PARTITION)
    if found.log_start_offset > snapshot_end:
        raise MetadataError(
            f"the metadata log begins at offset {found.log_start_offset} and no snapshot reaches up to it: "
            "restore the newest .checkpoint of __cluster_metadata-0"
        )
    if found.log_end_offset < snapshot_end:
        raise MetadataError(
            f"the metadata log ends at offset {found.log_end_offset}, below its newest snapshot, "
            f"which stands for the log up to {snapshot_end}: restore the .log files of "
            "__cluster_metadata-0, or new records would take offsets that were given out already"
        )


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the file with the unreadable metadata, and advice, to an error."""
    try:
        yield
    except (MetadataError, CorruptMessageError) as error:
        raise MetadataError(
            f"{file}: {error}; start the version that wrote it, or restore the file"
        ) from error


def report_kept(completed: Completed) -> None:
    """Log an error if the metadata log could not be truncated at its start after a snapshot."""
    if completed.error_code:
        _log.error("the metadata log kept its old part: error code %d", completed.error_code)
