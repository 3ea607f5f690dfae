"""Writes of a replica to the metadata log: in order, at most one in progress.

The core may complete writes of different kinds in any order, but a replica relies on the order of
its commands. A write that failed because the disk was full changed nothing, and is retried as long
as the reserve can free space.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import assert_never

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.errors import KafkaStorageError, UnknownServerError
from pykafka_core.quorum.events import AppendFetched, Truncate, Truncated, Write
from pykafka_core.quorum.quorum import Append, Appended


class LogWrites:
    """The queue of writes.

    Args:
        core: Has the log.
        completions: The pending write.
        completed: Called for each write, in order.
        make_way: Frees some of the reserve if the disk is full; returns whether it did.
    """

    def __init__(
        self,
        core: Core,
        completions: Completions,
        completed: Callable[[Appended | Truncated], object],
        make_way: Callable[[], bool],
    ) -> None:
        self._core = core
        self._completions = completions
        self._completed = completed
        self._make_way = make_way
        self._waiting: deque[Write] = deque()
        self._is_busy = False

    def add(self, write: Write) -> None:
        """Queue a write after the earlier ones."""
        self._waiting.append(write)
        self._begin_next()

    def _begin_next(self) -> None:
        if self._is_busy or not self._waiting:
            return
        self._is_busy = True
        self._begin(self._waiting.popleft())

    def _begin(self, write: Write) -> None:
        core = self._core
        match write:
            case Append():
                records = write.records
                token = self._completions.open(partial(self._on_appended, write))
                core.append(
                    token, METADATA_PARTITION, write.leader_epoch, records, control=write.control
                )
            case AppendFetched(batches):
                token = self._completions.open(partial(self._on_appended, write))
                data = b"".join(batch.data for batch in batches)
                core.append_fetched(token, METADATA_PARTITION, batches[-1].leader_epoch, data)
            case Truncate(end_offset):

                def on_truncated(completed: Completed) -> None:
                    self._on_truncated(end_offset, completed)

                core.truncate(self._completions.open(on_truncated), METADATA_PARTITION, end_offset)
            case _:
                assert_never(write)

    def _on_appended(self, write: Write, completed: Completed) -> None:
        if completed.error_code == KafkaStorageError.code and self._make_way():
            self._begin(write)
            return
        self._end(Appended(completed.error_code, completed.offset))

    def _on_truncated(self, end_offset: int, completed: Completed) -> None:
        error_code = completed.error_code
        if not error_code and completed.offset != end_offset:
            error_code = UnknownServerError.code  # the offset was within a batch
        self._end(Truncated(error_code))

    def _end(self, done: Appended | Truncated) -> None:
        self._is_busy = False
        self._completed(done)
        self._begin_next()
