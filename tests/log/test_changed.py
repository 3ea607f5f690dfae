"""A log that is open for reading while its files are compacted, truncated, deleted or recreated."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pykafka_core.errors import StorageError
from pykafka_core.log import Log, LogConfig

KEYS = 20
EXPECTED = {b"key %d" % key for key in range(KEYS)}
CONFIG = LogConfig(file_delete_delay_ms=0)

Reader = Callable[[Log], set[bytes]]


def by_record(log: Log) -> set[bytes]:
    return {record.key or b"" for record in log}


def by_arrow(log: Log) -> set[bytes]:
    return set(pa.table(log.to_arrow())["key"].to_pylist())


def by_view(log: Log) -> set[bytes]:
    return set(pa.table(log.to_arrow(views=True))["key"].cast(pa.binary()).to_pylist())


READERS = pytest.mark.parametrize("read", [by_record, by_arrow, by_view])


def overwrite(path: Path, *, is_sealed: bool = True) -> None:
    """Append all keys in a batch each, and seal their segment."""
    with Log.open(path, config=CONFIG) as log:
        for key in sorted(EXPECTED):
            log.append([(key, b"value")])
        if is_sealed:
            log.roll()


def compact(path: Path, base: int) -> None:
    """Replace a segment by its last batch under the same file name, as compaction does."""
    with Log.open(path, read_only=True) as log:
        last = log.read(base + KEYS - 1, 1)
    segment = path / f"{base:020}.log"
    swap = segment.with_suffix(".log.swap")
    swap.write_bytes(last)
    for index in (segment.with_suffix(".index"), segment.with_suffix(".timeindex")):
        index.unlink()
    swap.replace(segment)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two segments that both hold all keys."""
    path = tmp_path / "state-0"
    overwrite(path)
    overwrite(path)
    return path


@READERS
def test_a_compaction_with_the_same_file_names_hides_no_key(path: Path, read: Reader) -> None:
    with Log.open(path, read_only=True) as log:
        names = set(path.glob("*.log"))
        overwrite(path, is_sealed=False)
        compact(path, 0)
        compact(path, KEYS)
        assert set(path.glob("*.log")) == names
        assert read(log) == EXPECTED
        assert read(log) == EXPECTED


def test_a_compaction_between_two_chunks_hides_no_key(path: Path) -> None:
    with Log.open(path, read_only=True) as log:
        records = log.records(KEYS - 1)
        next(records)
        overwrite(path)
        compact(path, KEYS)
        assert {record.key for record in records} == EXPECTED


@READERS
def test_a_reader_continues_after_a_truncation(tmp_path: Path, read: Reader) -> None:
    path = tmp_path / "state-0"
    overwrite(path, is_sealed=False)
    with Log.open(path, read_only=True) as log:
        assert read(log) == EXPECTED
        with Log.open(path, config=CONFIG) as writer:
            writer.truncate_to(5)
            writer.append([(b"new", b"%d" % n) for n in range(3)])
        assert read(log) == {*sorted(EXPECTED)[:5], b"new"}
        assert log.log_end_offset == 8
        assert log.read(5)


@READERS
def test_a_second_read_has_the_records_that_were_appended(path: Path, read: Reader) -> None:
    with Log.open(path, config=CONFIG) as writer, Log.open(path, read_only=True) as log:
        assert read(log) == EXPECTED
        writer.append([(b"new", b"1")])
        assert read(log) == {*EXPECTED, b"new"}
        writer.append([(b"newer", b"1")])
        assert read(log) == {*EXPECTED, b"new", b"newer"}


@READERS
@pytest.mark.parametrize("leave", [shutil.rmtree, lambda path: path.rename(path.parent / "old-0")])
def test_a_deleted_directory_is_an_error_and_not_an_empty_log(
    path: Path, read: Reader, leave: Callable[[Path], object]
) -> None:
    with Log.open(path, read_only=True) as log:
        leave(path)
        for _ in range(2):
            with pytest.raises(StorageError, match="no longer exists"):
                read(log)


@READERS
def test_a_recreated_directory_is_another_log(path: Path, read: Reader) -> None:
    with Log.open(path, read_only=True) as log:
        shutil.rmtree(path)
        overwrite(path)
        for _ in range(2):
            with pytest.raises(StorageError, match="another log"):
                read(log)


@READERS
def test_a_recreated_topic_is_another_log(path: Path, read: Reader) -> None:
    metadata = path / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    with Log.open(path, read_only=True) as log:
        metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
        with pytest.raises(StorageError, match="another log"):
            read(log)


@READERS
def test_a_directory_that_was_restored_is_the_same_topic(path: Path, read: Reader) -> None:
    (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    with Log.open(path, read_only=True) as log:
        copy = shutil.copytree(path, path.parent / "copy")
        shutil.rmtree(path)
        os.rename(copy, path)
        assert read(log) == EXPECTED
