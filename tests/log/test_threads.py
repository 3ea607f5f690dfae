"""Appends to one log from several threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pykafka_core.log import Log

THREADS = 4
APPENDS = 100


def test_an_append_with_durability_fsync_returns_once_it_is_synced(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log", durability="fsync") as log, ThreadPoolExecutor(THREADS) as pool:

        def append(number: int) -> int:
            """Append; return the number of records that may not be on disk when the call ends."""
            end = log.append([(b"key", b"%d" % number)]).last_offset + 1
            return max(0, end - log.statistics().synced_offset)

        unsynced = list(pool.map(append, range(THREADS * APPENDS)))
        assert log.log_end_offset == THREADS * APPENDS
    assert sum(unsynced) == 0
