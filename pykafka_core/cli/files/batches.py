"""Headers of record batches in segment files, in the layout of docs/FORMAT.md.

Nothing is decoded. A message of format 0 or 1 counts as a batch.
"""

import os
import struct
from collections.abc import Iterator, Set
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .looks import settled

HEADER_SIZE = 61
_OVERHEAD = 12  # base offset and length; the length does not include them
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MAGIC = 16  # its position in every format
_PREFIX_SIZE = 17
_MESSAGE = struct.Struct(">qiIbb")  # format 0; the timestamp of format 1 follows
_MESSAGE_V1 = struct.Struct(">qiIbbq")
_MESSAGE_SIZE_MIN = 26
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class BatchHeader(NamedTuple):
    """The header of one batch and its position; ``size`` is the whole batch in bytes.

    In a message of format 0 or 1, ``base_offset`` is the offset of the last record, and
    ``records_count`` is 1.
    """

    position: int
    size: int
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        """Return the offset of the last record, inclusive."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record; -1 without a producer id."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> str:
        """Return the name of the codec."""
        code = self.attributes & 7
        return _CODECS[code] if code < len(_CODECS) else f"unknown({code})"

    @property
    def is_message_set(self) -> bool:
        """Return whether it is a compressed message of format 0 or 1.

        The records inside then have the first offset.
        """
        return self.magic < 2 and bool(self.attributes & 7)

    @property
    def crc_start(self) -> int:
        """Return the position in the header at which the bytes of the CRC begin."""
        return 21 if self.magic == 2 else _MAGIC

    @property
    def is_log_append_time(self) -> bool:
        """Return whether the broker set the timestamps."""
        return bool(self.attributes & 8)

    @property
    def is_transactional(self) -> bool:
        """Return whether it belongs to a transaction."""
        return bool(self.attributes & 16)

    @property
    def is_control(self) -> bool:
        """Return whether it contains a marker instead of records."""
        return bool(self.attributes & 32)


class TailError(ValueError):
    """Bytes that are not a batch; ``position`` is their start."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no batch at position {position}: {reason}")
        self.position = position


class UnknownFormatError(TailError):
    """A batch of an unknown message format.

    Attributes:
        offset: Its first eight bytes, which are the offset in every known format.
        magic: The number of the format.
    """

    def __init__(self, position: int, offset: int, magic: int) -> None:
        super().__init__(position, f"magic {magic}")
        self.offset = offset
        self.magic = magic


def batch_headers(path: Path, position: int = 0) -> Iterator[BatchHeader]:
    """Yield every batch of a segment file in order, starting at ``position``.

    Zeros after the last batch are preallocated by a running broker and count as the end.

    Raises:
        TailError: Something else follows the last batch.
    """
    with path.open("rb") as file:
        yield from headers_of(file, position)


def headers_of(file: BinaryIO, position: int = 0) -> Iterator[BatchHeader]:
    """Yield as `batch_headers`, from an open file; a compaction may replace its name."""
    while (header := header_at(file, position)) is not None:
        yield header
        position += header.size


def header_at(file: BinaryIO, position: int) -> BatchHeader | None:
    """Return the header at a position, None at the end.

    Raises:
        TailError: There is something else.
    """
    found, _ = settled(lambda: _look(file, position))
    if isinstance(found, TailError):
        raise found
    return found


def is_end(file: BinaryIO, position: int) -> bool:
    """Return whether no batch begins at a position, or at least none is written yet."""
    return not any(os.pread(file.fileno(), HEADER_SIZE, position))


def last_offset_behind(path: Path, position: int) -> int:
    """Return the largest last offset of the batches from ``position`` on.

    -1 if there is no batch.
    """
    last = -1
    try:
        for header in batch_headers(path, position):
            last = max(last, header.last_offset)
    except TailError:
        pass
    return last


def _look(file: BinaryIO, position: int) -> tuple[BatchHeader | TailError | None, Set[object]]:
    """Return the header or the error at a position, and the values on which the error depends."""
    data = os.pread(file.fileno(), HEADER_SIZE, position)
    file_size = os.fstat(file.fileno()).st_size
    if not any(data):
        return None, frozenset()
    try:
        header = parse_header(data, position)
    except TailError as error:
        return error, {data}
    if position + header.size > file_size:
        reason = f"length {header.size - _OVERHEAD} does not fit"
        return TailError(position, reason), {(data, file_size)}
    return header, frozenset()


def parse_header(data: bytes, position: int) -> BatchHeader:
    """Parse the header at the start of up to `HEADER_SIZE` bytes; the batch may be cut off.

    Raises:
        UnknownFormatError: The message format is unknown.
        TailError: The header is cut off, or its length is too small.
    """
    magic = int.from_bytes(data[_MAGIC:_PREFIX_SIZE], signed=True)
    if len(data) >= _PREFIX_SIZE and magic not in (0, 1, 2):
        raise UnknownFormatError(position, int.from_bytes(data[:8], signed=True), magic)
    size_min = HEADER_SIZE if magic == 2 else _MESSAGE_SIZE_MIN
    if len(data) < size_min:
        raise TailError(position, "the file ends within its header")
    length = int.from_bytes(data[8:_OVERHEAD], signed=True)
    if length < size_min - _OVERHEAD:
        raise TailError(position, f"length {length} does not fit")
    size = _OVERHEAD + length
    return _batch(position, size, data) if magic == 2 else _message(position, size, data)


def _batch(position: int, size: int, data: bytes) -> BatchHeader:
    base_offset, _, epoch, magic, crc, *rest = _HEADER.unpack(data)
    return BatchHeader(position, size, base_offset, epoch, magic, crc, *rest)


def _message(position: int, size: int, data: bytes) -> BatchHeader:
    offset, _, crc, magic, attributes = _MESSAGE.unpack_from(data)
    timestamp = -1 if magic == 0 else _MESSAGE_V1.unpack_from(data)[-1]
    return BatchHeader(
        position=position,
        size=size,
        base_offset=offset,
        partition_leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes & 0x0F,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
    )
