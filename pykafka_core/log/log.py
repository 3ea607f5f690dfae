"""One partition's log, opened without a broker."""

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
    """What an append did; ``duplicate`` says that the same batches of idempotent producers were there already."""

    first_offset: int
    last_offset: int
    log_end_offset: int
    duplicate: bool


class LogStatistics(NamedTuple):
    """A log at one moment. Below ``synced_offset`` everything is on disk, as far as the disk tells the truth."""

    log_start_offset: int
    log_end_offset: int
    synced_offset: int
    segments: int
    size_bytes: int


class Log:
    """One partition's log; open it with `Log.open`. May be used from any thread.

    Attributes:
        path: Its directory; of a log in memory its name.
        damaged_at: The offset of damage: valid batches follow a damaged one, or synced records
            are gone. The log refuses writes until it is repaired. Readers raise `DamagedLogError`
            there, or stop there with ``on_damage="stop"``. ``None`` for a whole log.
        truncated_bytes: What recovery has cut off as a torn tail.
        warnings: What else recovery found, as a broker logs it: missing offsets, files that were rebuilt or are no
            part of the log.
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
        """Open the log in a directory; it is made if needed, the partition's files with the first append.

        If the parent directory has a meta.properties its lock is taken, else one inside ``path``.

        Args:
            durability: ``fsync`` (each append is on disk when it returns), ``interval`` (on disk at the latest 100 ms
                later, by a thread that the first append starts) or ``os``; ``config`` overrides it. ``memory`` makes
                an empty log that no file holds and `close` forgets: ``path`` is only its name.
            read_only: Take no lock and change nothing; what needs recovery is recovered in memory.
            memory_max: Bytes that a log in memory may hold; beyond, an append is a StorageError.
            clock: Milliseconds since 1970 at which time stands still; ``None`` is the machine's clock.
            on_damage: Readers of a damaged log ``raise`` a `DamagedLogError` where they cannot
                continue, or ``stop`` there as at the end of a log.

        Raises:
            StorageLockedError: A broker or another library has it.
            StorageError: It cannot be read or made; read-only, the directory does not exist; or it is a data directory
                and not a partition's.
            ValueError: An unknown durability or ``on_damage``, a setting out of range, or a log in
                memory for reading only.
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
        """Append records as one batch, or ready batches, at the log end: all of them or none.

        Records are ``(key, value[, headers[, timestamp]])`` or objects with these attributes; those without a timestamp
        get the clock's. Ready batches are any object that holds their bytes, such as what `read` returns: they get
        new offsets and together fit one segment.

        Raises:
            CorruptMessageError, InvalidRecordError, InvalidTimestampError, MessageTooLargeError: Nothing was appended.
            DuplicateSequenceNumberError: Some of several batches were appended before; nothing was appended.
            RecordListTooLargeError: More than a segment holds.
            StorageError: Read-only, damaged, out of space, or the disk failed.
            TypeError: Something that is no record, such as text where bytes belong; says what to pass.
        """
        batches = _ready(records)
        if batches is None:
            timestamp = self._core.now_ms()
            batches = _core.build_batch(records, timestamp_default=timestamp)  # type: ignore[arg-type]
        return Appended(*self._core.append(batches))

    def read(self, offset: int, bytes_max: int = _CHUNK_BYTES) -> bytes:
        """Return whole batches that hold ``offset`` and what follows it; empty at the log end.

        The first may begin before ``offset``, and comes whole even if larger than ``bytes_max``.

        Raises:
            OffsetOutOfRangeError: Before the log start or behind the log end.
            DamagedLogError: ``offset`` is where a damaged log ends.
            ValueError: A negative ``bytes_max``.
        """
        if bytes_max < 0:
            raise ValueError(f"bytes_max is a number of bytes, not {bytes_max}")
        data = self._core.read(offset, bytes_max)[0]
        if not data:
            self._check_damage(offset, None)
        return data

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Record]:
        """Iterate the records with ``start`` <= offset < ``end``, by default all there are now.

        Raises:
            OffsetOutOfRangeError: ``start`` is before the log start or behind the log end.
            DamagedLogError: After the last record before the damage, or at once if the beginning
                is gone.
        """
        offset, upto = self._core.range(start, end)
        damage = self._core.damage()
        if damage is not None and damage[0] < offset:
            self._check_damage(start, end)
        refreshes = self._core.refreshes()
        while offset < upto:
            data, next_offset = self._core.read(offset, _CHUNK_BYTES)
            if self._core.refreshes() > refreshes:
                # Compaction removed records because of later ones, which may be above the old end.
                refreshes = self._core.refreshes()
                upto = self._core.range(None, end)[1]
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
        """The records with ``start`` <= offset < ``end`` as one Arrow table, in batches of about 1 MiB of log.

        ``pyarrow.table``, ``polars.DataFrame`` and others take it through the PyCapsule interface; its schema is the
        same without records. Columns: ``offset`` int64, ``timestamp`` timestamp[ms, UTC] (-1 for none), ``key`` and
        ``value`` binary, ``headers`` list<struct<key: string, value: binary>>. CRCs are checked.

        Args:
            views: Make keys and values ``binary_view``, which point into the mapped segment where that is sealed and
                not compressed: one record batch per sealed segment, whose CRCs are not checked. It stays readable
                after truncation, retention and `close`. A log opened for reading only is read, not mapped.

        Raises:
            OffsetOutOfRangeError: ``start`` is before the log start or behind the log end.
            CorruptMessageError: A batch fails its CRC.
            DamagedLogError: The log is damaged within the range.
        """
        rows = self._core.views(start, end) if views else self._core.columns(start, end)
        self._check_damage(start, end)
        return rows

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record, by offset, that is not older.

        ``None`` without one.

        Raises:
            DamagedLogError: There is none before the damage.
        """
        found = self._core.offset_for_timestamp(timestamp)
        if found is None:
            self._check_damage(None, None)
        return found

    @property
    def log_start_offset(self) -> int:
        """First offset that can be read."""
        return self._core.offsets()[0]

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record (exclusive end)."""
        return self._core.offsets()[1]

    def truncate_to(self, offset: int) -> None:
        """Remove all records from ``offset`` on, and the whole batch that holds it.

        Raises:
            OffsetOutOfRangeError: Below 0 or after the log end; nothing was changed.
        """
        self._core.truncate_to(offset)

    def delete_before(self, offset: int) -> int:
        """Move the log start up to ``offset``, drop segments below it, and return it.

        Raises:
            OffsetOutOfRangeError: Below 0 or after the log end; nothing was changed.
        """
        return self._core.delete_before(offset)

    def enforce_retention(self) -> int:
        """Drop the segments past ``retention_ms`` and ``retention_bytes``; returns the log start offset.

        Every roll of a segment and `delete_before` do it too. A log that is seldom written needs this call, since a
        library has no thread that looks at the time.
        """
        return self._core.enforce_retention()

    def roll(self) -> None:
        """Seal the active segment and begin a new one, unless it is empty; then `enforce_retention`."""
        self._core.roll()

    def flush(self) -> None:
        """Make everything appended so far durable. An error is final for this log."""
        self._core.flush()

    def statistics(self) -> LogStatistics:
        """A snapshot of offsets and sizes."""
        return LogStatistics(*self._core.offsets(), *self._core.size())

    def _check_damage(self, start: int | None, end: int | None) -> None:
        """Raise if the damage lies in a range of offsets, by default in the whole log."""
        found = self._core.damage() if self._raises else None
        if found is None:
            return
        offset, damage = found
        # A start after the damage can be read only if the beginning alone is gone.
        is_reached = end is None or end > offset
        is_behind = start is not None and start > offset
        if is_reached and not is_behind:
            advice = f'on_damage="stop" reads what is left, and `pykafka-core repair {self.path}` cuts the damage'
            raise DamagedLogError(
                f"{self.path} is damaged at offset {offset}: {damage}; {advice}", offset
            )

    def __repr__(self) -> str:
        """Its path and offsets."""
        if self._closed:
            return f"<Log {self.path} closed>"
        start, end, _ = self._core.offsets()
        damage = "" if self.damaged_at is None else f" damaged at {self.damaged_at}"
        return f"<Log {self.path} offsets {start} to {end}{damage}>"

    def close(self) -> None:
        """Store and sync everything and give the lock up; closing again does nothing."""
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
    """Refuse a directory that would become an empty log though something else was meant."""
    if (path / "meta.properties").exists():
        raise StorageError(f"{path} is a data directory: name a partition's directory in it")
    if read_only and not path.is_dir():
        raise StorageError(f"there is no log to read at {path}: no such directory")


def _ready(records: object) -> bytes | None:
    """The bytes that an object holds; ``None`` for what does not hold bytes."""
    if isinstance(records, bytes):
        return records
    try:
        view = memoryview(records)  # type: ignore[arg-type]
    except TypeError:
        return None
    return view.tobytes() if view.itemsize == 1 else None
