"""The first use of the log: errors of arguments have advice, and any Arrow library accepts the
columns.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pykafka_core import Broker
from pykafka_core.errors import StorageError
from pykafka_core.log import Log

NOW_MS = 1_700_000_000_000
NAMES = ["offset", "timestamp", "key", "value", "headers"]


def open_log(path: Path) -> Log:
    return Log.open(path, clock=NOW_MS)


def test_a_log_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no log to read at .*events-0"):
        Log.open(tmp_path / "events-0", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_data_directory_is_not_opened_as_a_log(tmp_path: Path, read_only: bool) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StorageError, match="name a partition's directory"):
        Log.open(tmp_path, read_only=read_only)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ((b"key", b"value"), r"one is \[\(key, value\)\]"),
        ("text", r"a record is a tuple \(key, value.* not str"),
        (["value"], "a record is a tuple .* not str"),
        ([b"value"], "a record is a tuple .* not bytes"),
        ([{"key": b"k"}], "a record is a tuple .* not dict"),
        ([(b"k",)], "a record is a tuple"),
        ([("k", b"v")], "key is bytes or None, not str: encode it"),
        ([(b"k", "v")], "value is bytes or None, not str: encode it"),
        ([(b"k", 5)], "value is bytes or None, not int$"),
        ([(b"k", b"v", {"h": b"x"})], "headers are a list of"),
        ([(b"k", b"v", None, 1.5)], "timestamp is milliseconds .* not float"),
        ([(b"k", b"v", None, 2**63)], "64-bit"),
    ],
)
def test_the_error_of_an_invalid_record_names_the_valid_forms(
    tmp_path: Path, records: Any, text: str
) -> None:
    with open_log(tmp_path / "events-0") as log:
        with pytest.raises(TypeError, match=text):
            log.append(records)
        assert log.log_end_offset == 0


def test_a_log_shows_its_path_and_offsets(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    with open_log(path) as log:
        log.append([(None, b"a"), (None, b"b")])
        assert repr(log) == f"<Log {path} offsets 0 to 2>"
    assert repr(log) == f"<Log {path} closed>"


@pytest.mark.parametrize("views", [False, True])
def test_columns_are_one_table_to_arrow_and_pandas(tmp_path: Path, views: bool) -> None:
    with open_log(tmp_path / "events-0") as log:
        for number in range(3):
            log.append([(b"k%d" % number, b"v" * 700_000, [("h", b"x")])])
        columns = log.to_arrow(views=views)
    assert repr(columns) == f"<ArrowBatches 3 rows in {len(columns)} batches>"
    assert columns.num_rows == sum(map(len, columns)) == 3
    assert len(columns[0]) + len(columns[-1]) >= 2
    for _ in range(2):  # it can be read more than once
        table = pa.table(columns)
        assert table.column_names == NAMES
        assert table["key"].to_pylist() == [b"k0", b"k1", b"k2"]
        assert table["headers"].to_pylist()[0] == [{"key": "h", "value": b"x"}]
    assert pd.DataFrame.from_arrow(columns)["offset"].tolist() == [0, 1, 2]
    with pytest.raises(IndexError):
        columns[len(columns)]


@pytest.mark.parametrize("views", [False, True])
def test_any_library_reads_the_columns_by_the_stream_interface_alone(
    tmp_path: Path, views: bool
) -> None:
    """Polars reads like this: it gets the capsule without requesting a schema, then batches."""
    with Log.open(tmp_path / "log-0") as log:
        log.append([(b"key", b"value"), (None, b"other")])

        class OnlyAStream:
            def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                return log.to_arrow(views=views).__arrow_c_stream__(requested_schema)

        with pa.RecordBatchReader.from_stream(OnlyAStream()) as reader:
            assert reader.read_all().column("key").to_pylist() == [b"key", None]


@pytest.mark.parametrize("views", [False, True])
def test_a_log_without_records_is_a_table_without_rows(tmp_path: Path, views: bool) -> None:
    with open_log(tmp_path / "events-0") as log:
        empty = pa.table(log.to_arrow(views=views))
        log.append([(b"k", b"v")])
        assert empty.num_rows == 0
        assert empty.schema == pa.table(log.to_arrow(views=views)).schema


def test_views_stay_zero_copy_in_the_table(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log:
        log.append([(None, b"a value that is longer than a view holds inline")])
        log.roll()
        columns = log.to_arrow(views=True)
        addresses = {pa.table(columns)["value"].chunk(0).buffers()[2].address for _ in range(2)}
    assert len(addresses) == 1, "both tables point into the mapped segment"
