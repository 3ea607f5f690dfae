"""Record batches as bytes: cut at their headers, which say where each belongs; what they hold is not looked at."""

import struct
from typing import Final

from pykafka_core._core import check_batches
from pykafka_core.quorum.values import Batch

_HEADER: Final = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta (docs/FORMAT.md)."""
_LENGTH_END: Final = 12


def cut(records: bytes) -> tuple[Batch, ...]:
    """Whole batches; a part of one at the end, where an answer was full, is left out.

    Raises:
        CorruptMessageError: One is no batch of version 2, or its checksum is wrong; nothing of the records is used.
    """
    whole = check_batches(records)
    batches = []
    begin = 0
    while begin < whole:
        base_offset, length, leader_epoch, _, _, _, last_delta = _HEADER.unpack_from(records, begin)
        end = begin + _LENGTH_END + length
        batches.append(Batch(base_offset, leader_epoch, last_delta + 1, records[begin:end]))
        begin = end
    return tuple(batches)
