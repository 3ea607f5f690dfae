"""The committed contents of the logs, read as they grow; the rules compare responses with them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from pykafka_core._records import RecordBatchReader
from pykafka_core.types import PartitionId
from tests.support.simulated.fake_core import CONTROL, TRANSACTIONAL


class Batch(NamedTuple):
    """One stored batch."""

    base_offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    records: list[tuple[bytes | None, bytes | None]]

    @property
    def is_commit(self) -> bool:
        """Whether a marker commits."""
        key = self.records[0][0]
        assert key is not None
        return key[3] == 1


def read_batch(data: bytes) -> Batch:
    """Return the batch, including control records."""
    attributes = int.from_bytes(data[21:23], "big")
    base = int.from_bytes(data[:8], "big")
    reader = RecordBatchReader(data, start=base, control=True)
    return Batch(
        base,
        int.from_bytes(data[43:51], "big", signed=True),
        int.from_bytes(data[51:53], "big", signed=True),
        bool(attributes & TRANSACTIONAL),
        bool(attributes & CONTROL),
        [(record.key, record.value) for record in reader],
    )


class Tail:
    """The unread committed batches of one log."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._seen = 0

    def advance(self, log: Any) -> Iterator[Batch]:
        """Yield each committed batch once."""
        assert log.high_watermark >= self.next_offset, "the high watermark never goes back"
        if log.high_watermark == self.next_offset:
            return
        for base, next_offset, data in log.batches:
            if base >= self.next_offset and next_offset <= log.high_watermark:
                yield read_batch(data)
        self.next_offset = log.high_watermark


class DataView:
    """A partition of clients under read_committed, from its markers alone.

    Attributes:
        fates: By offset: the value, and whether it was committed; None while that is undecided.
    """

    def __init__(self) -> None:
        self.tail = Tail()
        self.fates: dict[int, tuple[str, bool | None]] = {}
        self._open: defaultdict[int, list[int]] = defaultdict(list)

    def advance(self, log: Any) -> None:
        for batch in self.tail.advance(log):
            if batch.is_control:
                for offset in self._open.pop(batch.producer_id, ()):
                    self.fates[offset] = (self.fates[offset][0], batch.is_commit)
                continue
            for place, (_, value) in enumerate(batch.records, batch.base_offset):
                assert value is not None
                self.fates[place] = (value.decode(), None if batch.is_transactional else True)
                if batch.is_transactional:
                    self._open[batch.producer_id].append(place)

    @property
    def last_stable_offset(self) -> int:
        """The offset of the first open transaction, or the end."""
        return min([self.tail.next_offset, *(offsets[0] for offsets in self._open.values())])

    def visible(self, start: int) -> list[tuple[int, str]]:
        """Return the records that a read_committed consumer gets from ``start`` on."""
        stop = self.last_stable_offset
        return [
            (offset, value)
            for offset, (value, fate) in self.fates.items()
            if start <= offset < stop and fate
        ]


PartitionViews = dict[PartitionId, DataView]
