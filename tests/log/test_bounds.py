"""No bound of a log moves beyond its end, and no deleted record is restored silently.

`delete_before(99)` emptied a log that ended at 2, and `truncate_to(50)` raised no error there. An
empty `log-start-offset-checkpoint`, or one that was cut in its last number, restored deleted
records without a warning.
"""

from pathlib import Path

import pytest

from pykafka_core import errors
from pykafka_core.log import Log

START_FILE = "log-start-offset-checkpoint"


def log_of_20(path: Path, log_start_offset: int = 0) -> Path:
    with Log.open(path, durability="os") as log:
        log.append([(None, b"%d" % number) for number in range(20)])
        assert log.delete_before(log_start_offset) == log_start_offset
    return path


@pytest.mark.parametrize("offset", [21, 99, 1 << 62, -1])
@pytest.mark.parametrize("durability", ["os", "memory"])
def test_a_bound_outside_of_the_log_is_an_error_that_changes_nothing(
    tmp_path: Path, durability: str, offset: int
) -> None:
    with Log.open(tmp_path / "events-0", durability=durability) as log:
        log.append([(None, b"v")] * 20)
        for move in (log.delete_before, log.truncate_to):
            with pytest.raises(errors.OffsetOutOfRangeError, match=r"ends at 20$"):
                move(offset)
        assert [record.offset for record in log] == list(range(20))


def test_a_bound_may_be_the_end_of_the_log(tmp_path: Path) -> None:
    with Log.open(tmp_path / "events-0") as log:
        log.append([(None, b"v")] * 20)
        log.truncate_to(20)
        assert log.delete_before(20) == 20
        assert (log.log_start_offset, log.log_end_offset) == (20, 20)


@pytest.mark.parametrize(
    ("left", "reason"), [(0, "it is empty"), (-1, "last line is cut"), (-2, "last line is cut")]
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_checkpoint_without_its_end_never_brings_deleted_records_back(
    tmp_path: Path, left: int, reason: str, read_only: bool
) -> None:
    path = log_of_20(tmp_path / "events-0", log_start_offset=12)
    file = path / START_FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:left])
    for _ in range(2):
        with pytest.raises(errors.StorageError, match=f"{reason}.*restore or correct it"):
            Log.open(path, read_only=read_only)
    file.write_bytes(whole)
    with Log.open(path, read_only=read_only) as log:
        assert next(iter(log)).offset == 12
