"""Headers of record batches in segment files, as docs/FORMAT.md lays them out; nothing is decoded."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEADER_SIZE = 61
_OVERHEAD = 12  # base offset and length, which the length does not count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class BatchHeader(NamedTuple):
    """One batch's header and its place; ``size`` is the whole batch in bytes."""

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
        """Offset of the last record, inclusive."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 without a producer id."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> str:
        """Name of the codec."""
        code = self.attributes & 7
        return _CODECS[code] if code < len(_CODECS) else f"unknown({code})"

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker gave the timestamp."""
        return bool(self.attributes & 8)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & 16)

    @property
    def is_control(self) -> bool:
        """Whether it holds a marker instead of records."""
        return bool(self.attributes & 32)


class TailError(ValueError):
    """Bytes that are no batch; ``position`` is where they begin."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no batch at position {position}: {reason}")
        self.position = position


def batch_headers(path: Path, position: int = 0) -> Iterator[BatchHeader]:
    """Yield every batch of a segment file from ``position`` on, in order.

    Zeros behind the last batch are space that a running broker allocated in advance, and the end.

    Raises:
        TailError: Something else follows the last batch.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        while position < size:
            header = _read(file, position, size)
            if header is None:
                return
            yield header
            position += header.size


def last_offset_behind(path: Path, position: int) -> int:
    """The last offset at or behind ``position``, as far as headers of batches tell; -1 if none does."""
    last = -1
    try:
        for header in batch_headers(path, position):
            last = max(last, header.last_offset)
    except TailError:
        pass
    return last


def _read(file: BinaryIO, position: int, file_size: int) -> BatchHeader | None:
    file.seek(position)
    data = file.read(HEADER_SIZE)
    if not any(data):
        return None
    if len(data) < HEADER_SIZE:
        raise TailError(position, "the file ends within its header")
    base_offset, length, epoch, magic, crc, *rest = _HEADER.unpack(data)
    if magic != 2:
        raise TailError(position, f"magic {magic}")
    if length < HEADER_SIZE - _OVERHEAD or position + _OVERHEAD + length > file_size:
        raise TailError(position, f"length {length} does not fit")
    return BatchHeader(position, _OVERHEAD + length, base_offset, epoch, magic, crc, *rest)
