"""A log with durability ``fsync`` whose process was killed, and which then loses files."""

import shutil
from pathlib import Path

import pytest

from pykafka_core.log import Log, LogConfig

NOW_MS = 1_700_000_000_000


def open_log(path: Path) -> Log:
    config = LogConfig(segment_bytes=4096, index_interval_bytes=512)
    return Log.open(path, durability="fsync", config=config, clock=NOW_MS)


def killed(path: Path, appends: int) -> int:
    """Create a log in the state after SIGKILL, by a copy of its open files; return its end."""
    with open_log(path.parent / "live") as log:
        for number in range(appends):
            log.append([(b"key", b"%d" % number * 100)])
        shutil.copytree(path.parent / "live", path)
        end: int = log.log_end_offset
    return end


@pytest.mark.parametrize(("appends", "lost"), [(100, 0), (100, 1), (100, -1), (1, 0)])
def test_a_segment_lost_with_all_its_files_is_named(
    tmp_path: Path, appends: int, lost: int
) -> None:
    path = tmp_path / "events-0"
    end = killed(path, appends)
    segments = sorted(path.glob("*.log"))
    assert (len(segments) > 3) == (appends > 1)
    for file in path.glob(f"{segments[lost].stem}.*"):
        file.unlink()
    for _ in range(2):
        with open_log(path) as log:
            assert log.damaged_at is not None, f"{log!r} of {end} records"
    with Log.open(path, read_only=True) as log:
        assert log.damaged_at is not None


def test_a_killed_log_that_lost_nothing_is_complete_and_accepts_records(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    end = killed(path, 100)
    with open_log(path) as log:
        assert (log.damaged_at, log.log_end_offset) == (None, end)
        log.truncate_to(end - 60)
        shutil.copytree(path, tmp_path / "truncated")
    with open_log(tmp_path / "truncated") as log:
        assert (log.damaged_at, log.log_end_offset) == (None, end - 60)
        assert log.append([(None, b"next")]).first_offset == end - 60
