"""The library door."""

import os
from pathlib import Path

import pytest

from pykafka_core import _core, errors
from pykafka_core.log import Log, LogConfig

NOW_MS = 1_700_000_000_000


def open_log(path: Path, **options: object) -> Log:
    config = LogConfig(segment_bytes=4096, index_interval_bytes=512)
    return Log.open(path, config=config, clock=NOW_MS, **options)  # type: ignore[arg-type]


def test_records_come_back_as_appended(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log:
        for number in range(100):
            appended = log.append([(b"key", b"%d" % number, [("h", None)], NOW_MS + number)])
            assert appended.first_offset == appended.last_offset == number
        records = list(log)
        assert [record.offset for record in records] == list(range(100))
        assert (records[7].key, records[7].value) == (b"key", b"7")
        assert records[7].headers == (("h", None),)
        assert [record.offset for record in log.records(10, 20)] == list(range(10, 20))
        assert log.offset_for_timestamp(NOW_MS + 50) == (50, NOW_MS + 50)
        assert sum(len(batch) for batch in log.to_arrow(5, 95)) == 90
        assert log.statistics().segments > 1


def test_ready_batches_are_taken_and_damaged_ones_refused(tmp_path: Path) -> None:
    batch = _core.build_batch([(None, b"v")], compression="lz4", timestamp_default=NOW_MS)
    with open_log(tmp_path / "events-0") as log:
        assert log.append(batch).log_end_offset == 1
        with pytest.raises(errors.CorruptMessageError):
            log.append(batch[:-1] + b"?")
        assert log.log_end_offset == 1
        assert len(log.read(0)) == len(batch)


def test_closed_log_refuses_and_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    with open_log(path, durability="os") as log:
        log.append([(None, b"v")] * 3)
    log.close()
    with pytest.raises(errors.ClosedError):
        log.append([(None, b"v")])
    with open_log(path) as log:
        assert log.append([(None, b"w")]).first_offset == 3
        log.truncate_to(3)
        assert log.delete_before(2) == 2
    with open_log(path) as log:
        assert (log.log_start_offset, log.log_end_offset) == (2, 3)
        with pytest.raises(errors.OffsetOutOfRangeError):
            log.read(1)


def test_writable_log_is_exclusive_and_a_reader_needs_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    with open_log(path) as log:
        log.append([(None, b"v")])
        with pytest.raises(errors.StorageLockedError):
            open_log(path)
        with open_log(path, read_only=True) as reader:
            assert [record.value for record in reader] == [b"v"]
            with pytest.raises(errors.StorageError):
                reader.append([(None, b"w")])


def test_partition_of_a_data_directory_takes_that_directorys_lock(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    with open_log(tmp_path / "events-0"):
        assert (tmp_path / ".lock").exists()
        with pytest.raises(errors.StorageLockedError):
            open_log(tmp_path / "other-0")


def test_fsync_syncs_each_append_and_os_does_not(tmp_path: Path) -> None:
    for durability, synced in [("fsync", 1), ("os", 0)]:
        with open_log(tmp_path / durability, durability=durability) as log:
            log.append([(None, b"v")])
            assert log.statistics().synced_offset == synced


def test_forked_child_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log:
        child = os.fork()
        if child == 0:
            try:
                log.append([(None, b"v")])
            except errors.ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert log.append([(None, b"v")]).first_offset == 0


def test_unknown_durability_and_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="durability"):
        Log.open(tmp_path, durability="sometimes")
    with pytest.raises(ValueError, match=r"segment\.bytes"):
        Log.open(tmp_path, config=LogConfig(segment_bytes=0))
