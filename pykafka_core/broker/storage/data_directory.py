"""The control plane's files in a data directory: identity and quorum state.

The core owns logs, checkpoints and locks. Formats: Kafka 4.2, ``MetaProperties.java``,
``QuorumStateData.json``; Apache Kafka may have created the directory.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from pykafka_core.broker.storage import quorum_state
from pykafka_core.broker.storage.files import (
    make_directory,
    open_regular,
    read_file,
    storage_errors,
    sync_directory,
    write_atomically,
)
from pykafka_core.broker.storage.identity import (
    SIZE_MAX,
    Identity,
    StoredIdentity,
    decode_identity,
    encode_identity,
    interrupted_format,
    lost_identity,
)
from pykafka_core.broker.storage.partition_identity import is_partition
from pykafka_core.broker.storage.quorum_state import EPOCH_MAX
from pykafka_core.broker.storage.reserve import RESERVE_FILE, Need, Reserve
from pykafka_core.errors import StorageError
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch

T = TypeVar("T")

META_PROPERTIES = "meta.properties"
METADATA_DIRECTORY = "__cluster_metadata-0"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
BOOTSTRAP = "bootstrap.checkpoint"
"""Written by ``kafka-storage format``: the first records of a new cluster."""
PART = ".part"
"""Suffix of a snapshot that is being written, as in Kafka."""
QUORUM_STATE_SIZE_MAX = 64 * 1024
SNAPSHOT_SIZE_MAX = 512 * 1024 * 1024
"""The size for some five million partitions."""
OFFSET_MAX = 2**63 - 1

CHECKPOINT_SIZE_MAX = 16 * 1024 * 1024
_EPOCHS = re.compile(rb"0\n[0-9]+\n(?:[0-9]+ [0-9]+\n)*(?P<epoch>[0-9]{1,10}) [0-9]+\n")
"""A leader-epoch-checkpoint: version, count, and the start offset of each epoch; the last epoch is
the newest."""
_BROKER_EPOCH = re.compile(rb'"brokerEpoch" *: *([0-9]{1,18})\b')
"""In the marker of a clean shutdown (``CleanShutdownFileHandler.java``)."""
_MAGIC_AT = 16
_BATCH_OVERHEAD = 12
_MAX_TIMESTAMP_AT = 35
"""Position in a record batch: a snapshot's first batch has the time of the last record that the
snapshot covers."""
_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
_UNFINISHED = re.compile(r"[0-9]{20}-[0-9]{10}(?:-fetched)?\.checkpoint\.part")
"""Name of a snapshot that is being written or fetched; Kafka also removes both at its start."""
HEAD_BYTES = 64 * 1024
"""Bytes at the start of a snapshot; the first batch, with the quorum's own records, is much
smaller."""
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
"""Name of a partition's directory that was renamed for deletion, as in Kafka."""


class SnapshotFile(NamedTuple):
    """A metadata snapshot on disk.

    ``end_offset`` is exclusive; ``time_ms`` is the time of its last record.
    """

    end_offset: int
    leader_epoch: int
    size: int
    time_ms: int
    path: Path


class Content(NamedTuple):
    """Content of a file of metadata records.

    ``end_offset`` is that of the `SnapshotFile`, else 0.
    """

    end_offset: int
    path: Path
    bytes: bytes


_PARTITION = re.compile(r".+-\d+")


class DataDirectory:
    """The control plane's view of one data directory; read-only until `create` or `write_…`.

    Args:
        path: The directory; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reserve = Reserve(path / RESERVE_FILE)
        self._metadata = path / METADATA_DIRECTORY

    def identity(self) -> StoredIdentity | None:
        """Return the owner of the directory, None if it is new.

        Raises:
            IdentityError: The directory has data without meta.properties, its format was
                interrupted, or see `stored_identity`.
            StorageError: It cannot be read.
        """
        stored = self.stored_identity()
        if stored is None:
            self.check_no_data()
            if self._first_snapshot.name in _names(self._metadata):
                raise interrupted_format(self.path)
        return stored

    def check_no_data(self) -> None:
        """Check that a directory without meta.properties has no data.

        Raises:
            IdentityError: It has.
            StorageError: It cannot be read.
        """
        data = self.first_data()
        if data is not None:
            what = f"{self.path / META_PROPERTIES} is missing, and the directory has data: {data}"
            raise lost_identity(what, self.path)

    def first_data(self) -> str | None:
        """Return the name of a partition's directory with data; None if there is none.

        `format_directory` writes the first snapshot. A start that was interrupted before it wrote
        meta.properties leaves a metadata log without records.
        """
        names = _names(self._metadata)
        snapshots = {name for name in names if _is_snapshot(name)} - {self._first_snapshot.name}
        if "quorum-state" in names or snapshots or self.metadata_log_size():
            return METADATA_DIRECTORY
        return next((name for name in self.partitions() if is_partition(self.path / name)), None)

    def has_started(self) -> bool:
        """Return whether a node has started here, also if its logs are missing now.

        A start leaves checkpoints, and the logs may be on a disk that is not mounted.
        """
        is_marked = any(name.endswith("-checkpoint") for name in _names(self.path))
        return is_marked or self.first_data() is not None

    def remove_format(self) -> None:
        """Remove the identity and the first snapshot of a directory without data.

        Raises:
            StorageError: They cannot be removed.
        """
        for path in (self.path / META_PROPERTIES, self._first_snapshot):
            with storage_errors("remove", path), suppress(FileNotFoundError):
                path.unlink()
                sync_directory(path.parent)

    @property
    def _first_snapshot(self) -> Path:
        return self.snapshot_path(OffsetAndEpoch(0, 0))

    def stored_identity(self) -> StoredIdentity | None:
        """Return the values of meta.properties, None if there is no such file.

        Raises:
            IdentityError: It is invalid, of ZooKeeper mode, or of a newer Kafka.
            StorageError: It cannot be read.
        """
        file = self.path / META_PROPERTIES
        content = read_file(file, SIZE_MAX)
        if content is None:
            return None
        try:
            return decode_identity(content, file, has_metadata=self._metadata.is_dir())
        except ValueError as error:
            what = f"{file} is not a meta.properties of Kafka: {error}"
            raise lost_identity(what, self.path) from error

    def make_room(self) -> None:
        """Fill the reserve; the caller holds the lock.

        If space is short, deleted partitions are removed first.

        Raises:
            StorageError: The path of the reserve is not a regular file.
        """
        if self.reserve.is_short():
            self._remove_deleted()
        self.reserve.fill()

    def _remove_deleted(self) -> None:
        """Remove partition directories that an earlier run renamed for deletion; the core retries
        the rest.
        """
        import shutil  # few starts need it, and the import takes milliseconds

        for name in _names(self.path):
            path = self.path / name
            if _DELETED.fullmatch(name) and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)

    def claim(self, identity: Identity) -> None:
        """Add the missing parts of the identity to meta.properties; the caller holds the lock.

        Raises:
            StorageError: It cannot be written, or the directory was formatted after its identity
                was read.
        """
        stored = self.stored_identity()
        if stored and stored.completed(lambda: identity.directory_id) != identity:
            raise StorageError(f"{self.path} was formatted during the start; start it again")
        if stored is None or stored.directory_id is None:
            self.create(identity)

    def create(self, identity: Identity) -> None:
        """Write the owner of the directory; the caller holds its lock.

        Raises:
            StorageError: It cannot be written.
        """
        self._write(self.path / META_PROPERTIES, encode_identity(identity))

    def clean_epoch(self) -> int | None:
        """Return the epoch of the last broker if it stopped cleanly; call this before the core
        opens the directory.

        -1 if it is unknown: a marker of Kafka before 3.7 is empty, and a marker may be damaged.

        Raises:
            StorageError: The marker cannot be read.
        """
        content = read_file(self.path / CLEAN_SHUTDOWN, SIZE_MAX)
        if content is None:
            return None
        found = _BROKER_EPOCH.search(content)
        return int(found[1]) if found else -1

    def last_epoch(self) -> int:
        """Return the highest known epoch, or 0 if no epoch is known.

        The log and the snapshots are read, too, because quorum-state may be lost, but epochs must
        never decrease.

        Raises:
            StorageError: A file is invalid.
        """
        snapshots = [int(name[21:31]) for name in self._snapshot_names()]
        epoch = max([self.election().epoch, self._log_epoch(), *snapshots])
        if epoch > EPOCH_MAX:
            raise StorageError(f"{self._metadata} is of epoch {epoch}, the last that there can be")
        return epoch

    def _log_epoch(self) -> int:
        """Return the epoch of the metadata log's last batch, 0 without batches.

        It is read from the log's leader-epoch-checkpoint; if that is lost too, from the batch
        headers of the newest segment.
        """
        content = read_file(self._metadata / "leader-epoch-checkpoint", CHECKPOINT_SIZE_MAX) or b""
        if (found := _EPOCHS.fullmatch(content)) is not None:
            return int(found["epoch"])
        names = (name for name in _names(self._metadata) if name.endswith(".log"))
        with storage_errors("read", self._metadata):
            epochs = (_last_epoch(self._metadata / name) for name in sorted(names, reverse=True))
            return next((epoch for epoch in epochs if epoch is not None), 0)

    def election(self) -> ElectionState:
        """Return the stored election state of the quorum; epoch 0 if there is none.

        Raises:
            StorageError: quorum-state is invalid.
        """
        return self._quorum_state(quorum_state.decode, ElectionState(0))

    def static_voters(self) -> frozenset[int]:
        """Return the node ids of the static voters in quorum-state, if any.

        Raises:
            StorageError: quorum-state is invalid.
        """
        return self._quorum_state(quorum_state.static_voters, frozenset())

    def _quorum_state(self, decode: Callable[[bytes], T], otherwise: T) -> T:
        file = self._metadata / "quorum-state"
        content = read_file(file, QUORUM_STATE_SIZE_MAX)
        if content is None:
            return otherwise
        try:
            return decode(content)
        except ValueError as error:
            raise StorageError(
                f"{file} is not a quorum-state of Kafka: {error}; restore it"
            ) from error

    def write_election(self, state: ElectionState, static_voters: Sequence[int] = ()) -> None:
        """Store the election state: before a record of its epoch is written, or a message of it is
        sent.

        The metadata log's directory is then durable too, even if an earlier run created it.

        Raises:
            StorageError: It cannot be written.
        """
        self._make_metadata_directory()
        content = quorum_state.encode(state, static_voters)
        self._write(self._metadata / "quorum-state", content)

    def partitions(self) -> list[str]:
        """Return the sorted names of partition directories; empty if the data directory does not
        exist.
        """
        with storage_errors("read", self.path):
            try:
                entries = list(os.scandir(self.path))
            except FileNotFoundError:
                return []
        names = (entry.name for entry in entries if entry.is_dir())
        return sorted(
            name for name in names if _PARTITION.fullmatch(name) and name != METADATA_DIRECTORY
        )

    def prepare_metadata(self) -> None:
        """Create the metadata log's directory, and free space for the files that the core creates;
        the core follows links.

        Raises:
            StorageError: It cannot be created, or its path is not a directory.
        """
        self._make_metadata_directory()
        self.reserve.make_way(Need.START)

    def _make_metadata_directory(self) -> None:
        with storage_errors("make", self._metadata):
            self.reserve.spend_on(lambda: make_directory(self._metadata))

    def _write(self, path: Path, content: bytes) -> None:
        """Write a file that the broker needs, with the reserve if the disk is full."""
        with storage_errors("write", path):
            self.reserve.spend_on(lambda: write_atomically(path, content))

    def bootstrap(self) -> Content | None:
        """Return the content of the file with a new cluster's first records; None if there is none.

        Raises:
            StorageError: It cannot be read.
        """
        return _content(0, self.path / BOOTSTRAP)

    def latest_snapshot(self) -> Content | None:
        """Return the content of the newest metadata snapshot, if any.

        Raises:
            StorageError: It cannot be read.
        """
        newest = max(self._snapshot_names(), default=None)
        return None if newest is None else _content(int(newest[:20]), self._metadata / newest)

    def latest_snapshot_head(self) -> Content | None:
        """Return the first `HEAD_BYTES` of the newest metadata snapshot, which contain the quorum's
        own records.

        Raises:
            StorageError: It cannot be read.
        """
        newest = max(self._snapshot_names(), default=None)
        if newest is None:
            return None
        path = self._metadata / newest
        with storage_errors("read", path), open(open_regular(path, os.O_RDONLY), "rb") as file:
            return Content(int(newest[:20]), path, file.read(HEAD_BYTES))

    def _snapshot_names(self) -> list[str]:
        return [name for name in _names(self._metadata) if _is_snapshot(name)]

    def snapshots(self) -> list[SnapshotFile]:
        """Return the metadata snapshots, oldest first.

        Raises:
            StorageError: A snapshot cannot be read.
        """
        return [_snapshot_file(self._metadata / name) for name in sorted(self._snapshot_names())]

    def write_snapshot(self, end_offset: int, leader_epoch: int, content: bytes) -> None:
        """Add a metadata snapshot; its file gets its name only once it is durable.

        Raises:
            StorageError: It cannot be written. The reserve is not used: the log has the same
                records.
        """
        file = self.snapshot_path(OffsetAndEpoch(end_offset, leader_epoch))
        with storage_errors("write", file):
            write_atomically(file, content, PART)

    def snapshot_path(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Return the path of a metadata snapshot, which may not exist."""
        return self._metadata / f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}.checkpoint"

    def fetched_path(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Return the path at which the parts of another node's metadata snapshot are collected."""
        path = self.snapshot_path(snapshot_id)
        return path.with_name(f"{path.stem}-fetched{path.suffix}{PART}")

    def remove_snapshot(self, snapshot: SnapshotFile) -> None:
        """Remove a snapshot that a newer one replaces.

        Raises:
            StorageError: It cannot be removed.
        """
        with storage_errors("remove", snapshot.path):
            snapshot.path.unlink(missing_ok=True)

    def remove_unfinished_snapshots(self) -> None:
        """Remove incomplete snapshots, left by a crash; the caller holds the lock.

        Raises:
            StorageError: One cannot be removed.
        """
        for name in _names(self._metadata):
            if _UNFINISHED.fullmatch(name):
                with storage_errors("remove", self._metadata / name):
                    (self._metadata / name).unlink()

    def metadata_segment(self, offset: int) -> Path:
        """Return the path of the metadata log's segment that contains ``offset``, for messages."""
        name = f"{offset:020}.log"
        below = (found for found in _names(self._metadata) if found.endswith(".log"))
        return self._metadata / max((found for found in below if found <= name), default=name)

    def metadata_log_size(self) -> int:
        """Return the bytes of the metadata log's segments; files that are deleted during the call
        do not count.
        """
        names = (name for name in _names(self._metadata) if name.endswith(".log"))
        return sum(_size(self._metadata / name) for name in names)


def _names(directory: Path) -> list[str]:
    with storage_errors("read", directory):
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []


def _is_snapshot(name: str) -> bool:
    return _SNAPSHOT.fullmatch(name) is not None and int(name[:20]) <= OFFSET_MAX


def _content(end_offset: int, path: Path) -> Content | None:
    content = read_file(path, SNAPSHOT_SIZE_MAX)
    return None if content is None else Content(end_offset, path, content)


def _snapshot_file(path: Path) -> SnapshotFile:
    with (
        storage_errors("read", path),
        open(open_regular(path, os.O_RDONLY), "rb") as file,
    ):
        head = file.read(_MAX_TIMESTAMP_AT + 8)
    return SnapshotFile(
        end_offset=int(path.name[:20]),
        leader_epoch=int(path.name[21:31]),
        size=_size(path),
        time_ms=int.from_bytes(head[_MAX_TIMESTAMP_AT:], "big", signed=True),
        path=path,
    )


def _last_epoch(segment: Path) -> int | None:
    """Return the largest leader epoch of a segment's batches; None without batches.

    A torn batch ends the scan.
    """
    epoch = None
    with open(open_regular(segment, os.O_RDONLY), "rb") as file:
        end = os.fstat(file.fileno()).st_size
        position = 0
        while position + _MAGIC_AT < end:
            head = os.pread(file.fileno(), _MAGIC_AT + 1, position)
            size = int.from_bytes(head[8:12], "big", signed=True)
            if len(head) <= _MAGIC_AT or head[_MAGIC_AT] != 2 or size <= 0:
                break
            position += _BATCH_OVERHEAD + size
            if position <= end:
                epoch = max(epoch or 0, int.from_bytes(head[12:16], "big", signed=True))
    return epoch


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
