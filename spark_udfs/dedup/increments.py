"""The files of one bucket: what each micro-batch added to its memory, without Spark.

    00000000000000000000-00000000000000000031                what micro-batches 0 to 31 added, merged
    00000000000000000032.000003.000016.5f0c1d2e              what micro-batch 32 added, its *increment*
    00000000000000000033.000003.000017.5f0c1d2e
    00000000000000000033.000004.000000.a1b2c3d4.supersedes   33 was run again: what is above does not count
    .33-x7d2k1                                               a file that is being written, or was when its task died

What the bucket remembers before a micro-batch is the union of the files before it. Whatever is run again (a task, a
second attempt beside the first, a micro-batch after a crash) reads what it read at first, and writes the same bytes
once more, under a name that is taken only when they are on disk. A micro-batch that adds nothing has no file.

**Attempts.** A micro-batch that failed may be run again with other rows, or with none of this bucket. What an attempt
before the last one added must not count then, or a row that comes later is lost. So the attempt is part of the name: no
two write the same file, and of a micro-batch the one of the latest attempt counts. The first task of an attempt that is
not the first one puts an empty file that *supersedes* what is earlier into every bucket. However late a task of an
earlier attempt writes, its file is not read.

**Chain.** A file holds two digests: ``before``, of all that was added before it, and ``after``, of that and its own
content. So a file that is gone from between others, or is of another time, is missed. A merged file takes the first
of its parts' ``before`` and the last one's ``after``. For the same reason a digest names a memory: a Python worker
keeps those it read last (`_CACHE`), and reads only the files behind a file whose ``after`` it knows.

**Merging** bounds the number of files. All increments but the newest two are merged into one file once there are at
least `RUN` of them, and at least as many as merged files. Merged files are not merged again, so an id is written twice
at most: 32 bytes. 1,000 micro-batches leave at most 66 files, ``n`` of them about ``2 * sqrt(2 * n)``. The newest two
stay as they are, because the last micro-batch may be run again, and needs the memory before it.

**Forgetting.** With a horizon, files in front all of whose slices are past it are merged into one that is empty. The
newest time in the files may be of a clock that was ahead: a micro-batch takes it for its own time at most.

**Crashes.** A merged file appears whole, beside its parts, and they are deleted when its name is on disk. Files inside
the range of another one are its parts, and those of earlier attempts are superseded: reading ignores both, the next
write deletes them. Attempts that run beside each other merge the same files into the same bytes; one that finds a part
gone stops merging.

A file is magic, uint32 version, the two digests, uint32 CRC of the rest, little-endian; then the memory.
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
"""Increments that a merge takes at least. 32 gives the fewest files after 1,000 micro-batches."""

CACHE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of the memories that one Python worker keeps."""

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
    """The micro-batches that a file is of, both ends included; they order files by time.

    Attributes:
        first: Of the micro-batches.
        last: Of the micro-batches.
        attempt: Of the only one; None: the file is merged.
        adds: Whether it is more than a sign that earlier attempts do not count.
    """

    first: int
    last: int
    attempt: Attempt | None = None
    adds: bool = True

    @classmethod
    def of(cls, batch: int, attempt: Attempt) -> Self:
        """That of what an attempt of a micro-batch adds."""
        return cls(batch, batch, attempt)

    @classmethod
    def parse(cls, first: str, last: str | None, *attempt: str | None) -> Self:
        """From the groups of `_NAME`."""
        if last is not None:
            return cls(int(first), int(last))
        *parts, supersedes = attempt
        return cls(int(first), int(first), Attempt.parse(*map(str, parts)), supersedes is None)

    def is_of(self, batch: int) -> bool:
        """Whether it is of that micro-batch alone."""
        return self.first == self.last == batch

    def name(self) -> str:
        """That of the file; names have the order of time."""
        if self.attempt is None:
            return f"{self.first:020}-{self.last:020}"
        return f"{self.first:020}.{self.attempt.name()}{'' if self.adds else _SUPERSEDES}"


class _Head(NamedTuple):
    before: bytes
    after: bytes
    crc: int


@dataclass(frozen=True)
class Known:
    """What a bucket remembers before a micro-batch.

    Attributes:
        memory: The union of its files.
        last: The last micro-batch of its newest file; -1 if there is none.
        chain: The digest of all that was added.
    """

    memory: Memory
    last: int
    chain: bytes


class _Cached(NamedTuple):
    known: Known
    forgotten_ms: int
    """The time at which its slices were forgotten; before that it lacks some."""


_CACHE: dict[tuple[Path, int | None], _Cached] = {}
"""By folder and horizon. Only ever what is in files: a memory is found again by its digest, or not."""


def load(folder: Path, batch: int, horizon_ms: int | None, now_ms: int | None) -> Known:
    """What the bucket remembers before micro-batch ``batch``.

    Args:
        now_ms: The time of the micro-batch, at which later times in the files count. None: as they are.

    Raises:
        StoreError: The folder or a file is gone or damaged, or there are files of later micro-batches.
    """
    before: list[Span] = []
    while True:
        spans = _spans_before(folder, batch)
        try:
            return _read(folder, spans, horizon_ms, now_ms)
        except (
            FileNotFoundError
        ) as error:  # another attempt merged it just now: the list is another one then
            if spans == before:
                raise StoreError(f"{error.filename} is gone") from error
            before = spans


def supersede(folder: Path, batch: int, attempt: Attempt) -> None:
    """See that what attempts of ``batch`` before this one added, or are about to add, does not count.

    Raises:
        StoreError: There is no such folder.
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
    """Put on disk what an attempt of ``batch`` adds to what the bucket remembered before.

    Old files are merged if there are many.
    """
    span = Span.of(batch, attempt)
    path = folder / span.name()
    if not news.count() and news.newest <= known.memory.newest and not path.exists():
        return
    write_span(folder, span, known.chain, news)
    spans = _remove_leftovers(folder, batch)[:-2]
    with suppress(FileNotFoundError):  # another attempt merged them
        run = _past(folder, spans, known.memory.newest, horizon_ms) or _increments(spans)
        if run:
            _merge(folder, run, batch, known.memory.newest, horizon_ms)


def listed(folder: Path) -> list[Span]:
    """The files that count, in order: those that are parts of another one, or superseded, do not.

    Raises:
        StoreError: There is no such folder.
    """
    return [span for span in _whole(_spans(_names(folder))) if span.adds]


def read_chain(folder: Path, chain: bytes, spans: list[Span]) -> tuple[bytes, list[Memory]]:
    """What ``spans`` added to what has the digest ``chain``, and the digest with it.

    Raises:
        StoreError: One of them is damaged, or does not follow on the one before.
        FileNotFoundError: One of them is gone.
    """
    memories = []
    for span in spans:
        head, memory = _read_file(folder / span.name())
        if head.before != chain:
            raise StoreError(
                f"{folder / span.name()} does not follow on what was added before it: a file is gone, or this one is "
                "of another time"
            )
        chain = head.after
        memories.append(memory)
    return chain, memories


def write_span(folder: Path, span: Span, before: bytes, memory: Memory) -> bytes:
    """Put ``memory`` on disk as what ``span`` added; the digest with it."""
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
    """Those of ``spans`` that are not inside another one, and of one micro-batch the one that counts; in order."""
    whole: list[Span] = []
    for span in sorted(sorted(spans, key=_rank, reverse=True), key=lambda span: span.first):
        if not whole or span.last > whole[-1].last:
            whole.append(span)
    return whole


def _rank(span: Span) -> tuple[int, bool, tuple[Any, ...], bool]:
    """Of the files that begin with one micro-batch the greatest one counts."""
    return span.last, span.attempt is None, span.attempt or (), span.adds


def _spans_before(folder: Path, batch: int) -> list[Span]:
    spans = listed(folder)
    if spans and spans[-1].is_of(batch):
        spans.pop()  # of this attempt or one before
    if spans and spans[-1].last >= batch:
        raise StoreError(
            f"{folder} remembers micro-batch {spans[-1].last}, and this is {batch}: the checkpoint is older than the "
            "folder; take both from one time, or both new"
        )
    return spans


def _read(folder: Path, spans: list[Span], horizon_ms: int | None, now_ms: int | None) -> Known:
    """The union of these files, of which the cache may know some."""
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
    """The memory of a beginning of these files, and the rest of them."""
    cached = _CACHE.get((folder, horizon_ms))
    if cached and (now_ms is None or now_ms >= cached.forgotten_ms):
        known = cached.known
        for at, span in enumerate(spans):
            if span.last == known.last and _head_of(folder / span.name()).after == known.chain:
                return known, spans[at + 1 :]
    return Known(Memory.blank(), -1, NOTHING), spans


def _cache(folder: Path, horizon_ms: int | None, known: Known, forgotten_ms: int) -> None:
    """Keep ``known``, and as many others as there is room for.

    A worker asks for its buckets in turn, so the one that was used least recently is the one that it needs next:
    dropping any one of them at random keeps more that is useful.
    """
    _CACHE[folder, horizon_ms] = _Cached(known, forgotten_ms)
    while len(_CACHE) > 1 and _cached_bytes() > CACHE_BYTES_MAX:
        del _CACHE[random.choice(list(_CACHE))]


def _cached_bytes() -> int:
    return 16 * sum(cached.known.memory.count() for cached in _CACHE.values())


def _increments(spans: list[Span]) -> list[Span]:
    """Those of ``spans`` to merge because there are many."""
    increments = [span for span in spans if span.attempt is not None]
    merged = len(spans) - len(increments)
    return increments if len(increments) >= max(RUN, merged) else []


def _past(folder: Path, spans: list[Span], newest: int, horizon_ms: int | None) -> list[Span]:
    """Those of ``spans`` to merge because nothing in them is remembered at the time ``newest``."""
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
    """Put one file in the place of ``spans``, which are neighbours, and delete them.

    Slices that are past the horizon at the time ``newest``, that of the memory before ``batch``, are left out.
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
    """Delete what is merged or superseded, and what tasks of micro-batches before ``batch`` left half written.

    Returns:
        The files that count, in order.
    """
    names = _names(folder)
    spans = _spans(names)
    whole = _whole(spans)
    parts = set(spans) - set(whole)
    if parts:
        sync_folder(folder)  # whoever merged them may have died before that
    for span in parts:
        (folder / span.name()).unlink(missing_ok=True)
    for name in names:
        left = _HALF_WRITTEN.match(name)
        if left and int(left[1]) < batch:
            (folder / name).unlink(missing_ok=True)
    return [span for span in whole if span.adds]


def _put(folder: Path, span: Span, head: _Head, body: bytes, batch: int) -> None:
    """Write the file, in a task of micro-batch ``batch``, unless it is there."""
    path = folder / span.name()
    data = _HEAD.pack(_MAGIC, _VERSION, *head) + body
    if path.exists() and path.read_bytes() == data:
        sync_folder(folder)  # the attempt that wrote it may have died before that
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
        raise StoreError(f"{path} is no memory of version {_VERSION}")
    return _Head(*head)
