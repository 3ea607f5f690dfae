"""``dump-log``: what a log's files hold, line by line in the words of Kafka's DumpLogSegments.

Batches are read by their headers. Indexes are checked against the segment beside them: an offset
index entry must point at the batch that begins or holds its offset, and both kinds must grow.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pykafka_core._core import crc32c

from .batches import BatchHeader, TailError, batch_headers
from .errors import FAILED, USAGE, CliError
from .output import print_json

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_CRC_START = 21  # the CRC covers what follows it
_TXN_ENTRY = struct.Struct(">hqqqq")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dump:
    """What one file holds: rows of names and values, and what is wrong with it."""

    path: Path
    rows: Sequence[Mapping[str, object]]
    faults: Sequence[str] = field(default_factory=tuple)


def dump_log(paths: Sequence[Path], *, verify: bool, as_json: bool) -> None:
    """Print each file; directories stand for the files in them.

    Raises:
        CliError: A file cannot be read or is of an unknown kind; or, with ``verify``, has a fault.
    """
    faults = 0
    for path in _files(paths):
        dump = _dump(path)
        faults += len(dump.faults)
        if as_json:
            rows = [] if verify else list(dump.rows)
            print_json({"file": str(path), "rows": rows, "faults": list(dump.faults)})
        else:
            _print(dump, verify=verify)
    if verify and faults:
        raise CliError(f"{faults} faults found")


def _print(dump: Dump, *, verify: bool) -> None:
    if not verify:
        print(f"Dumping {dump.path}")
        if dump.path.suffix == ".log":
            print(f"Log starting offset: {int(dump.path.stem)}")
        for row in dump.rows:
            print(" ".join(f"{name}: {_text(value)}" for name, value in row.items()))
    for fault in dump.faults:
        print(f"{dump.path}: {fault}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in _DUMPS)
        elif path.suffix not in _DUMPS:
            kinds = " ".join(_DUMPS)
            raise CliError(f"{path}: of no known kind", f"known are {kinds}", exit_code=USAGE)
        else:
            yield path


def _dump(path: Path) -> Dump:
    try:
        return _DUMPS[path.suffix](path)
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}", exit_code=FAILED) from error


def _dump_segment(path: Path) -> Dump:
    rows: list[dict[str, object]] = []
    faults: list[str] = []
    expected = int(path.stem)
    try:
        for header in batch_headers(path):
            is_valid = _is_valid(path, header)
            rows.append(_batch_row(header, is_valid=is_valid))
            if not is_valid:
                faults.append(f"batch at {header.position} does not match its CRC")
            if header.base_offset < expected:
                faults.append(f"batch at {header.position} begins below offset {expected}")
            expected = header.last_offset + 1
    except TailError as error:
        faults.append(str(error))
    return Dump(path=path, rows=rows, faults=faults)


def _batch_row(header: BatchHeader, *, is_valid: bool) -> dict[str, object]:
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
        "deleteHorizonMs": _delete_horizon(header),
        "position": header.position,
        "LogAppendTime" if header.is_log_append_time else "CreateTime": header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": header.compression,
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _delete_horizon(header: BatchHeader) -> str:
    """Kafka prints Java's optional; the base timestamp is the horizon when the bit is set."""
    has_horizon = header.attributes & 64
    return f"OptionalLong[{header.base_timestamp}]" if has_horizon else "OptionalLong.empty"


def _is_valid(path: Path, header: BatchHeader) -> bool:
    with path.open("rb") as file:
        file.seek(header.position + _CRC_START)
        return crc32c(file.read(header.size - _CRC_START)) == header.crc


def _dump_offset_index(path: Path) -> Dump:
    base = int(path.stem)
    entries = [(base + relative, at) for relative, at in _entries(path, _OFFSET_ENTRY)]
    batches = {header.position: header for header in _segment_of(path)}
    faults = []
    for (offset, position), previous in zip(entries, [(-1, -1), *entries], strict=False):
        batch = batches.get(position)
        if batch is None or not batch.base_offset <= offset <= batch.last_offset:
            faults.append(f"offset {offset} is not in a batch at position {position}")
        if offset <= previous[0] or position <= previous[1]:
            faults.append(f"entry of offset {offset} does not grow")
    return Dump(
        path=path,
        rows=[{"offset": offset, "position": position} for offset, position in entries],
        faults=faults,
    )


def _dump_time_index(path: Path) -> Dump:
    base = int(path.stem)
    entries = [(timestamp, base + relative) for timestamp, relative in _entries(path, _TIME_ENTRY)]
    highest = {header.last_offset: header for header in _segment_of(path)}
    faults = []
    for (timestamp, offset), previous in zip(entries, [(-1, -1), *entries], strict=False):
        if timestamp < previous[0] or offset < previous[1]:
            faults.append(f"entry of timestamp {timestamp} does not grow")
        if not any(
            header.base_offset <= offset <= header.last_offset and header.max_timestamp >= timestamp
            for header in highest.values()
        ):
            faults.append(f"no batch holds timestamp {timestamp} at offset {offset}")
    rows = [{"timestamp": timestamp, "offset": offset} for timestamp, offset in entries]
    return Dump(path=path, rows=rows, faults=faults)


def _dump_transaction_index(path: Path) -> Dump:
    rows = [
        {
            "version": version,
            "producerId": producer,
            "firstOffset": first,
            "lastOffset": last,
            "lastStableOffset": stable,
        }
        for version, producer, first, last, stable in _TXN_ENTRY.iter_unpack(
            _whole(path, _TXN_ENTRY.size)
        )
    ]
    return Dump(path=path, rows=rows)


def _entries(path: Path, entry: struct.Struct) -> list[tuple[int, int]]:
    """Entries up to the zeros that an open index has been given in advance."""
    data = _whole(path, entry.size)
    end = len(data)
    while end and not any(data[end - entry.size : end]):
        end -= entry.size
    return [(first, second) for first, second in entry.iter_unpack(data[:end])]


def _whole(path: Path, size: int) -> bytes:
    data = path.read_bytes()
    return data[: len(data) - len(data) % size]


def _segment_of(path: Path) -> Sequence[BatchHeader]:
    headers = []
    try:
        for header in batch_headers(path.with_suffix(".log")):
            headers.append(header)
    except TailError:  # a fault of the segment, told where it is dumped
        pass
    return headers


_DUMPS: Mapping[str, Callable[[Path], Dump]] = {
    ".log": _dump_segment,
    ".index": _dump_offset_index,
    ".timeindex": _dump_time_index,
    ".txnindex": _dump_transaction_index,
}
