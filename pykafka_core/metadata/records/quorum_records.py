"""The quorum's control records: the KRaft version and the voters (KIP-853).

They have no effect here. But Apache Kafka does not start on a directory whose newest snapshot lacks
them, so a snapshot keeps the last ones of the log that it replaces, byte for byte.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pykafka_core.metadata.records.codec import split_batches

KRAFT_VERSION_KEY = b"\0\0\0\x05"
"""Version 0 and the type of the control record (``ControlRecordType``)."""
VOTERS_KEY = b"\0\0\0\x06"

_ATTRIBUTES_AT = 21
_CONTROL = 1 << 5


class QuorumRecords(NamedTuple):
    """Values of the last records; None if there is none, as in a quorum with static voters."""

    kraft_version: bytes | None = None
    voters: bytes | None = None

    def after(self, batches: bytes) -> "QuorumRecords":
        """Return the state after the whole ``batches`` of a log or a snapshot."""
        found = self
        for key, value in _control_records(batches):
            if key == KRAFT_VERSION_KEY:
                found = found._replace(kraft_version=value)
            elif key == VOTERS_KEY:
                found = found._replace(voters=value)
        return found

    def records(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values, in the order in which Kafka writes them after the header."""
        pairs = (KRAFT_VERSION_KEY, self.kraft_version), (VOTERS_KEY, self.voters)
        return [(key, value) for key, value in pairs if value is not None]


def _control_records(batches: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    for batch in split_batches(batches):
        if not _may_hold_them(batch):
            continue
        from pykafka_core._records import RecordBatchReader  # imported late: it is rarely needed

        for record in RecordBatchReader(batch, control=True):
            yield record.key, record.value


def _may_hold_them(batch: bytes) -> bool:
    is_control = len(batch) > _ATTRIBUTES_AT + 1 and batch[_ATTRIBUTES_AT + 1] & _CONTROL
    return bool(is_control) and (KRAFT_VERSION_KEY in batch or VOTERS_KEY in batch)
