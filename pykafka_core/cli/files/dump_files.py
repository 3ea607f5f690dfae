"""A reader for each kind of file in a log; it yields rows of names and values, and faults.

Indexes are checked against the segment next to them. An offset index entry must point at the batch
that contains its offset. A time index entry must point at the batch that has its timestamp as the
largest one. An aborted transaction must point at its marker.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple
from zlib import crc32

from pykafka_core._core import crc32c
from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.errors import KafkaError
from pykafka_core.protocol import ProtocolError, decode_message
from pykafka_core.protocol.messages import EndTxnMarker, ProducerSnapshot

from .batches import BatchHeader, TailError, batch_headers, header_at, is_end
from .looks import settled

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_TXN_ENTRY = Struct(">hqqqq")
_SNAPSHOT_CRC_START = 6
_MARKERS = {0: "ABORT", 1: "COMMIT"}
_CONTROL_TYPES = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


class Fault(NamedTuple):
    """A fault of a file, in words."""

    text: str


class _Batch(NamedTuple):
    """A batch, its bytes, and whether they match its CRC."""

    header: BatchHeader
    data: bytes
    is_valid: bool


Rows = Iterator[Mapping[str, object] | Fault]
_Dump = Callable[[Path, bool, bool], Rows]


def _segment(path: Path, records: bool, contents: bool) -> Rows:
    with path.open("rb") as file:
        try:
            yield from _batches(file, int(path.stem), records, contents)
        except TailError as error:
            yield Fault(str(error))


def _batches(file: BinaryIO, expected: int, records: bool, contents: bool) -> Rows:
    position = 0
    while (batch := _batch_at(file, position)) is not None:
        header, data, is_valid = batch
        position += header.size
        if is_valid and header.is_message_set:
            header = _opened(header, data)
        yield _batch_row(header, is_valid=is_valid)
        if not is_valid:
            yield Fault(f"batch at {header.position} does not match its CRC")
        elif records:
            yield from _records(header, data, contents)
        if header.base_offset < expected:
            yield Fault(f"batch at {header.position} starts below offset {expected}")
        expected = header.last_offset + 1


def _batch_at(file: BinaryIO, position: int) -> _Batch | None:
    def look() -> tuple[_Batch | None, Set[object]]:
        batch = _read(file, position)
        if batch is None or batch.is_valid:
            return batch, frozenset()
        if is_end(file, position + batch.header.size):
            return batch, {batch.data}
        return _read(file, position), frozenset()  # a batch before another one is complete

    found, _ = settled(look)
    return found


def _read(file: BinaryIO, position: int) -> _Batch | None:
    header = header_at(file, position)
    if header is None:
        return None
    data = os.pread(file.fileno(), header.size, position)
    checksum = crc32c if header.magic == 2 else crc32
    return _Batch(header, data, checksum(data[header.crc_start :]) == header.crc)


def _opened(header: BatchHeader, data: bytes) -> BatchHeader:
    """Return the header of a compressed message, with its first offset and its count."""
    try:
        offsets = [record.offset for record in RecordBatchReader(data, check_crcs=False)]
    except (KafkaError, ProtocolError):
        return header
    base, last = offsets[0], header.base_offset
    return header._replace(
        base_offset=base, last_offset_delta=last - base, records_count=len(offsets)
    )


def _batch_row(header: BatchHeader, *, is_valid: bool) -> Mapping[str, object]:
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": _optional(header.base_timestamp if header.attributes & 64 else -1),
        "position": header.position,
        _timestamp_type(header): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": header.compression,
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _records(header: BatchHeader, data: bytes, contents: bool) -> Rows:
    try:
        for record in RecordBatchReader(data, check_crcs=False, control=True):
            yield _record_row(header, record, contents)
    except (KafkaError, ProtocolError) as error:
        yield Fault(f"batch at {header.position}: {error}")


def _record_row(header: BatchHeader, record: Record, contents: bool) -> Mapping[str, object]:
    row: dict[str, object] = {
        "offset": record.offset,
        _timestamp_type(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": record.sequence,
        "headerKeys": [name for name, _ in record.headers],
    }
    if header.is_control:
        row.update(_control(record))
    elif contents:
        row.update({"key": record.key} if record.key is not None else {})
        row.update({"payload": record.value} if record.value is not None else {})
    return row


def _control(record: Record) -> Mapping[str, object]:
    kind = int.from_bytes((record.key or b"")[2:4], "big")
    if kind not in _MARKERS:
        return {"controlType": f"{_CONTROL_TYPES.get(kind, 'UNKNOWN')}({kind})"}
    value = record.value or b""
    marker = decode_message("EndTxnMarker", int.from_bytes(value[:2], "big"), value[2:])
    assert isinstance(marker, EndTxnMarker)
    return {"endTxnMarker": _MARKERS[kind], "coordinatorEpoch": marker.coordinator_epoch}


def _offset_index(path: Path, data: bytes, batches: Sequence[BatchHeader]) -> Rows:
    headers = {header.position: header for header in batches}
    base, last_offset, last_position = int(path.stem), -1, -1
    for relative, position in _entries(data, _OFFSET_ENTRY):
        offset = base + relative
        yield {"offset": offset, "position": position}
        header = headers.get(position)
        if header is None or header.last_offset != offset:
            yield Fault(f"offset {offset} is not the last of a batch at position {position}")
        if offset <= last_offset or position <= last_position:
            yield Fault(f"entry of offset {offset} is out of order")
        last_offset, last_position = offset, position
    yield from _ragged(data, _OFFSET_ENTRY)


def _time_index(path: Path, data: bytes, batches: Sequence[BatchHeader]) -> Rows:
    ends = {header.last_offset: header for header in batches}
    base, last_timestamp, last_offset = int(path.stem), -1, -1
    for timestamp, relative in _entries(data, _TIME_ENTRY):
        offset = base + relative
        yield {"timestamp": timestamp, "offset": offset}
        header = ends.get(offset)
        if header is None or header.max_timestamp != timestamp:
            yield Fault(f"no batch with largest timestamp {timestamp} ends at offset {offset}")
        if timestamp <= last_timestamp or offset <= last_offset:
            yield Fault(f"entry of timestamp {timestamp} is out of order")
        last_timestamp, last_offset = timestamp, offset
    yield from _ragged(data, _TIME_ENTRY)


def _transaction_index(path: Path, data: bytes, batches: Sequence[BatchHeader]) -> Rows:
    ends = {header.last_offset: header for header in batches if header.is_control}
    last = -1
    for version, producer, first_offset, last_offset, stable in _entries(data, _TXN_ENTRY):
        yield {
            "version": version,
            "producerId": producer,
            "firstOffset": first_offset,
            "lastOffset": last_offset,
            "lastStableOffset": stable,
        }
        marker = ends.get(last_offset)
        if marker is None or marker.producer_id != producer:
            yield Fault(f"no marker of producer {producer} is at offset {last_offset}")
        if last_offset <= last or first_offset > last_offset:
            yield Fault(f"entry of last offset {last_offset} is out of order")
        last = last_offset
    yield from _ragged(data, _TXN_ENTRY)


def _snapshot(path: Path, _records: bool, _contents: bool) -> Rows:
    data = path.read_bytes()
    try:
        snapshot = decode_message("ProducerSnapshot", int.from_bytes(data[:2], "big"), data[2:])
    except ProtocolError as error:
        yield Fault(str(error))
        return
    assert isinstance(snapshot, ProducerSnapshot)
    if snapshot.crc != crc32c(data[_SNAPSHOT_CRC_START:]):
        yield Fault("the snapshot does not match its CRC")
    for producer in snapshot.producer_entries:
        row: dict[str, object] = {
            "producerId": producer.producer_id,
            "producerEpoch": producer.epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": _optional(producer.current_txn_first_offset),
            "lastTimestamp": producer.timestamp,
        }
        if producer.last_offset >= 0:
            row |= {
                "firstSequence": (producer.last_sequence - producer.offset_delta) & 0x7FFFFFFF,
                "lastSequence": producer.last_sequence,
                "lastOffset": producer.last_offset,
                "offsetDelta": producer.offset_delta,
                "timestamp": producer.timestamp,
            }
        yield row


def _entries(data: bytes, entry: Struct) -> Iterator[tuple[int, ...]]:
    """Return the entries, without the preallocated zeros at the end of an open index."""
    end = len(data) - len(data) % entry.size
    while end and not any(data[end - entry.size : end]):
        end -= entry.size
    return entry.iter_unpack(data[:end])


def _ragged(data: bytes, entry: Struct) -> Iterator[Fault]:
    if len(data) % entry.size:
        yield Fault(f"a length of {len(data)} is not a multiple of an entry's {entry.size}")


def _index(rows: Callable[[Path, bytes, Sequence[BatchHeader]], Rows]) -> _Dump:
    """Return the reader of an index, which a broker may replace or remove with its segment."""

    def look(path: Path) -> tuple[tuple[bytes, list[BatchHeader]] | OSError, Set[object]]:
        try:
            data, batches = path.read_bytes(), _headers_beside(path)
        except FileNotFoundError as error:
            return error, {error.filename} if path.exists() else frozenset()
        faults = {row for row in rows(path, data, batches) if isinstance(row, Fault)}
        return (data, batches), faults

    def dump(path: Path, _records: bool, _contents: bool) -> Rows:
        path.stat()  # an index that is missing from the start is an error
        found, faults = settled(lambda: look(path))
        if isinstance(found, OSError):
            if faults:
                raise found
            return
        for row in rows(path, *found):
            if not isinstance(row, Fault) or row in faults:
                yield row

    return dump


def _headers_beside(path: Path) -> list[BatchHeader]:
    """Return the batches of the segment up to a fault; the segment's own dump shows the fault."""
    headers: list[BatchHeader] = []
    with suppress(TailError):
        headers.extend(batch_headers(path.with_suffix(".log")))  # keeps the batches before a fault
    return headers


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _optional(value: int) -> str:
    """Return the text that Java prints; negative means no value."""
    return f"OptionalLong[{value}]" if value >= 0 else "OptionalLong.empty"


DUMPS: Mapping[str, _Dump] = {
    ".log": _segment,
    ".index": _index(_offset_index),
    ".timeindex": _index(_time_index),
    ".txnindex": _index(_transaction_index),
    ".snapshot": _snapshot,
}
"""The readers by file extension; they take a path, whether to show records, and whether to
show their contents.
"""
