import pickle
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import _core
from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.errors import CorruptMessageError, InvalidRecordError, MessageTooLargeError
from tests.pyx import twins

# Logs that Apache Kafka 4.2.1 wrote; the tests of rust/record check their contents.
LOGS = sorted((Path(__file__).parents[2] / "rust/record/tests/data").glob("*.log"))
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

nullable = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3)
rows = st.lists(st.tuples(nullable, nullable, headers, st.integers(-1, 2**60)), min_size=1)


def read(data: bytes, **options: Any) -> list[Record]:
    return list(RecordBatchReader(data, **options))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_logs_of_kafka_are_read_as_by_the_python_twin(path: Path) -> None:
    data = path.read_bytes()
    for control in (False, True):
        expected = [Record(*fields) for fields in twins.records(data, control=control)]
        assert expected
        assert read(data, control=control) == expected
        assert read(memoryview(data), control=control) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", CODECS)
@given(rows=rows)
def test_built_records_are_read_unchanged(
    codec: str, rows: list[tuple[bytes | None, bytes | None, list[Any], int]]
) -> None:
    data = _core.build_batch(rows, compression=codec, base_offset=100, leader_epoch=3)
    expected = [
        Record(100 + i, timestamp, key, value, headers, leader_epoch=3)
        for i, (key, value, headers, timestamp) in enumerate(rows)
    ]
    assert read(data) == expected
    assert [Record(*fields) for fields in twins.records(data)] == expected
    again = _core.build_batch(read(data), compression=codec, base_offset=100, leader_epoch=3)
    assert again == data


@given(st.sampled_from(LOGS), st.data())
def test_damaged_records_are_rejected_where_the_twin_rejects_them(
    path: Path, data: st.DataObject
) -> None:
    # One batch without compression: this test does not check damaged compressed data.
    batch = bytearray(_core.build_batch([(b"k", b"value", [("h", b"x"), ("", None)], 7)] * 3))
    if path.stem == "raw-0":
        batch = bytearray(path.read_bytes()[:94])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(17, len(batch) - 1))
        batch[at] = data.draw(st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]))
    batch[22] &= 0xF8
    try:
        expected = [Record(*fields) for fields in twins.records(bytes(batch))]
    except ValueError:
        with pytest.raises(InvalidRecordError):
            read(bytes(batch), check_crcs=False)
        return
    # The reader starts at offset 0, so it does not return records at negative offsets.
    assert read(bytes(batch), check_crcs=False) == [r for r in expected if r.offset >= 0]


def test_only_requested_offsets_are_returned() -> None:
    data = b"".join(_core.build_batch([(None, None)] * 5, base_offset=n) for n in (10, 15, 20))
    assert [r.offset for r in read(data, start=13, end=17)] == [13, 14, 15, 16]
    assert [r.offset for r in read(data, start=22)] == [22, 23, 24]
    assert read(data, start=25) == read(data, end=10) == read(b"") == read(data[:60]) == []
    assert [r.offset for r in read(data[:-1], start=19)] == [19]


def test_records_at_earlier_offsets_are_skipped_as_by_a_consumer() -> None:
    """A message set of format 0 from another log still has the offsets of that log."""
    first, second = (_core.build_batch([(None, None)] * 5, base_offset=n) for n in (10, 12))
    data = first + second + first
    assert [r.offset for r in read(data, repeats=False)] == [*range(10, 17)]
    assert len(_core.batches_to_arrow(data)) == 7
    assert len(read(data)) == 15


def test_wrong_crc_magic_and_length_are_rejected() -> None:
    good = _core.build_batch([(b"k", b"v")])
    for at, byte in ((len(good) - 1, 7), (16, 1), (16, 3), (11, 9)):
        bad = bytearray(good)
        bad[at] = byte
        with pytest.raises(CorruptMessageError):
            RecordBatchReader(bytes(bad))
    for at, byte in ((16, 3), (11, 9)):
        bad = bytearray(good)
        bad[at] = byte
        with pytest.raises(CorruptMessageError):
            read(bytes(bad), check_crcs=False)


def test_reader_ends_after_an_error() -> None:
    bad = bytearray(_core.build_batch([(None, None)] * 3))
    bad[57:61] = struct.pack(">i", 4)
    reader = RecordBatchReader(bytes(bad), check_crcs=False)
    assert [next(reader).offset for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InvalidRecordError):
        next(reader)
    assert list(reader) == []


def test_bomb_is_rejected() -> None:
    bomb = _core.build_batch([(None, bytes(80 << 20))], compression="zstd")
    with pytest.raises(MessageTooLargeError):
        read(bomb)


def test_record_is_immutable_and_comparable() -> None:
    record = Record(5, 7, b"k", None, [("h", b"x")], 1, 2, 3, 4, 6)
    assert pickle.loads(pickle.dumps(record)) == record
    assert hash(record) == hash(Record(5, 7, b"k", None, (("h", b"x"),), 1, 2, 3, 4, 6))
    assert record != Record(5, 7, b"k", b"", (("h", b"x"),), 1, 2, 3, 4, 6)
    assert record != (5, 7)  # type: ignore[comparison-overlap]
    assert (
        repr(record)
        == "Record(offset=5, timestamp=7, key=b'k', value=None, headers=(('h', b'x'),))"
    )
    with pytest.raises(AttributeError):
        record.offset = 1


def test_invalid_records_and_options_are_rejected() -> None:
    wrong: list[Any] = [(b"k",), (b"k", "text"), (b"k", b"v", [], 1, 2), (b"k", b"v", ["h"]), 5]
    for record in wrong:
        with pytest.raises(TypeError):
            _core.build_batch([record])
    unknown: list[dict[str, Any]] = [
        {"compression": "brotli"},
        {"compression": "gzip", "level": 99},
    ]
    for options in unknown:
        with pytest.raises(ValueError, match=r"brotli|level 99"):
            _core.build_batch([(None, None)], **options)
    with pytest.raises(ValueError, match="needs a record"):
        _core.build_batch([])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_arrow_contains_the_same_records_as_the_reader(path: Path) -> None:
    data = path.read_bytes()
    batch = _core.batches_to_arrow(data)
    table = pa.record_batch(batch)
    table.validate(full=True)
    assert pa.schema(batch) == table.schema
    records = read(data)
    assert len(batch) == table.num_rows == len(records)
    columns = {name: table.column(name).to_pylist() for name in ("offset", "key", "value")}
    assert columns == {name: [getattr(r, name) for r in records] for name in columns}
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    assert times == [r.timestamp for r in records]
    pairs = [
        tuple((h["key"], h["value"]) for h in row) for row in table.column("headers").to_pylist()
    ]
    assert pairs == [r.headers for r in records]


def test_arrow_starts_and_ends_at_given_offsets() -> None:
    log = LOGS[0].read_bytes()
    assert len(_core.batches_to_arrow(log, 3, 25)) == len(read(log, start=3, end=25)) == 22
