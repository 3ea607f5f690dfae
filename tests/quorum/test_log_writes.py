"""Writes to the metadata log run in order, and are retried after the reserve releases space."""

from typing import cast

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.quorum.log_writes import LogWrites
from pykafka_core.errors import KafkaStorageError
from pykafka_core.quorum.events import AppendFetched
from pykafka_core.quorum.quorum import Appended
from pykafka_core.quorum.values import Batch

FULL = Completed(KafkaStorageError.code, -1)


class Commands:
    """A fake core that records the appended batches."""

    def __init__(self) -> None:
        self.appended: list[tuple[int, bytes]] = []

    def append_fetched(self, token: int, _partition: object, _epoch: int, data: bytes) -> None:
        self.appended.append((token, data))


def fetched(offset: int) -> AppendFetched:
    return AppendFetched((Batch(offset, 1, 1, b"%d" % offset),))


def test_write_to_a_full_disk_is_retried_while_the_reserve_releases_space() -> None:
    commands, completions, done, steps = Commands(), Completions(), list[object](), [True, False]
    writes = LogWrites(cast("Core", commands), completions, done.append, lambda: steps.pop(0))
    writes.add(fetched(3))
    writes.add(fetched(4))
    completions.complete(commands.appended[-1][0], FULL)
    assert [data for _, data in commands.appended] == [b"3", b"3"]
    assert done == []
    completions.complete(commands.appended[-1][0], Completed(0, 3))
    assert done == [Appended(0, 3)]
    assert commands.appended[-1][1] == b"4"
    completions.complete(commands.appended[-1][0], FULL)
    assert done[1:] == [Appended(KafkaStorageError.code, -1)]


def test_other_errors_than_a_full_disk_release_no_reserve() -> None:
    commands, completions, done = Commands(), Completions(), list[object]()
    writes = LogWrites(cast("Core", commands), completions, done.append, lambda: not done)
    writes.add(fetched(3))
    completions.complete(commands.appended[-1][0], Completed(-1, -1))
    assert done == [Appended(-1, -1)]
