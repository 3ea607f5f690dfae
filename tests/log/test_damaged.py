"""Damaged logs: no reader returns a part of the records as if they were all records."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from pykafka_core._records import RecordBatchReader
from pykafka_core.cli.files.repair import repair
from pykafka_core.errors import CorruptMessageError, DamagedLogError
from pykafka_core.log import Log, LogConfig

NOW_MS = 1_700_000_000_000
COUNT = 1000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with 1,000 records in batches of ten."""
    path = tmp_path_factory.mktemp("whole") / "events-0"
    with Log.open(path, config=LogConfig(segment_bytes=4096), clock=NOW_MS) as log:
        for first in range(0, COUNT, 10):
            log.append([(b"key", b"%d" % n, None, NOW_MS + n) for n in range(first, first + 10)])
    return path


def copied(whole: Path, folder: Path) -> Path:
    """Copy only the segments and indexes."""
    path = folder / "events-0"
    path.mkdir()
    for file in whole.iterdir():
        if file.suffix in (".log", ".index", ".timeindex"):
            shutil.copyfile(file, path / file.name)
    return path


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy with one changed byte in the batch of offset 200."""
    path = copied(whole, tmp_path)
    change_batch(path, 200)
    return path


def change_batch(path: Path, offset: int) -> None:
    """Change one byte in the batch that begins at an offset."""
    for segment in sorted(path.glob("*.log")):
        data = bytearray(segment.read_bytes())
        place = data.find(offset.to_bytes(8))
        if place >= 0:
            data[place + 70] ^= 1
            segment.write_bytes(data)


READERS: dict[str, Callable[[Log], object]] = {
    "iteration": list,
    "records": lambda log: list(log.records(150)),
    "arrow": lambda log: pa.table(log.to_arrow()),
    "views": lambda log: pa.table(log.to_arrow(views=True)),
    "read": lambda log: log.read(200),
    "time": lambda log: log.offset_for_timestamp(NOW_MS + 500),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
@pytest.mark.parametrize("read_only", [True, False])
def test_readers_raise_at_the_damage(
    damaged: Path, reader: str, durability: str, read_only: bool
) -> None:
    files = {file: file.read_bytes() for file in damaged.glob("*.log")}
    for _ in range(2):
        with Log.open(damaged, durability=durability, read_only=read_only) as log:
            with pytest.raises(DamagedLogError, match="valid batches follow") as raised:
                READERS[reader](log)
            assert (raised.value.offset, log.damaged_at) == (200, 200)
    assert {file: file.read_bytes() for file in damaged.glob("*.log")} == files


def test_the_records_before_the_damage_are_read_first(damaged: Path) -> None:
    with Log.open(damaged, read_only=True) as log:
        records = iter(log)
        assert [next(records).offset for _ in range(200)] == list(range(200))
        with pytest.raises(DamagedLogError):
            next(records)
        assert [record.offset for record in log.records(100, 200)] == list(range(100, 200))
        assert sum(len(batch) for batch in log.to_arrow(0, 200)) == 200
        assert log.offset_for_timestamp(NOW_MS + 100) == (100, NOW_MS + 100)


def test_a_reader_may_stop_at_the_damage(damaged: Path) -> None:
    with Log.open(damaged, read_only=True, on_damage="stop") as log:
        assert (len(list(log)), log.damaged_at) == (200, 200)
        assert pa.table(log.to_arrow()).num_rows == 200
        assert log.read(200) == b""
        assert log.offset_for_timestamp(NOW_MS + 500) is None
    with pytest.raises(ValueError, match="raise or stop"):
        Log.open(damaged, read_only=True, on_damage="skip")  # type: ignore[arg-type]


@pytest.mark.parametrize("on_damage", ["raise", "stop"])
def test_changed_batch_of_a_sealed_segment_raises_after_a_clean_stop(
    whole: Path, tmp_path: Path, on_damage: Literal["raise", "stop"]
) -> None:
    """The open does not read sealed segments, so there is no offset where readers could stop."""
    path = shutil.copytree(whole, tmp_path / "events-0")
    change_batch(path, 200)
    with Log.open(path, read_only=True, on_damage=on_damage) as log:
        assert log.damaged_at is None
        with pytest.raises(CorruptMessageError, match="at 200"):
            list(log)
        with pytest.raises(CorruptMessageError, match="at offset 200"):
            pa.table(log.to_arrow())


def test_a_log_without_its_beginning_is_not_read_from_the_rest(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "events-0")
    first = min(path.glob("*.log"))
    for file in path.glob(f"{first.stem}.*"):
        file.unlink()
    with Log.open(path, read_only=True) as log:
        with pytest.raises(DamagedLogError, match="gone from its beginning"):
            next(iter(log))
        start = log.log_start_offset
        assert [record.offset for record in log.records(start)] == list(range(start, COUNT))


@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_compacted_partition_that_was_copied_alone_is_whole(
    whole: Path, tmp_path: Path, durability: str, read_only: bool
) -> None:
    """Compaction leaves gaps between segments; the indexes have no entries for them."""
    path = copied(whole, tmp_path)
    segments = sorted(path.glob("*.log"))
    for file in path.glob(f"{segments[2].stem}.*"):
        file.unlink()
    left = [
        record.offset
        for segment in sorted(path.glob("*.log"))
        for record in RecordBatchReader(segment.read_bytes())
    ]
    assert len(left) < COUNT
    with Log.open(path, durability=durability, read_only=read_only) as log:
        assert [record.offset for record in log] == left
        assert any("compacted, or lost" in warning for warning in log.warnings)


def test_repair_leaves_a_compacted_copy_as_it_is(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied(whole, tmp_path)
    gone = sorted(path.glob("*.log"))[2]
    for file in path.glob(f"{gone.stem}.*"):
        file.unlink()
    repair(path, yes=False, keep=False, as_json=False)
    assert "1 partition is intact" in capsys.readouterr().out


def test_a_segment_that_an_index_remembers_is_missed(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path)
    sorted(path.glob("*.log"))[2].unlink()
    with Log.open(path, read_only=True) as log, pytest.raises(DamagedLogError, match="are gone"):
        list(log)
