"""Committed batches of the quorum, in log order.

Batches that this node proposed are in memory; those of other nodes, or of an earlier run, are read
from its log. The next read starts when everything that was read is taken, so the queue is bounded
even if the image is far behind. A snapshot that replaces the log also replaces all batches that
were not taken.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, cast

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.metadata.quorum_port import Replaced
from pykafka_core.broker.storage.snapshot_parts import LoadedSnapshot
from pykafka_core.errors import MetadataError, error_of
from pykafka_core.metadata.records.codec import decode_batches, split_batches
from pykafka_core.quorum.events import Advanced
from pykafka_core.quorum.quorum import Committed

if TYPE_CHECKING:
    from pykafka_core._core import RecordsRead

READ_BYTES = 64 * 1024
"""Maximum bytes of one read, or one batch."""


class CommittedLog:
    """The committed batches that follow an image.

    Args:
        core: Has the log.
        completions: Pending reads.
        next_offset: End of the image.
    """

    def __init__(
        self,
        core: Core,
        completions: Completions,
        next_offset: int,
    ) -> None:
        self._core = core
        self._completions = completions
        self._notices: deque[Committed | Advanced] = deque()
        self._ready: deque[Committed | Replaced] = deque()
        self._read_to = next_offset
        """End of the batches that are in ``_ready`` or were taken."""
        self._is_reading = False
        self._replacements = 0
        self._failure: MetadataError | None = None

    def __bool__(self) -> bool:
        """Return whether there are committed batches that were not taken."""
        return bool(self._ready or self._notices)

    @property
    def is_ready(self) -> bool:
        """Whether `take` returns a batch or raises."""
        return bool(self._ready) or self._failure is not None

    def note(self, notice: Committed | Advanced) -> None:
        """Add a notice of the replica."""
        self._notices.append(notice)
        self._prepare()

    def replace(self, loaded: LoadedSnapshot, end_offset: int) -> None:
        """Continue after a snapshot that replaced the log; the next `take` returns it."""
        self._replacements += 1
        self._is_reading = False
        self._notices.clear()
        self._ready.clear()
        self._ready.append(Replaced(loaded.replay))
        self._read_to = end_offset

    def take(self) -> Committed | Replaced | None:
        """Return the next batch or snapshot; None if there is none, or while it is read.

        Raises:
            MetadataError: It cannot be read, or holds unknown records.
        """
        if self._failure is not None:
            raise self._failure
        taken = self._ready.popleft() if self._ready else None
        self._prepare()
        return taken

    def _prepare(self) -> None:
        while self._notices and not self._ready and not self._is_reading:
            notice = self._notices[0]
            if notice.last_offset < self._read_to:
                self._notices.popleft()
            elif isinstance(notice, Committed):
                self._notices.popleft()
                self._ready.append(notice)
                self._read_to = notice.last_offset + 1
            else:
                self._read()

    def _read(self) -> None:
        self._is_reading = True
        token = self._completions.open(partial(self._on_read, self._replacements))
        self._core.read_records(token, METADATA_PARTITION, self._read_to, READ_BYTES)

    def _on_read(self, replacements: int, completed: Completed) -> None:
        if replacements != self._replacements:
            return  # a read of the replaced log
        self._is_reading = False
        try:
            self._add(completed)
        except MetadataError as error:
            self._failure = error
            return
        self._prepare()

    def _add(self, completed: Completed) -> None:
        place = f"the metadata log cannot be read at offset {self._read_to}"
        if completed.error_code:
            raise MetadataError(f"{place}: {error_of(completed.error_code).name}")
        read = cast("RecordsRead", completed.value)
        end = self._notices[0].last_offset + 1
        for batch in split_batches(read.records):
            records, next_offset = decode_batches(batch)
            if next_offset > end:
                break
            begin, self._read_to = self._read_to, next_offset
            messages = [record for at, record in records if at >= begin]
            self._ready.append(Committed(begin, next_offset - 1, messages, len(batch)))
        if not read.records:
            raise MetadataError(
                f"{place}: it ends before offset {end}, up to which it is committed"
            )
        if not self._ready:
            # The high watermark is within a batch: wait until the whole batch is committed.
            self._notices.popleft()
