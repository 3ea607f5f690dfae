"""Partitions of formats 0 and 1 by `Log.open`: all records, and no byte of a segment changes."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.cli.files.repair import repair
from pykafka_core.errors import StorageError
from pykafka_core.log import Log
from tests.formats.legacy.batches import CODECS, Codec, Row, encoded
from tests.formats.legacy.corpus import Case, cases, first_at_least, untyped

CASES = {case.name: case for case in cases()}
TYPES = {0: "CreateTime", 1: "LogAppendTime"}
NOT_FOUND = (-1, -1)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def row(record: Record) -> Row:
    """The record as the Java consumer shows it; format 0 has no type of timestamps here."""
    kind = TYPES[record.timestamp_type]
    return Row(record.offset, record.timestamp, kind, record.key, record.value)


def segments(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.log"))}


@pytest.mark.parametrize("read_only", [True, False])
def test_every_record_is_read_and_no_segment_changes(
    case: Case, read_only: bool, tmp_path: Path
) -> None:
    folder = case.copy_to(tmp_path)
    for _ in range(2):
        with Log.open(folder, read_only=read_only) as log:
            assert (log.damaged_at, log.truncated_bytes) == (None, 0)
            assert untyped([row(record) for record in log]) == untyped(case.records)
    assert segments(folder) == segments(case.directory)


@pytest.mark.parametrize("views", [True, False])
def test_arrow_has_every_record(case: Case, views: bool, tmp_path: Path) -> None:
    with Log.open(case.copy_to(tmp_path)) as log:
        table = pa.table(log.to_arrow(views=views))
        assert table["offset"].to_pylist() == [row.offset for row in case.records]
        assert table["key"].to_pylist() == [row.key for row in case.records]
        assert table["value"].to_pylist() == [row.value for row in case.records]
        times = table["timestamp"].cast(pa.int64()).to_pylist()
        assert times == [row.timestamp for row in case.records]


def test_records_are_found_by_time(case: Case, tmp_path: Path) -> None:
    with Log.open(case.copy_to(tmp_path)) as log:
        for asked, offset, timestamp in case.facts["list_offsets"]["old"]:
            if isinstance(asked, int):
                expected = (
                    (offset, timestamp) if offset >= 0 else first_at_least(case.records, asked)
                )
                found = log.offset_for_timestamp(asked)
                assert (found or NOT_FOUND) == expected, asked


def test_new_records_follow_the_old_ones(case: Case, tmp_path: Path) -> None:
    folder = case.copy_to(tmp_path)
    with Log.open(folder) as log:
        end = log.log_end_offset
        assert log.append([(b"key", b"new")]).first_offset == end
    with Log.open(folder, read_only=True) as log:
        *old, new = log
        assert untyped([row(record) for record in old]) == untyped(case.records)
        assert (new.offset, new.value) == (end, b"new")


rows = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(0, 2**41),
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=50),
    ),
    min_size=1,
    max_size=20,
)


@given(rows, st.sampled_from([0, 1]), st.sampled_from(CODECS), st.integers(0, 2**40), st.data())
def test_a_reader_finds_each_record_and_begins_at_any(
    drawn: list[tuple[int, int, bytes | None, bytes | None]],
    magic: int,
    codec: Codec,
    first: int,
    data: st.DataObject,
) -> None:
    offset, expected = first, []
    for gap, timestamp, key, value in drawn:
        offset += gap
        expected.append(
            Row(
                offset,
                timestamp if magic else -1,
                "CreateTime",
                key,
                value,
            )
        )
    entries = encoded(expected, magic, codec)
    assert [row(record) for record in RecordBatchReader(entries)] == expected
    start = data.draw(st.integers(first, offset + 1))
    found = [row(record) for record in RecordBatchReader(entries, start=start)]
    assert found == [record for record in expected if record.offset >= start]


def test_a_wrapper_from_another_log_repeats_no_offset(tmp_path: Path) -> None:
    """As in Kafka's consumer, whose position is after the last record."""
    own, foreign = (
        [Row(offset, -1, "NoTimestampType", None, b"%d" % offset) for offset in offsets]
        for offsets in ((0, 1, 2), (1, 2, 5))
    )
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(encoded(own, 0) + encoded(foreign, 0, "gzip"))
    with Log.open(tmp_path, read_only=True) as log:
        assert [record.offset for record in log] == [0, 1, 2, 5]
        for views in (True, False):
            table = pa.table(log.to_arrow(views=views))
            assert table["offset"].to_pylist() == [0, 1, 2, 5]


def test_an_unknown_format_is_named_and_not_repaired(tmp_path: Path) -> None:
    folder = CASES["v1-none"].copy_to(tmp_path)
    last = max(folder.glob("*.log"))
    whole = last.read_bytes()
    end = len(CASES["v1-none"].records)
    strange = end.to_bytes(8) + (80).to_bytes(4) + bytes(4) + b"\x03" + b"?" * 75
    last.write_bytes(whole + strange)
    for _ in range(2):
        with Log.open(folder) as log:
            assert (log.damaged_at, log.truncated_bytes) == (end, 0)
        with pytest.raises(Exception, match=r"left as it is: .* message format 3"):
            repair(folder, yes=True, keep=False, as_json=False)
    assert last.read_bytes() == whole + strange
    with Log.open(folder) as log, pytest.raises(StorageError, match="message format 3"):
        log.append([(None, b"more")])
