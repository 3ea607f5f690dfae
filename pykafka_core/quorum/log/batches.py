"""Splits bytes into record batches by their headers.

Their content is not decoded, except for control records that change the voter set.
"""

import struct
from typing import Final

from pykafka_core._core import check_batches
from pykafka_core._records import RecordBatchReader
from pykafka_core.errors import CorruptMessageError, KafkaError
from pykafka_core.quorum.log.voters import KRAFT_VERSION_KEY, VOTERS_KEY, change_of
from pykafka_core.quorum.values import Batch, VoterSetChange

_HEADER: Final = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta (docs/FORMAT.md)."""
_LENGTH_END: Final = 12
_CONTROL: Final = 1 << 5


def cut(records: bytes) -> tuple[Batch, ...]:
    """Return whole batches; a partial one at the end, from a full response, is dropped.

    Raises:
        CorruptMessageError: A batch is not of magic 2, has a wrong checksum, or has invalid control
            records; all of the records are rejected.
    """
    whole = check_batches(records)
    batches = []
    begin = 0
    while begin < whole:
        header = _HEADER.unpack_from(records, begin)
        base_offset, length, leader_epoch, _, _, attributes, last_delta = header
        end = begin + _LENGTH_END + length
        data = records[begin:end]
        change = _change(data) if attributes & _CONTROL else None
        batches.append(Batch(base_offset, leader_epoch, last_delta + 1, data, change))
        begin = end
    return tuple(batches)


def _change(batch: bytes) -> VoterSetChange | None:
    """Return the changes to the voter set by a batch of control records."""
    if VOTERS_KEY not in batch and KRAFT_VERSION_KEY not in batch:
        return None
    try:
        reader = RecordBatchReader(batch, control=True)
        return change_of((record.key, record.value) for record in reader)
    except (ValueError, KafkaError) as error:
        raise CorruptMessageError(f"control records cannot be understood: {error}") from error
