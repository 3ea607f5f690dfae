"""A quorum of one: the small case of KRaft.

It leads since its start, in an epoch of its own, and a record is committed when its own log says so.
"""

from collections.abc import Callable, Sequence

from pykafka_core.quorum.quorum import Append, Committed, Rejected

LEADER_CHANGE = 2
"""Type of the control record with which every epoch begins (``ControlRecordType``)."""


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
