"""The log of one partition, without a broker."""

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from pykafka_core import _core
from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.errors import DamagedLogError, StorageError

from .config import LogConfig

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Appended", "Log", "LogStatistics"]

_CHUNK_BYTES = 1 << 20
_MEMORY_BYTES_MAX = 256 << 20


class Appended(NamedTuple):
    """The result of an append. ``duplicate``: the log already had the same batches of idempotent
    producers, and nothing was appended.
    """

    first_offset: int
    last_offset: int
    log_end_offset: int
    duplicate: bool


class LogStatistics(NamedTuple):
    """The state of a log at one moment.

    ``synced_offset`` is exclusive: all records below it were synced to the disk.
    """

    log_start_offset: int
    log_end_offset: int
    synced_offset: int
    segments: int
    size_bytes: int


class Log:
    """The log of one partition; open it with `Log.open`. Thread-safe.

    Attributes:
        path: Its directory; for a log in memory, its name.
        damaged_at: The offset of damage: valid batches follow a damaged one, or synced records
            are missing. The log refuses writes until it is repaired. Readers raise
            `DamagedLogError` there, or stop there with ``on_damage="stop"``. ``None`` without
            damage.
        truncated_bytes: Bytes of a torn batch that recovery removed from the end.
        warnings: Other findings of the recovery, as a broker logs them: missing offsets, rebuilt
            files, and files that do not belong to the log.
    """

    def __init__(
        self,
        core: _core.Log,
        path: Path,
        damage: tuple[int, str] | None,
        truncated_bytes: int,
        warnings: Iterable[str],
        on_damage: Literal["raise", "stop"] = "raise",
    ) -> None:
        self._core = core
        self._closed = False
        self._raises = on_damage == "raise"
        self.path = path
        self.damaged_at = None if damage is None else damage[0]
        self.truncated_bytes = truncated_bytes
        self.warnings = tuple(warnings)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        durability: str = "fsync",
        config: LogConfig | None = None,
        read_only: bool = False,
        memory_max: int = _MEMORY_BYTES_MAX,
        clock: int | None = None,
        on_damage: Literal["raise", "stop"] = "raise",
    ) -> Self:
        """Open the log in a directory. The directory is created if needed, the files of the
        partition with the first append.

        The lock is that of the parent directory if that has a meta.properties, else one in
        ``path``.

        Args:
            durability: ``fsync`` (each append is on disk when it returns), ``interval`` (on disk at
                most 100 ms later, by a thread that the first append starts) or ``os``; ``config``
                overrides it. ``memory`` creates an empty log without files, whose records are lost
                with `close`; ``path`` is only its name.
            read_only: Take no lock and change nothing; recovery happens in memory. Other processes
                may append, compact and truncate concurrently. `records`, `to_arrow`,
                `offset_for_timestamp`, and `read` at the log end first look for changes; properties
                are as of the last look. In a compacted log, a read has the latest value of each key
                at the time when it began, or a later one. Later calls raise StorageError if the
                directory was deleted or renamed, or contains another topic.
            memory_max: Maximum bytes of a log in memory; an append beyond it raises StorageError.
            clock: A fixed time in milliseconds since 1970; ``None`` for the system clock.
            on_damage: Readers of a damaged log ``raise`` a `DamagedLogError` at `damaged_at`, or
                ``stop`` there as at the end of a log. After a clean stop, sealed segments are not
                checked by the open: readers always raise CorruptMessageError for a batch that
                fails its CRC there.

        Raises:
            StorageLockedError: A broker or another `Log` has it open.
            StorageError: It cannot be read or created; with ``read_only``, the directory does not
                exist; or it is a data directory, not the directory of a partition.
            ValueError: Unknown ``durability`` or ``on_damage``, a setting out of range, or a
                read-only log in memory.
        """
        if on_damage not in ("raise", "stop"):
            raise ValueError(f"on_damage is raise or stop, not {on_damage!r}")
        place = Path(fspath(path))
        if durability != "memory":
            _check_place(place, read_only=read_only)
        settings = (config or LogConfig()).settings()
        core, damage, truncated_bytes, warnings = _core.Log.open(
            place, durability, settings, read_only, memory_max, clock
        )
        return cls(core, place, damage, truncated_bytes, warnings, on_damage)

    def append(self, records: "ReadableBuffer | Iterable[_core.RecordInput]") -> Appended:
        """Append records as one batch, or encoded batches, at the log end: all of them or none.

        Records are ``(key, value[, headers[, timestamp]])`` or objects with these attributes; the
        default timestamp is the present time. Encoded batches are any object with their bytes, such
        as the result of `read`: they get new offsets, and must fit into one segment together.

        Raises:
            CorruptMessageError, InvalidRecordError, InvalidTimestampError, MessageTooLargeError:
                The records are invalid; nothing was appended.
            DuplicateSequenceNumberError: Some of several batches were appended before; nothing was
                appended.
            RecordListTooLargeError: The batches do not fit into one segment.
            StorageError: The log is read-only or damaged, the disk is full, or it has failed.
            TypeError: An invalid record, for example with text instead of bytes; the message says
                what to pass.
        """
        batches = _ready(records)
        if batches is None:
            now = self._core.now_ms()
            batches = _core.build_batch(records, timestamp_default=now)  # type: ignore[arg-type]
        return Appended(*self._core.append(batches))

    def read(self, offset: int, bytes_max: int = _CHUNK_BYTES) -> bytes:
        """Return whole batches from the one with ``offset`` on; empty at the log end.

        The first batch may start before ``offset``, and is returned even if it is larger than
        ``bytes_max``.

        Raises:
            OffsetOutOfRangeError: Before the log start or after the log end.
            DamagedLogError: The log is damaged at ``offset``.
            ValueError: A negative ``bytes_max``.
        """
        if bytes_max < 0:
            raise ValueError(f"bytes_max is a number of bytes, not {bytes_max}")
        data = self._core.read(offset, bytes_max)[0]
        if not data and self._core.refresh():
            data = self._core.read(offset, bytes_max)[0]
        if not data:
            self._check_damage(offset, None)
        return data

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Record]:
        """Yield the records with ``start`` <= offset < ``end``, by default all present records.

        Raises:
            OffsetOutOfRangeError: ``start`` is before the log start or after the log end.
            CorruptMessageError: A batch fails its CRC.
            DamagedLogError: After the last record before the damage; at once if the first part of
                the log is missing, unless ``start`` is after the damage.
        """
        self._core.refresh()
        offset, upto, opens = self._core.range(start, end)
        damage = self._core.damage()
        if damage is not None and damage[0] < offset:
            self._check_damage(start, end)
        while offset < upto:
            data, next_offset, opens_now = self._core.read(offset, _CHUNK_BYTES)
            if opens_now != opens:
                # Compaction removed records because of later ones, which may be above the old end.
                _, upto, opens = self._core.range(None, end)
            if not data:
                break
            yield from RecordBatchReader(data, start=offset, end=upto, repeats=False)
            offset = next_offset
        self._check_damage(start, end)

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def to_arrow(
        self, start: int | None = None, end: int | None = None, *, views: bool = False
    ) -> "_core.ArrowBatches":
        """Return the records with ``start`` <= offset < ``end`` as one Arrow table, in batches of
        about 1 MiB of the log.

        ``pyarrow.table``, ``polars.DataFrame`` and others accept it through the PyCapsule
        interface; its schema is the same without records. Columns: ``offset`` int64, ``timestamp``
        timestamp[ms, UTC] (-1 if absent), ``key`` and ``value`` binary, ``headers``
        list<struct<key: string, value: binary>>. CRCs are checked.

        Args:
            views: Return keys and values as ``binary_view``. They point into the mapped segment if
                that is sealed and not compressed: then there is one record batch per sealed
                segment, and its CRCs are not checked. The table stays readable after truncation,
                retention and `close`. A read-only log is read, not mapped.

        Raises:
            OffsetOutOfRangeError: ``start`` is before the log start or after the log end.
            CorruptMessageError: A batch fails its CRC.
            DamagedLogError: The log is damaged within the range.
        """
        rows = self._core.views(start, end) if views else self._core.columns(start, end)
        self._check_damage(start, end)
        return rows

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record, by offset, that is not older than
        ``timestamp``; ``None`` if there is none.

        Raises:
            DamagedLogError: There is none before the damage.
        """
        found = self._core.offset_for_timestamp(timestamp)
        if found is None:
            self._check_damage(None, None)
        return found

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._core.offsets()[0]

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record (exclusive end)."""
        return self._core.offsets()[1]

    def truncate_to(self, offset: int) -> None:
        """Remove all records from ``offset`` on, and all other records of the batch that contains
        it.

        Raises:
            OffsetOutOfRangeError: Below 0 or after the log end; nothing was changed.
        """
        self._core.truncate_to(offset)

    def delete_before(self, offset: int) -> int:
        """Move the log start up to ``offset``, delete the segments below it, and return the log
        start.

        Raises:
            OffsetOutOfRangeError: Below 0 or after the log end; nothing was changed.
        """
        return self._core.delete_before(offset)

    def enforce_retention(self) -> int:
        """Delete the segments beyond ``retention_ms`` and ``retention_bytes``; return the log start
        offset.

        Each roll of a segment and `delete_before` also do this. A log that is rarely written needs
        this call, because the library has no thread that checks the time.
        """
        return self._core.enforce_retention()

    def roll(self) -> None:
        """Seal the active segment, unless it is empty, and start a new one; enforce retention."""
        self._core.roll()

    def flush(self) -> None:
        """Make all appended records durable. An error is permanent for this object."""
        self._core.flush()

    def statistics(self) -> LogStatistics:
        """Return a snapshot of offsets and sizes."""
        return LogStatistics(*self._core.offsets(), *self._core.size())

    def _check_damage(self, start: int | None, end: int | None) -> None:
        """Raise an error if there is damage in a range of offsets, by default in the whole log."""
        found = self._core.damage() if self._raises else None
        if found is None:
            return
        offset, damage = found
        # Records after the damage can only be read if just the first part of the log is missing.
        is_reached = end is None or end > offset
        is_behind = start is not None and start > offset
        if is_reached and not is_behind:
            advice = f'on_damage="stop" reads the rest, and `pykafka-core repair {self.path}` cuts the damage'
            raise DamagedLogError(
                f"{self.path} is damaged at offset {offset}: {damage}; {advice}", offset
            )

    def __repr__(self) -> str:
        """Return path and offsets."""
        if self._closed:
            return f"<Log {self.path} closed>"
        start, end, _ = self._core.offsets()
        damage = "" if self.damaged_at is None else f" damaged at {self.damaged_at}"
        return f"<Log {self.path} offsets {start} to {end}{damage}>"

    def close(self) -> None:
        """Write and sync everything, and release the lock. Idempotent."""
        self._core.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_place(path: Path, *, read_only: bool) -> None:
    """Refuse a directory in which an empty log would be created by mistake."""
    if (path / "meta.properties").exists():
        raise StorageError(f"{path} is a data directory: name a partition's directory in it")
    if read_only and not path.is_dir():
        raise StorageError(f"there is no log to read at {path}: no such directory")


def _ready(records: object) -> bytes | None:
    """Return the bytes of an object; ``None`` if it is not a buffer of bytes."""
    if isinstance(records, bytes):
        return records
    try:
        view = memoryview(records)  # type: ignore[arg-type]
    except TypeError:
        return None
    return view.tobytes() if view.itemsize == 1 else None
