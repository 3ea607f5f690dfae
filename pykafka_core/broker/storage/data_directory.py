"""The files of a data directory that are the control plane's: identity and quorum state.

Logs, checkpoints and locks are the core's. Formats: Kafka 4.2, ``MetaProperties.java``,
``QuorumStateData.json``; the directory may have been made by Apache Kafka.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from pykafka_core.broker.storage import quorum_state
from pykafka_core.broker.storage.files import (
    make_directory,
    open_regular,
    read_file,
    storage_errors,
    write_atomically,
)
from pykafka_core.broker.storage.identity import (
    SIZE_MAX,
    Identity,
    StoredIdentity,
    decode_identity,
    encode_identity,
)
from pykafka_core.broker.storage.quorum_state import EPOCH_MAX
from pykafka_core.broker.storage.reserve import RESERVE_FILE, Need, Reserve
from pykafka_core.errors import StorageError
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch

T = TypeVar("T")

METADATA_DIRECTORY = "__cluster_metadata-0"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
BOOTSTRAP = "bootstrap.checkpoint"
"""Left by ``kafka-storage format``: records that a new cluster begins with."""
PART = ".part"
"""Behind the name of a snapshot that is being written, as Kafka's."""
QUORUM_STATE_SIZE_MAX = 64 * 1024
SNAPSHOT_SIZE_MAX = 512 * 1024 * 1024
"""Of some five million partitions."""
OFFSET_MAX = 2**63 - 1

CHECKPOINT_SIZE_MAX = 16 * 1024 * 1024
_EPOCHS = re.compile(rb"0\n[0-9]+\n(?:[0-9]+ [0-9]+\n)*(?P<epoch>[0-9]{1,10}) [0-9]+\n")
"""A leader-epoch-checkpoint: version, count, and the start offset of each epoch; the last is the newest."""
_BROKER_EPOCH = re.compile(rb'"brokerEpoch" *: *([0-9]{1,18})\b')
"""In the marker of a clean stop (``CleanShutdownFileHandler.java``)."""
_MAGIC_AT = 16
_BATCH_OVERHEAD = 12
_MAX_TIMESTAMP_AT = 35
"""Of a record batch: the snapshot's first holds the time of the last record it stands for."""
_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
_UNFINISHED = re.compile(r"[0-9]{20}-[0-9]{10}(?:-fetched)?\.checkpoint\.part")
"""Of a snapshot that is being written, or fetched; Kafka removes both at its start, too."""
HEAD_BYTES = 64 * 1024
"""Of a snapshot: the batch with the quorum's own records, which stands first, is much smaller."""
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
"""A partition's directory that was renamed for removal, as Kafka names it."""


class SnapshotFile(NamedTuple):
    """A metadata snapshot on disk. ``end_offset`` is exclusive; ``time_ms`` is of its last record."""

    end_offset: int
    leader_epoch: int
    size: int
    time_ms: int
    path: Path


class Content(NamedTuple):
    """A file of metadata records as it was read. ``end_offset`` is that of a `SnapshotFile`, else 0."""

    end_offset: int
    path: Path
    bytes: bytes


_PARTITION = re.compile(r".+-\d+")


class DataDirectory:
    """The control plane's view of one data directory; only looks until `create` or `write_…`.

    Args:
        path: The directory; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reserve = Reserve(path / RESERVE_FILE)
        self._metadata = path / METADATA_DIRECTORY

    def identity(self) -> StoredIdentity | None:
        """Who the directory belongs to, None if it is new.

        Raises:
            OtherReleaseError: The directory is of ZooKeeper mode, or of a newer Kafka.
            StorageError: meta.properties cannot be understood.
        """
        file = self.path / "meta.properties"
        content = read_file(file, SIZE_MAX)
        if content is None:
            return None
        try:
            return decode_identity(content, file, has_metadata=self._metadata.is_dir())
        except ValueError as error:
            raise StorageError(
                f"{file} is not a meta.properties of Kafka: {error}; restore it"
            ) from error

    def make_room(self) -> None:
        """Fill the reserve; the caller holds the lock. Where space is short, what was deleted goes first.

        Raises:
            StorageError: Something else stands in the reserve's place.
        """
        if self.reserve.is_short():
            self._remove_deleted()
        self.reserve.fill()

    def _remove_deleted(self) -> None:
        """Remove partitions' directories that an earlier run renamed; what is left the core tries again."""
        import shutil  # not before: few starts need it, and it takes milliseconds

        for name in _names(self.path):
            path = self.path / name
            if _DELETED.fullmatch(name) and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)

    def claim(self, identity: Identity) -> None:
        """Write what meta.properties lacks of the identity; the caller holds the lock.

        Raises:
            StorageError: It cannot be written.
        """
        stored = self.identity()
        if stored is None or stored.directory_id is None:
            self.create(identity)

    def create(self, identity: Identity) -> None:
        """Write who the directory belongs to; the caller holds its lock.

        Raises:
            StorageError: It cannot be written.
        """
        self._write(self.path / "meta.properties", encode_identity(identity))

    def clean_epoch(self) -> int | None:
        """Epoch of the last broker, if it stopped cleanly; ask before the core opens it.

        -1 where it is not known: a marker of before Kafka 3.7 is empty, and one may be damaged.

        Raises:
            StorageError: The marker cannot be read.
        """
        content = read_file(self.path / CLEAN_SHUTDOWN, SIZE_MAX)
        if content is None:
            return None
        found = _BROKER_EPOCH.search(content)
        return int(found[1]) if found else -1

    def last_epoch(self) -> int:
        """The last epoch of which there is a trace, 0 for none: quorum-state may be lost, and epochs never go back.

        Raises:
            StorageError: A file cannot be understood.
        """
        snapshots = [int(name[21:31]) for name in self._snapshot_names()]
        epoch = max([self.election().epoch, self._log_epoch(), *snapshots])
        if epoch > EPOCH_MAX:
            raise StorageError(f"{self._metadata} is of epoch {epoch}, the last that there can be")
        return epoch

    def _log_epoch(self) -> int:
        """The epoch of the metadata log's last batch, 0 without any.

        The log's leader-epoch-checkpoint says so; where that is lost too, the headers of the newest segment's batches.
        """
        content = read_file(self._metadata / "leader-epoch-checkpoint", CHECKPOINT_SIZE_MAX) or b""
        if (found := _EPOCHS.fullmatch(content)) is not None:
            return int(found["epoch"])
        names = (name for name in _names(self._metadata) if name.endswith(".log"))
        with storage_errors("read", self._metadata):
            epochs = (_last_epoch(self._metadata / name) for name in sorted(names, reverse=True))
            return next((epoch for epoch in epochs if epoch is not None), 0)

    def election(self) -> ElectionState:
        """What the quorum was last told to remember; epoch 0 before that.

        Raises:
            StorageError: quorum-state cannot be understood.
        """
        return self._quorum_state(quorum_state.decode, ElectionState(0))

    def static_voters(self) -> frozenset[int]:
        """Node ids of the static voters that quorum-state was written with; none if it names none.

        Raises:
            StorageError: quorum-state cannot be understood.
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
        """Remember it: before anything is written in its epoch, or said to others.

        The metadata log's directory is durable then too, made now or by a run that did not get far.

        Raises:
            StorageError: It cannot be written.
        """
        self._make_metadata_directory()
        content = quorum_state.encode(state, static_voters)
        self._write(self._metadata / "quorum-state", content)

    def partitions(self) -> list[str]:
        """Names of the directories that are partitions of topics, sorted; none if there is no directory yet."""
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
        """Make the metadata log's directory and room for what the core writes as it opens it; the core follows links.

        Raises:
            StorageError: It cannot be made, or something else stands in its place.
        """
        self._make_metadata_directory()
        self.reserve.make_way(Need.START)

    def _make_metadata_directory(self) -> None:
        with storage_errors("make", self._metadata):
            self.reserve.spend_on(lambda: make_directory(self._metadata))

    def _write(self, path: Path, content: bytes) -> None:
        """Write what the broker cannot do without."""
        with storage_errors("write", path):
            self.reserve.spend_on(lambda: write_atomically(path, content))

    def bootstrap(self) -> Content | None:
        """Content of the file with a new cluster's first records, None if it was not formatted with one.

        Raises:
            StorageError: It cannot be read.
        """
        return _content(0, self.path / BOOTSTRAP)

    def latest_snapshot(self) -> Content | None:
        """Content of the newest metadata snapshot.

        Raises:
            StorageError: It cannot be read.
        """
        newest = max(self._snapshot_names(), default=None)
        return None if newest is None else _content(int(newest[:20]), self._metadata / newest)

    def latest_snapshot_head(self) -> Content | None:
        """The first `HEAD_BYTES` of the newest metadata snapshot: the quorum's own records stand there.

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
        """The metadata snapshots, oldest first.

        Raises:
            StorageError: One cannot be read.
        """
        return [_snapshot_file(self._metadata / name) for name in sorted(self._snapshot_names())]

    def write_snapshot(self, end_offset: int, leader_epoch: int, content: bytes) -> None:
        """Add a metadata snapshot; there is a file of its name only once all of it is durable.

        Raises:
            StorageError: It cannot be written. The reserve is not touched: the log holds all of it.
        """
        file = self.snapshot_path(OffsetAndEpoch(end_offset, leader_epoch))
        with storage_errors("write", file):
            write_atomically(file, content, PART)

    def snapshot_path(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Where a metadata snapshot stands, if it is there."""
        return self._metadata / f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}.checkpoint"

    def fetched_path(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Where the parts of a metadata snapshot are collected that comes from another node."""
        path = self.snapshot_path(snapshot_id)
        return path.with_name(f"{path.stem}-fetched{path.suffix}{PART}")

    def remove_snapshot(self, snapshot: SnapshotFile) -> None:
        """Remove one that another stands in for.

        Raises:
            StorageError: The system does not let go of it.
        """
        with storage_errors("remove", snapshot.path):
            snapshot.path.unlink(missing_ok=True)

    def remove_unfinished_snapshots(self) -> None:
        """Remove what a crash left of a snapshot that was being written; the caller holds the lock.

        Raises:
            StorageError: The system does not let go of it.
        """
        for name in _names(self._metadata):
            if _UNFINISHED.fullmatch(name):
                with storage_errors("remove", self._metadata / name):
                    (self._metadata / name).unlink()

    def metadata_segment(self, offset: int) -> Path:
        """The file of the metadata log's segment that holds ``offset``, for messages."""
        name = f"{offset:020}.log"
        below = (found for found in _names(self._metadata) if found.endswith(".log"))
        return self._metadata / max((found for found in below if found <= name), default=name)

    def metadata_log_size(self) -> int:
        """Bytes of the metadata log's segments; those of a file that just went are not counted."""
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
    """The largest leader epoch of a segment's batches; None if it has none. A torn tail ends it."""
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
