"""The metadata quorum: who decides that records are committed. Events in, commands out.

Theory of operation. The active controller proposes a batch and waits; the quorum answers with
`Committed` or `Rejected`, once. One batch is in flight at a time: requests that come meanwhile are
grouped into the next one, so the rate of the disk or network bounds the batches, not the requests.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

BATCH_BYTES_SOFT_MAX = 1024 * 1024
"""Requests are grouped into one batch up to this size."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""No batch may be larger: KRaft's limit (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``)."""

BATCH_HEADER_SIZE = 61
RECORD_OVERHEAD_MAX = 20
"""Of a record beside its value, its numbers as long as they can be."""


def batch_size(values: Sequence[bytes]) -> int:
    """The most that ``values`` take as one batch of records."""
    return BATCH_HEADER_SIZE + sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)


class Append(NamedTuple):
    """Command: append ``values`` as one batch to the metadata log.

    ``control`` is the type of a control record, whose key stands in ``key``.
    """

    token: int
    leader_epoch: int
    values: Sequence[bytes]
    key: bytes | None = None
    control: int | None = None


class Committed(NamedTuple):
    """The batch in flight is part of the truth. Both offsets are inclusive."""

    first_offset: int
    last_offset: int


class Rejected(NamedTuple):
    """The batch in flight is not; nothing of it may be seen."""

    error_code: int


class MetadataQuorum(Protocol):
    """What the controller needs of a quorum."""

    @property
    def leader_id(self) -> int:
        """The leader this node knows of, or -1."""

    @property
    def leader_epoch(self) -> int:
        """The current epoch."""

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records."""

    @property
    def log_end_offset(self) -> int:
        """Offset the next proposed record gets."""

    def can_propose(self) -> bool:
        """Whether this node leads and no batch is in flight."""

    def propose(self, values: Sequence[bytes]) -> Append:
        """Send one atomic batch on its way; only while `can_propose`."""

    def appended(self, token: int, error_code: int, offset: int) -> Committed | Rejected | None:
        """Take in the log's answer; ``None`` if it does not belong to the batch in flight."""
