"""The files of one bucket: the additions of each micro-batch to its memory, without Spark.

    00000000000000000000-00000000000000000031                micro-batches 0 to 31, merged
    00000000000000000032.000003.000016.5f0c1d2e              micro-batch 32, an *increment*
    00000000000000000033.000003.000017.5f0c1d2e
    00000000000000000033.000004.000000.a1b2c3d4.supersedes   33 ran again; the file above is invalid
    .33-x7d2k1                                               temporary, or left by a task that died

The ids that the bucket holds before a micro-batch are the union of the files before it. Repeated
work (a task, a speculative attempt, a micro-batch after a crash) reads the same files again and
writes the same bytes, under a name that exists only once they are on disk. A micro-batch without
additions has no file.

**Attempts.** A micro-batch that failed may run again with other rows, or without rows of this
bucket. Additions of an earlier attempt must then be invalid, or a row that arrives later is lost.
So the attempt is part of the name: no two attempts write the same file, and only the file of a
micro-batch's latest attempt is valid. The first task of a repeated attempt creates an empty file in
every bucket that *supersedes* the earlier ones. A file that an earlier attempt writes after that is
never read.

**Chain.** A file holds two digests: ``before``, of all earlier additions, and ``after``, of these
and its own content. So a file that is missing between others, or was restored from another time, is
detected. A merged file has the ``before`` of its first part and the ``after`` of its last. A digest
therefore identifies a memory: a Python worker caches the memories that it read last (`_CACHE`) and
reads only the files after the one whose ``after`` it has cached.

**Merging** bounds the number of files. All increments except the newest two are merged into one
file once there are at least `RUN` of them, and at least as many as merged files. Merged files are
not merged again, so an id is written at most twice: 32 bytes. 1,000 micro-batches leave at most 66
files, ``n`` of them about ``2 * sqrt(2 * n)``. The newest two stay separate, because the last
micro-batch may run again and needs the memory before it.

**Dropping.** With a horizon, the leading files whose slices are all past it are merged into an
empty one. The newest time in the files may come from a clock that was ahead: a micro-batch limits
it to its own time.

**Crashes.** A merged file is created atomically next to its parts, which are deleted once its name
is on disk. Files inside the range of another one are its parts, and files of earlier attempts are
superseded: readers ignore both, and the next write deletes them. Concurrent attempts merge the same
files into the same bytes; an attempt that finds a part missing stops merging.

A file is magic, uint32 version, the two digests, uint32 CRC of the rest, little-endian; then the
memory.
"""

import os
import random
import re
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from spark_udfs.dedup.attempts import ATTEMPT, Attempt
from spark_udfs.dedup.disk import StoreError, create_empty, sync_folder, write
from spark_udfs.dedup.memory import (
    Memory,
    decode,
    encode,
    forget,
    is_past,
    slices_in,
    union,
)

__all__ = [
    "NOTHING",
    "RUN",
    "Known",
    "Span",
    "listed",
    "load",
    "read_chain",
    "save",
    "supersede",
    "write_span",
]

RUN: Final = 32
"""Minimum number of increments to merge. 32 gives the fewest files after 1,000 micro-batches."""

CACHE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Limit for the cached memories of one Python worker."""

_HEAD: Final = struct.Struct("<4sI8s8sI")
_MAGIC: Final = b"pkid"
_VERSION: Final = 3
_TABLE_BYTES_MAX: Final = 64 * 1024
_SUPERSEDES: Final = ".supersedes"
_NAME: Final = re.compile(rf"(\d{{20}})(?:-(\d{{20}})|\.{ATTEMPT}({re.escape(_SUPERSEDES)})?)")
_HALF_WRITTEN: Final = re.compile(r"\.(\d+)-")

NOTHING: Final = bytes(8)
"""The digest of a bucket without files."""


class Span(NamedTuple):
    """The micro-batches of a file, both ends inclusive; spans are ordered by time.

    Attributes:
        first: First micro-batch.
        last: Last micro-batch.
        attempt: Attempt of the only micro-batch; None for a merged file.
        adds: False for a file that only supersedes earlier attempts.
    """

    first: int
    last: int
    attempt: Attempt | None = None
    adds: bool = True

    @classmethod
    def of(cls, batch: int, attempt: Attempt) -> Self:
        """Return the span of the additions of an attempt of a micro-batch."""
        return cls(batch, batch, attempt)

    @classmethod
    def parse(cls, first: str, last: str | None, *attempt: str | None) -> Self:
        """Return the span of a match of `_NAME`'s groups."""
        if last is not None:
            return cls(int(first), int(last))
        *parts, supersedes = attempt
        return cls(int(first), int(first), Attempt.parse(*map(str, parts)), supersedes is None)

    def is_of(self, batch: int) -> bool:
        """Return whether it contains only that micro-batch."""
        return self.first == self.last == batch

    def name(self) -> str:
        """Return the name of the file; names are in order of time."""
        if self.attempt is None:
            return f"{self.first:020}-{self.last:020}"
        return f"{self.first:020}.{self.attempt.name()}{'' if self.adds else _SUPERSEDES}"


class _Head(NamedTuple):
    before: bytes
    after: bytes
    crc: int


@dataclass(frozen=True)
class Known:
    """The memory of a bucket before a micro-batch.

    Attributes:
        memory: The union of its files.
        last: The last micro-batch of its newest file; -1 if there is none.
        chain: The digest of all additions.
    """

    memory: Memory
    last: int
    chain: bytes


class _Cached(NamedTuple):
    known: Known
    forgotten_ms: int
    """The time up to which slices were dropped; the memory is incomplete before that time."""


_CACHE: dict[tuple[Path, int | None], _Cached] = {}
"""By folder and horizon. It only holds the content of files; a digest identifies each memory."""


def load(folder: Path, batch: int, horizon_ms: int | None, now_ms: int | None) -> Known:
    """Return the memory of the bucket before micro-batch ``batch``.

    Args:
        now_ms: The time of the micro-batch, which limits later times in the files. None: no limit.

    Raises:
        StoreError: The folder or a file is missing or damaged, or later micro-batches have files.
    """
    before: list[Span] = []
    while True:
        spans = _spans_before(folder, batch)
        try:
            return _read(folder, spans, horizon_ms, now_ms)
        except (
            FileNotFoundError
        ) as error:  # another attempt has just merged the file: list the folder again
            if spans == before:
                raise StoreError(f"{error.filename} is gone") from error
            before = spans


def supersede(folder: Path, batch: int, attempt: Attempt) -> None:
    """Invalidate present and future additions of attempts of ``batch`` before this one.

    Raises:
        StoreError: The folder does not exist.
    """
    names = _names(folder)
    for span in _spans(names):
        if span.is_of(batch) and span.attempt is not None and span.attempt < attempt:
            (folder / span.name()).unlink(missing_ok=True)
    create_empty(folder / Span(batch, batch, attempt, adds=False).name())


def save(
    folder: Path,
    batch: int,
    attempt: Attempt,
    known: Known,
    news: Memory,
    horizon_ms: int | None,
) -> None:
    """Write the additions of an attempt of ``batch``; merge old files if there are many."""
    span = Span.of(batch, attempt)
    path = folder / span.name()
    if not news.count() and news.newest <= known.memory.newest and not path.exists():
        return
    write_span(folder, span, known.chain, news)
    spans = _remove_leftovers(folder, batch)[:-2]
    with suppress(FileNotFoundError):  # another attempt has merged them
        run = _past(folder, spans, known.memory.newest, horizon_ms) or _increments(spans)
        if run:
            _merge(folder, run, batch, known.memory.newest, horizon_ms)


def listed(folder: Path) -> list[Span]:
    """Return the valid files in order, without merged parts and superseded files.

    Raises:
        StoreError: The folder does not exist.
    """
    return [span for span in _whole(_spans(_names(folder))) if span.adds]


def read_chain(folder: Path, chain: bytes, spans: list[Span]) -> tuple[bytes, list[Memory]]:
    """Return the additions of ``spans``, which follow the digest ``chain``, and the new digest.

    Raises:
        StoreError: A file is damaged, or its digest does not match the one before.
        FileNotFoundError: A file is missing.
    """
    memories = []
    for span in spans:
        head, memory = _read_file(folder / span.name())
        if head.before != chain:
            raise StoreError(
                f"{folder / span.name()} does not continue the files before it: a file is missing, or this one is "
                "from another time"
            )
        chain = head.after
        memories.append(memory)
    return chain, memories


def write_span(folder: Path, span: Span, before: bytes, memory: Memory) -> bytes:
    """Write ``memory`` as the additions of ``span``; return the new digest."""
    body = encode(memory)
    digest = blake2b(before, digest_size=8)
    digest.update(body)
    after = digest.digest()
    _put(folder, span, _Head(before, after, zlib.crc32(body)), body, span.last)
    return after


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError as error:
        raise StoreError(f"{folder} is gone") from error


def _spans(names: list[str]) -> list[Span]:
    matches = (_NAME.fullmatch(name) for name in names)
    return [Span.parse(*match.groups()) for match in matches if match]


def _whole(spans: list[Span]) -> list[Span]:
    """Return the spans that are not parts of another one, one per micro-batch, in order."""
    whole: list[Span] = []
    for span in sorted(sorted(spans, key=_rank, reverse=True), key=lambda span: span.first):
        if not whole or span.last > whole[-1].last:
            whole.append(span)
    return whole


def _rank(span: Span) -> tuple[int, bool, tuple[Any, ...], bool]:
    """Return a sort key; of the files with the same first micro-batch, the greatest is valid."""
    return span.last, span.attempt is None, span.attempt or (), span.adds


def _spans_before(folder: Path, batch: int) -> list[Span]:
    spans = listed(folder)
    if spans and spans[-1].is_of(batch):
        spans.pop()  # of this attempt or an earlier one
    if spans and spans[-1].last >= batch:
        raise StoreError(
            f"{folder} remembers micro-batch {spans[-1].last}, and this is {batch}: the checkpoint is older than the "
            "folder; use both from the same time, or both new"
        )
    return spans


def _read(folder: Path, spans: list[Span], horizon_ms: int | None, now_ms: int | None) -> Known:
    """Return the union of these files, starting from a cached one."""
    known, more = _cached(folder, spans, horizon_ms, now_ms)
    if more:
        chain, memories = read_chain(folder, known.chain, more)
        known = Known(union([known.memory, *memories]), more[-1].last, chain)
    newest = known.memory.newest
    at = newest if now_ms is None else min(newest, now_ms)
    memory = forget(replace(known.memory, newest=at), at, horizon_ms)
    if more:
        _cache(folder, horizon_ms, replace(known, memory=replace(memory, newest=newest)), at)
    return replace(known, memory=memory)


def _cached(
    folder: Path, spans: list[Span], horizon_ms: int | None, now_ms: int | None
) -> tuple[Known, list[Span]]:
    """Return the cached memory of a prefix of these files, and the remaining files."""
    cached = _CACHE.get((folder, horizon_ms))
    if cached and (now_ms is None or now_ms >= cached.forgotten_ms):
        known = cached.known
        for at, span in enumerate(spans):
            if span.last == known.last and _head_of(folder / span.name()).after == known.chain:
                return known, spans[at + 1 :]
    return Known(Memory.blank(), -1, NOTHING), spans


def _cache(folder: Path, horizon_ms: int | None, known: Known, forgotten_ms: int) -> None:
    """Cache ``known`` and as many other memories as fit.

    A worker uses its buckets in turn, so the least recently used one is needed next. Evicting
    random entries keeps more useful ones than LRU.
    """
    _CACHE[folder, horizon_ms] = _Cached(known, forgotten_ms)
    while len(_CACHE) > 1 and _cached_bytes() > CACHE_BYTES_MAX:
        del _CACHE[random.choice(list(_CACHE))]


def _cached_bytes() -> int:
    return 16 * sum(cached.known.memory.count() for cached in _CACHE.values())


def _increments(spans: list[Span]) -> list[Span]:
    """Return those of ``spans`` to merge because there are many."""
    increments = [span for span in spans if span.attempt is not None]
    merged = len(spans) - len(increments)
    return increments if len(increments) >= max(RUN, merged) else []


def _past(folder: Path, spans: list[Span], newest: int, horizon_ms: int | None) -> list[Span]:
    """Return the leading ``spans`` to merge because all their ids are dropped at ``newest``."""
    if horizon_ms is None:
        return []
    past, ids = [], 0
    for span in spans:
        with (folder / span.name()).open("rb") as file:
            file.seek(_HEAD.size)
            _, slices = slices_in(file.read(_TABLE_BYTES_MAX))
        if not all(is_past(number, newest, horizon_ms) for number in slices):
            break
        past.append(span)
        ids += sum(slices.values())
    return past if ids else []


def _merge(
    folder: Path, spans: list[Span], batch: int, newest: int, horizon_ms: int | None
) -> None:
    """Replace adjacent ``spans`` by one file.

    Slices past the horizon at ``newest``, the time of the memory before ``batch``, are dropped.
    """
    before = _head_of(folder / spans[0].name()).before
    after, memories = read_chain(folder, before, spans)
    memory = union(memories)
    kept = Memory(memory.newest, forget(memory, newest, horizon_ms).slices)
    body = encode(kept)
    head = _Head(before, after, zlib.crc32(body))
    _put(folder, Span(spans[0].first, spans[-1].last), head, body, batch)
    _remove_leftovers(folder, batch)


def _remove_leftovers(folder: Path, batch: int) -> list[Span]:
    """Delete merged and superseded files, and temporary files of micro-batches before ``batch``.

    Returns:
        The valid files, in order.
    """
    names = _names(folder)
    spans = _spans(names)
    whole = _whole(spans)
    parts = set(spans) - set(whole)
    if parts:
        sync_folder(folder)  # the process that merged them may have died before its sync
    for span in parts:
        (folder / span.name()).unlink(missing_ok=True)
    for name in names:
        left = _HALF_WRITTEN.match(name)
        if left and int(left[1]) < batch:
            (folder / name).unlink(missing_ok=True)
    return [span for span in whole if span.adds]


def _put(folder: Path, span: Span, head: _Head, body: bytes, batch: int) -> None:
    """Write the file in a task of micro-batch ``batch``, unless it has the same content."""
    path = folder / span.name()
    data = _HEAD.pack(_MAGIC, _VERSION, *head) + body
    if path.exists() and path.read_bytes() == data:
        sync_folder(folder)  # the attempt that wrote it may have died before its sync
    else:
        write(path, data, f".{batch}-")


def _head_of(path: Path) -> _Head:
    with path.open("rb") as file:
        return _parse(path, file.read(_HEAD.size))


def _read_file(path: Path) -> tuple[_Head, Memory]:
    data = path.read_bytes()
    head, body = _parse(path, data), memoryview(data)[_HEAD.size :]
    if zlib.crc32(body) != head.crc:
        raise StoreError(f"{path} is damaged: its CRC does not match")
    return head, decode(body)


def _parse(path: Path, data: bytes) -> _Head:
    if len(data) < _HEAD.size:
        raise StoreError(f"{path} ends inside its head")
    magic, version, *head = _HEAD.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise StoreError(f"{path} is not a memory of version {_VERSION}")
    return _Head(*head)
