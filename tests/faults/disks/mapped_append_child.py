"""Scenarios of `test_mapped_append`, each in a separate process, so that a signal can be observed.

Usage: ``mapped_append_child.py SCENARIO DIRECTORY``. Every log has the durability ``os``, so that
small batches use the mapped window. A failed assertion is exit code 1, a signal a negative code.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow

from pykafka_core.errors import ForkedError, KafkaError, OffsetOutOfRangeError, StorageError
from pykafka_core.log import Log, LogConfig

NOW_MS = 1_700_000_000_000
KIB = bytes(range(256)) * 4


def open_log(directory: Path, *, read_only: bool = False) -> Log:
    config = LogConfig(segment_bytes=1 << 20)
    return Log.open(
        directory / "events-0", durability="os", config=config, clock=NOW_MS, read_only=read_only
    )


def append(log: Log, count: int) -> None:
    for _ in range(count):
        log.append([(b"%d" % log.log_end_offset, KIB)])


def check(log: Log) -> None:
    """Check that every record is present, at its offset."""
    offsets = [int(record.key or b"-1") for record in log if record.value == KIB]
    assert offsets == list(range(log.log_start_offset, log.log_end_offset))


def fill(ballast: Path, *, leave_bytes: int) -> None:
    space = os.statvfs(ballast.parent)
    available = space.f_bavail * space.f_frsize
    # ext2 needs a block of addresses for each 256 of its blocks.
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, available - available // 128 - leave_bytes)


def full_disk(directory: Path) -> None:
    """Appends fail with a typed error when space ends, anywhere in a window, and resume later."""
    ballast = directory / "ballast"
    log = open_log(directory)
    append(log, 100)
    for leave_bytes in (1_600_000, 200_000, 70_000, 30_000):
        fill(ballast, leave_bytes=leave_bytes)
        try:
            append(log, 5000)
        except StorageError:
            pass
        else:
            raise AssertionError("5000 KiB fit into a full disk")
        check(log)
        ballast.unlink()
        append(log, 1)
        log.delete_before(log.log_end_offset - 50)
        check(log)
    log.close()
    with open_log(directory) as again:
        check(again)


def foreign_truncate(directory: Path) -> None:
    """Another process truncates the file of the window: the next append fails, without a signal."""
    log = open_log(directory)
    append(log, 100)  # more than a young file's 64 KiB, which are written without a window
    os.truncate(directory / "events-0" / f"{0:020}.log", 4096)
    try:
        append(log, 1)
    except StorageError:
        pass
    else:
        raise AssertionError("appended to a file that a stranger cut")
    with suppress(KafkaError, StorageError):
        list(log)  # the remaining part
    with suppress(StorageError):
        log.close()
    with open_log(directory) as again:
        assert again.log_end_offset < 100
        append(again, 1)
        check(again)


def truncate_with_live_arrow(directory: Path) -> None:
    """Arrow columns outlive changes of their segments: truncation, deletion, new records, close."""
    log = open_log(directory)
    append(log, 3000)
    kept = [pyarrow.record_batch(batch) for batch in log.to_arrow()]
    log.truncate_to(700)
    for _ in range(500):
        log.append([(b"new", b"another value" * 50)])
    log.delete_before(600)
    log.close()
    offsets = [offset for batch in kept for offset in batch.column("offset").to_pylist()]
    keys = [key for batch in kept for key in batch.column("key").to_pylist()]
    assert offsets == list(range(3000)) == [int(key) for key in keys]
    assert all(value == KIB for batch in kept for value in batch.column("value").to_pylist())


def forked_reader(directory: Path) -> None:
    """A child reads while its parent changes the log; the log that the child inherited refuses."""
    log = open_log(directory)
    append(log, 200)
    alive, done = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done)
        os._exit(_read_until_closed(log, directory, alive))
    os.close(alive)
    for _ in range(30):
        append(log, 100)
        log.truncate_to(log.log_end_offset - 60)
        log.roll()
    check(log)
    log.close()
    os.close(done)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"the reader ended with {code}"


def _read_until_closed(inherited: Log, directory: Path, alive: int) -> int:
    os.set_blocking(alive, False)
    try:
        inherited.append([(b"0", KIB)])
        return 2
    except ForkedError:
        pass
    while True:
        try:
            with open_log(directory, read_only=True) as log:
                for record in log:
                    if record.value != KIB:
                        return 3
        except (OffsetOutOfRangeError, StorageError):
            pass  # the parent truncated between two reads
        try:
            if os.read(alive, 1) == b"":
                return 0
        except BlockingIOError:
            pass


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (full_disk, foreign_truncate, truncate_with_live_arrow, forked_reader)
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
