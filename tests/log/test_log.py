"""The log as a library."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from pykafka_core import _core, errors
from pykafka_core.log import Log, LogConfig
from tests.support.patience import PATIENCE_S

NOW_MS = 1_700_000_000_000


def open_log(path: Path, **options: object) -> Log:
    config = LogConfig(segment_bytes=4096, index_interval_bytes=512)
    return Log.open(path, config=config, clock=NOW_MS, **options)  # type: ignore[arg-type]


def test_records_are_read_as_appended(tmp_path: Path) -> None:
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


def test_close_of_another_descriptor_does_not_release_the_lock(tmp_path: Path) -> None:
    """Programs copy or read a directory that they have open, with its lock file."""
    path = tmp_path / "events-0"
    with open_log(path) as log:
        shutil.copytree(path, tmp_path / "copy")
        (path / ".lock").open().close()
        assert opened_by_another_process(path) == "StorageLockedError"
        log.append([(None, b"v")])
    assert opened_by_another_process(path) == "1"


def opened_by_another_process(path: Path) -> str:
    """Return the log end offset of a log that another process opens, or the error."""
    program = (
        "import sys\n"
        "from pykafka_core.log import Log\n"
        "try:\n"
        "    with Log.open(sys.argv[1]) as log: print(log.log_end_offset)\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


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


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("read_only", [False, True])
def test_views_and_copies_have_equal_fields(tmp_path: Path, codec: str, read_only: bool) -> None:
    path = tmp_path / "events-0"
    records = [(None if n % 3 else b"key %d" % n, b"v" * (n % 40)) for n in range(200)]
    with open_log(path) as log:
        for start in range(0, 200, 5):
            log.append(
                _core.build_batch(
                    records[start : start + 5], compression=codec, timestamp_default=NOW_MS
                )
            )
        log.delete_before(7)
        with open_log(path, read_only=read_only) if read_only else nullcontext(log) as source:
            views = pa.table(source.to_arrow(13, 188, views=True))
            copies = pa.table(source.to_arrow(13, 188))
            looks: tuple[Callable[[int], object], ...] = (
                source.to_arrow,
                lambda start: source.to_arrow(start, views=True),
                lambda start: next(source.records(start)),
                source.read,
            )
            first = source.log_start_offset
            for start, look in product((-1, first - 1, 201), looks):
                said = f"{start} is out of range: log start offset {first}, log end offset 200"
                with pytest.raises(errors.OffsetOutOfRangeError, match=said):
                    look(start)
            for views_wanted in (False, True):
                assert not list(source.to_arrow(200, views=views_wanted))
                assert not list(source.to_arrow(150, 140, views=views_wanted))
    assert views.schema.field("value").type == pa.binary_view()
    assert views["offset"].to_pylist() == list(range(13, 188))
    for name in ("key", "value"):
        assert views[name].to_pylist() == copies[name].to_pylist()


def test_columns_of_many_pieces_are_whole_and_a_damaged_batch_is_an_error(tmp_path: Path) -> None:
    path, config = tmp_path / "events-0", LogConfig(segment_bytes=1 << 20)
    values = [b"%05d" % n * 2_000 for n in range(400)]
    with Log.open(path, config=config, clock=NOW_MS) as log:
        for start in range(0, 400, 8):
            log.append([(None, value) for value in values[start : start + 8]])
        batches = [pa.record_batch(batch) for batch in log.to_arrow(3, 397)]
    assert len(batches) > 3
    table = pa.Table.from_batches(batches)
    assert table["offset"].to_pylist() == list(range(3, 397))
    assert table["value"].to_pylist() == values[3:397]
    with (path / f"{0:020}.log").open("r+b") as file:
        file.seek(300_000)
        file.write(b"?")
    with Log.open(path, config=config, clock=NOW_MS) as log:
        with pytest.raises(errors.CorruptMessageError):
            log.to_arrow()
        assert sum(len(batch) for batch in log.to_arrow(200)) == 200


def test_views_outlive_truncation_retention_and_close(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    config = LogConfig(segment_bytes=4096, file_delete_delay_ms=0)
    values = [b"%06d" % n * 20 for n in range(200)]
    with Log.open(path, config=config, clock=NOW_MS) as log:
        for value in values:
            log.append([(None, value)])
        assert log.statistics().segments > 3
        table = pa.table(log.to_arrow(views=True))
        log.delete_before(60)
        log.truncate_to(100)
        assert log.append([(None, b"x" * 3000)]).first_offset == 100
        assert table["value"].to_pylist() == values
    # The next one that opens it does not know the mappings.
    with Log.open(path, config=config, clock=NOW_MS) as log:
        log.truncate_to(70)
        log.roll()
    assert table["value"].to_pylist() == values


def test_interval_syncs_without_another_append(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0", durability="interval") as log:
        for end in (1, 2):
            log.append([(None, b"v")])
            deadline = time.monotonic() + PATIENCE_S
            while (synced := log.statistics().synced_offset) < end:
                assert time.monotonic() < deadline, f"synced up to {synced}, not {end}"


def test_producer_errors_have_their_own_classes(tmp_path: Path) -> None:
    def batch(producer_epoch: int = 3, base_sequence: int = 0) -> bytes:
        return _core.build_batch(
            [(None, b"v")],
            producer_id=7,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            timestamp_default=NOW_MS,
        )

    with open_log(tmp_path / "events-0") as log:
        log.append(batch())
        assert log.append(batch()).duplicate
        with pytest.raises(errors.OutOfOrderSequenceNumberError):
            log.append(batch(base_sequence=5))
        with pytest.raises(errors.InvalidProducerEpochError):
            log.append(batch(producer_epoch=2, base_sequence=1))


def many_batches(path: Path) -> bytes:
    """Return three batches of two records each, as from `Log.read`."""
    with open_log(path, durability="memory") as log:
        for number in range(3):
            log.append([(b"key", b"%d" % number), (None, b"second")])
        return log.read(0)


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview, pa.py_buffer])
def test_all_batches_of_a_buffer_are_appended(
    tmp_path: Path, holder: Callable[[bytes], bytes]
) -> None:
    batches = many_batches(tmp_path / "source")
    with open_log(tmp_path / "events-0") as log:
        log.append([(None, b"before")])
        assert log.append(holder(batches)) == (1, 6, 7, False)
        assert [record.offset for record in log] == list(range(7))
        assert [record.value for record in log.records(1)][::2] == [b"0", b"1", b"2"]
        # Batches from the middle of another log are accepted, too.
        assert log.append(log.read(5)) == (7, 8, 9, False)
        assert [record.value for record in log.records(7)] == [b"2", b"second"]
    with open_log(tmp_path / "events-0", read_only=True) as log:
        assert [record.offset for record in log] == list(range(9))


def test_batches_are_appended_all_or_none(tmp_path: Path) -> None:
    batches = many_batches(tmp_path / "source")
    with open_log(tmp_path / "events-0") as log:
        for damaged in (
            batches[:-1],
            batches[:-1] + b"?",
            batches + b"?" * 20,
            batches + b"\0",
            b"",
        ):
            with pytest.raises(errors.CorruptMessageError):
                log.append(damaged)
        with pytest.raises(errors.RecordListTooLargeError):
            log.append(batches * 20)
        assert log.log_end_offset == 0
        assert log.append(batches).log_end_offset == 6


@pytest.mark.parametrize("codec", ["producer", "lz4"])
def test_several_batches_of_one_producer_are_judged_in_their_order(
    tmp_path: Path, codec: str
) -> None:
    def batch(base_sequence: int) -> bytes:
        records = [(None, b"v"), (None, b"w")]
        return _core.build_batch(
            records,
            producer_id=7,
            producer_epoch=0,
            base_sequence=base_sequence,
            timestamp_default=NOW_MS,
        )

    config = LogConfig(compression_type=codec)
    with Log.open(tmp_path / "events-0", config=config, clock=NOW_MS) as log:
        with pytest.raises(errors.OutOfOrderSequenceNumberError):
            log.append(batch(0) + batch(4))
        assert log.append(batch(0) + batch(2) + batch(4)) == (0, 5, 6, False)
        assert log.append(batch(2) + batch(4)) == (2, 5, 6, True)
        with pytest.raises(errors.DuplicateSequenceNumberError):
            log.append(batch(4) + batch(6))
        assert log.append(batch(6)).log_end_offset == 8
        assert len(list(log)) == 8


def test_records_without_a_time_get_the_clocks(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log:
        log.append([(None, b"old", [], NOW_MS - 5), (None, b"now")])
        assert [record.timestamp for record in log] == [NOW_MS - 5, NOW_MS]
        assert log.offset_for_timestamp(NOW_MS) == (1, NOW_MS)


def test_log_in_memory_is_bounded_leaves_no_file_and_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    with Log.open(path, durability="memory", memory_max=1 << 20) as log:
        for number in range(300):
            log.append([(b"%d" % number, b"v" * 500)])
        assert len(list(log)) == sum(map(len, log.to_arrow(views=True))) == 300
        log.truncate_to(200)
        many = [[(None, os.urandom(5_000))]] * 300
        with pytest.raises(errors.StorageError, match="no space"):
            list(map(log.append, many))
        assert len(list(log.records(0, 200))) == 200
        log.truncate_to(200)
        assert log.append([(None, b"there is space again")]).first_offset == 200
        with pytest.raises(errors.StorageError, match="no space"):
            list(map(log.append, many))
    assert not list(tmp_path.iterdir())
    with Log.open(path, durability="memory") as log:
        assert log.log_end_offset == 0
    with pytest.raises(ValueError, match="read_only"):
        Log.open(path, durability="memory", read_only=True)


@pytest.mark.parametrize("by_size", [True, False])
def test_retention_that_was_asked_for_is_enforced_at_each_roll(
    tmp_path: Path, by_size: bool
) -> None:
    config = LogConfig(
        segment_bytes=4_096,
        file_delete_delay_ms=0,
        retention_bytes=8_192 if by_size else None,
        retention_ms=None if by_size else 60_000,
    )
    old_ms = NOW_MS - 3_600_000
    with Log.open(tmp_path / "events-0", config=config, clock=NOW_MS) as log:
        for _ in range(50):
            log.append([(None, b"v" * 1_000, [], old_ms)])
        assert 0 < log.log_start_offset < log.log_end_offset == 50
        assert log.statistics().size_bytes < 16_384
        log.roll()
        assert log.enforce_retention() == (log.log_start_offset if by_size else 50)
        assert sum(1 for _ in (tmp_path / "events-0").glob("*.log*")) <= 4


def test_without_retention_nothing_goes_for_its_age(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log:
        for _ in range(20):
            log.append([(None, b"v" * 1_000, [], 1_000)])
        assert log.statistics().segments > 3
        assert log.enforce_retention() == 0


def test_negative_number_of_bytes_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path / "events-0") as log, pytest.raises(ValueError, match="-5"):
        log.read(0, -5)


def test_findings_of_recovery_are_warnings_of_the_log(tmp_path: Path) -> None:
    with Log.open(tmp_path / "events-0") as log:
        log.append([(b"key", b"value")])
        assert log.warnings == ()
    (tmp_path / "events-0" / "00000000000000100000.log").touch()
    with Log.open(tmp_path / "events-0") as log:
        assert (log.damaged_at, log.log_end_offset) == (None, 1)
        assert "does not adjoin the log end 1" in log.warnings[0]
