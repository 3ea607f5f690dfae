"""What the quorum has committed, batch by batch in the order of the log.

What this node proposed is at hand; what others wrote, or an earlier run, is read from its log. More is read once all
that was read is taken, so what waits is bounded however far the image is behind. A snapshot that takes the place of the
log stands for all that was not taken yet.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, cast

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.metadata.quorum_port import Replaced
from pykafka_core.broker.seam.metadata_log import METADATA_PARTITION
from pykafka_core.broker.storage.snapshot_parts import LoadedSnapshot
from pykafka_core.errors import MetadataError, error_of
from pykafka_core.metadata.records.codec import decode_batches, split_batches
from pykafka_core.quorum.events import Advanced
from pykafka_core.quorum.quorum import Committed

if TYPE_CHECKING:
    from pykafka_core._core import RecordsRead

READ_BYTES = 64 * 1024
"""At a time, or one batch."""


class CommittedLog:
    """The committed batches behind an image.

    Args:
        core: Has the log.
        completions: Where reads of it are waited for.
        next_offset: End of what the image holds.
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
        """End of what is in ``_ready``, or was taken."""
        self._is_reading = False
        self._replacements = 0
        self._failure: MetadataError | None = None

    def __bool__(self) -> bool:
        """Whether something is committed that was not taken."""
        return bool(self._ready or self._notices)

    @property
    def is_ready(self) -> bool:
        """Whether `take` has something to give, or to raise."""
        return bool(self._ready) or self._failure is not None

    def note(self, notice: Committed | Advanced) -> None:
        """Take in what the replica says."""
        self._notices.append(notice)
        self._prepare()

    def replace(self, loaded: LoadedSnapshot, end_offset: int) -> None:
        """Go on behind a snapshot that took the place of the log: it is the next to be taken."""
        self._replacements += 1
        self._is_reading = False
        self._notices.clear()
        self._ready.clear()
        self._ready.append(Replaced(loaded.replay))
        self._read_to = end_offset

    def take(self) -> Committed | Replaced | None:
        """The next batch, or a snapshot; None if there is none, or it is being read.

        Raises:
            MetadataError: It cannot be read, or holds what this version does not know.
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
            return  # of a log that is not there any more
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
        read = cast("RecordsRead", completed.answer)
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
            # A voter named an offset within a batch: it is told of once all of the batch is committed.
            self._notices.popleft()
