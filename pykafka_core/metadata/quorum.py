"""The metadata quorum: who decides that records are committed. Events in, commands out.

Theory of operation. The active controller proposes a batch and waits; the quorum answers with
`Committed` or `Rejected`, once. One batch is in flight at a time: requests that come meanwhile are
grouped into the next one, so the rate of the disk or network bounds the batches, not the requests.
`SingleVoter` is the small case of KRaft: leader since its start, in an epoch of its own, and a
record is committed when its own log says so.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

BATCH_BYTES_SOFT_MAX = 1024 * 1024
"""Requests are grouped into one batch up to this size."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""No batch may be larger: KRaft's limit (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``)."""

LEADER_CHANGE = 2
"""Type of the control record with which every epoch begins (``ControlRecordType``)."""


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


class SingleVoter:
    """A quorum of one.

    Args:
        node_id: This node, the leader.
        leader_epoch: Higher than every epoch in the log and in quorum-state.
        log_end_offset: Of the metadata log as it was found; everything in it is committed.
        new_token: Gives a token that is not open.
    """

    def __init__(
        self,
        *,
        node_id: int,
        leader_epoch: int,
        log_end_offset: int,
        new_token: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._leader_epoch = leader_epoch
        self._high_watermark = self._log_end_offset = log_end_offset
        self._new_token = new_token
        self._in_flight: Append | None = None

    @property
    def leader_id(self) -> int:
        """Always this node."""
        return self._node_id

    @property
    def leader_epoch(self) -> int:
        """The epoch of this start."""
        return self._leader_epoch

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records."""
        return self._high_watermark

    @property
    def log_end_offset(self) -> int:
        """Offset the next proposed record gets."""
        return self._log_end_offset

    def can_propose(self) -> bool:
        """Whether no batch is in flight."""
        return self._in_flight is None

    def begin_epoch(self) -> Append:
        """The epoch's first record: LeaderChangeMessage, as Kafka's leader writes it."""
        return self._send([leader_change(self._node_id)], b"\0\0\0\x02", LEADER_CHANGE)

    def propose(self, values: Sequence[bytes]) -> Append:
        """Send one atomic batch on its way; only while `can_propose`."""
        return self._send(values, None, None)

    def appended(self, token: int, error_code: int, offset: int) -> Committed | Rejected | None:
        """Take in the log's answer; ``None`` if it does not belong to the batch in flight."""
        sent = self._in_flight
        if sent is None or sent.token != token:
            return None
        self._in_flight = None
        if error_code:
            return Rejected(error_code)
        assert offset >= self._log_end_offset, "the log gives offsets in order"
        last = offset + len(sent.values) - 1
        self._high_watermark = self._log_end_offset = last + 1
        return Committed(offset, last)

    def _send(self, values: Sequence[bytes], key: bytes | None, control: int | None) -> Append:
        assert self._in_flight is None, "one batch is in flight at a time"
        assert values, "a batch holds at least one record"
        self._in_flight = Append(self._new_token(), self._leader_epoch, values, key, control)
        return self._in_flight


def leader_change(node_id: int) -> bytes:
    """LeaderChangeMessage version 0 of a single voter, who granted its own vote.

    int16 version, int32 leader, two compact arrays of {int32 voter, no tags}, no tags.
    """
    node = node_id.to_bytes(4, "big")
    voters = b"\x02" + node + b"\0"
    return b"\0\0" + node + voters + voters + b"\0"
