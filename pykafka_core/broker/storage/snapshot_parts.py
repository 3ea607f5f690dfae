"""Parts of metadata snapshots (KIP-630), in a data directory or fetched from another node.

A fetched snapshot is collected in a separate file, which a start removes. Once it is complete,
synced and validated, it is renamed to a snapshot. From then on, the log of a start begins at its
end, whatever other steps are missing.
"""

import os
from typing import NamedTuple

from pykafka_core._core import check_batches
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.files import (
    open_regular,
    read_file,
    storage_errors,
    sync_directory,
)
from pykafka_core.errors import CorruptMessageError, InvalidRecordError, MetadataError
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.metadata.records.snapshot import decode_snapshot
from pykafka_core.quorum.values import SNAPSHOT_BYTES_MAX, OffsetAndEpoch

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Part(NamedTuple):
    """Bytes of a snapshot from a position on; empty after its end.

    ``size`` is the size of the snapshot.
    """

    size: int
    data: bytes


class LoadedSnapshot(NamedTuple):
    """Content of a snapshot."""

    replay: Replay
    quorum: QuorumRecords


class SnapshotParts:
    """The snapshots of one data directory, in parts.

    Args:
        directory: The data directory.
    """

    def __init__(self, directory: DataDirectory) -> None:
        self._directory = directory

    def read(self, snapshot_id: OffsetAndEpoch, position: int, bytes_max: int) -> Part | None:
        """Return a part of a snapshot; None if there is no such snapshot.

        Raises:
            StorageError: It cannot be read.
        """
        path = self._directory.snapshot_path(snapshot_id)
        with storage_errors("read", path):
            try:
                descriptor = open_regular(path, os.O_RDONLY)
            except FileNotFoundError:
                return None
            try:
                return Part(os.fstat(descriptor).st_size, os.pread(descriptor, bytes_max, position))
            finally:
                os.close(descriptor)

    def store(self, snapshot_id: OffsetAndEpoch, position: int, part: bytes) -> None:
        """Write a part of another node's snapshot; the first part replaces an existing file.

        Not synced.

        Raises:
            StorageError: It cannot be written, or does not follow the previous part.
        """
        path = self._directory.fetched_path(snapshot_id)
        with storage_errors("write", path):
            if position == 0:
                path.unlink(missing_ok=True)
                descriptor = os.open(path, _NEW_FILE, 0o666)
            else:
                descriptor = open_regular(path, os.O_WRONLY)
            with open(descriptor, "ab") as file:
                if file.seek(0, os.SEEK_END) != position:
                    raise OSError(f"the part at {position} does not follow the previous part")
                file.write(part)

    def load(self, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
        """Validate and sync the fetched file, and rename it to a snapshot. Callable on any thread.

        Raises:
            StorageError: The disk failed; the snapshot may exist under its name.
            MetadataError: It is incomplete, or has unknown records.
        """
        fetched = self._directory.fetched_path(snapshot_id)
        content = read_file(fetched, SNAPSHOT_BYTES_MAX)
        if content is None:
            raise MetadataError(f"{fetched} is gone")
        loaded = _understood(content, snapshot_id)
        with storage_errors("write", fetched):
            descriptor = open_regular(fetched, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(fetched, self._directory.snapshot_path(snapshot_id))
            sync_directory(fetched.parent)
        return loaded

    def remove_before(self, offset: int) -> None:
        """Remove the snapshots that end before ``offset``, and incomplete ones.

        Raises:
            StorageError: One cannot be removed.
        """
        self._directory.remove_unfinished_snapshots()
        for snapshot in self._directory.snapshots():
            if snapshot.end_offset < offset:
                self._directory.remove_snapshot(snapshot)


def _understood(content: bytes, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
    try:
        if check_batches(content) != len(content):
            raise MetadataError("it ends within a batch")
        replay, quorum = Replay(), QuorumRecords().after(content)
        replay.apply_snapshot(decode_snapshot(content), snapshot_id.offset)
    except (CorruptMessageError, InvalidRecordError) as error:
        raise MetadataError(f"a batch is damaged: {error}") from error
    return LoadedSnapshot(replay, quorum)
