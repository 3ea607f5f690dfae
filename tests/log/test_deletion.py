"""Records that were deleted stay deleted."""

import os
from pathlib import Path

from pykafka_core.log import Log, LogConfig


def test_deleted_records_stay_deleted_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "events-0"
    child = os.fork()
    if child == 0:
        log = Log.open(path, config=LogConfig(segment_bytes=4096))
        for number in range(100):
            log.append([(None, b"%090d" % number)])
        log.delete_before(57)
        os._exit(0)  # like kill -9: nothing is closed
    assert os.waitpid(child, 0)[1] == 0
    with Log.open(path) as log:
        assert (log.log_start_offset, log.log_end_offset) == (57, 100)
        assert next(iter(log)).offset == 57
