"""Record batches as bytes: cut at their headers, which say where each belongs; what they hold is not looked at."""

import struct
from typing import Final

from pykafka_core._core import crc32c
from pykafka_core.errors import CorruptMessageError
from pykafka_core.quorum.values import Batch

_HEADER: Final = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta (docs/FORMAT.md)."""
_LENGTH_END: Final = 12
_CRC_BEGIN: Final = 21
_SIZE_MIN: Final = 61
_MAGIC: Final = 2


def cut(records: bytes) -> tuple[Batch, ...]:
    """Whole batches; a part of one at the end, where an answer was full, is left out.

    Raises:
        CorruptMessageError: One is no batch of version 2, or its checksum is wrong; nothing of the records is used.
    """
    batches = []
    begin = 0
    while begin + _LENGTH_END <= len(records):
        end = begin + _LENGTH_END + _length(records, begin)
        if end > len(records):
            break
        batches.append(_batch(records[begin:end]))
        begin = end
    return tuple(batches)


def _length(records: bytes, begin: int) -> int:
    length = int.from_bytes(records[begin + 8 : begin + _LENGTH_END], "big", signed=True)
    if length < _SIZE_MIN - _LENGTH_END:
        raise CorruptMessageError(f"a batch of {length} bytes in a Fetch of the metadata log")
    return length


def _batch(data: bytes) -> Batch:
    base_offset, _, leader_epoch, magic, crc, _, last_delta = _HEADER.unpack_from(data)
    if magic != _MAGIC or crc32c(data[_CRC_BEGIN:]) != crc:
        raise CorruptMessageError(
            f"the batch at offset {base_offset} of the metadata log is damaged"
        )
    return Batch(base_offset, leader_epoch, last_delta + 1, data)
