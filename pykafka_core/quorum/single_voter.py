"""A quorum of one: the small case of KRaft.

It leads since its start, in an epoch of its own, and a record is committed when its own log says so. `Replica` of one
voter comes to the same, by way of a vote for itself; this one stays as long as the broker's start cannot wait for an
election, nor its driver carry out more than an append.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, assert_never

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.log.records import LEADER_CHANGE, LEADER_CHANGE_KEY, leader_change
from pykafka_core.quorum.quorum import (
    Append,
    Appended,
    BeginEpoch,
    Committed,
    Event,
    Output,
    Proposal,
    Rejected,
    VoterState,
)
from pykafka_core.quorum.values import VoterEndpoint


class InFlight(NamedTuple):
    """What the log was asked to append: the records, none for a control batch, and how many offsets it takes."""

    records: Sequence[Message]
    offsets_count: int


class SingleVoter(NamedTuple):
    """A quorum of one.

    Attributes:
        leader_id: This node.
        leader_epoch: Higher than every epoch in the log and in quorum-state.
        log_end_offset: Everything below it is committed.
        in_flight: What the log was asked for and has not answered.
    """

    leader_id: int
    leader_epoch: int
    log_end_offset: int
    in_flight: InFlight | None = None

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records: what is in flight is not in the log yet."""
        return self.log_end_offset

    @property
    def can_propose(self) -> bool:
        """Whether no batch is in flight."""
        return self.in_flight is None

    @property
    def kraft_version(self) -> int:
        """Its voter is not in the log."""
        return 0

    @property
    def is_voter(self) -> bool:
        """It is the only one."""
        return True

    @property
    def other_voters(self) -> Sequence[VoterState]:
        """None."""
        return ()

    @property
    def observers(self) -> Sequence[VoterState]:
        """None."""
        return ()

    @property
    def voter_endpoints(self) -> Mapping[int, Sequence[VoterEndpoint]]:
        """It has no listener of controllers."""
        return {}

    def handle(self, event: Event) -> tuple["SingleVoter", Sequence[Output]]:
        """The value after an event, and what follows from it."""
        match event:
            case BeginEpoch():
                values = [leader_change(self.leader_id, [self.leader_id], [self.leader_id])]
                control = Append(self.leader_epoch, values, (LEADER_CHANGE_KEY,), LEADER_CHANGE)
                return self._sent(InFlight((), 1)), (control,)
            case Proposal(records, values):
                assert values, "a batch holds at least one record"
                sent = self._sent(InFlight(records, len(values)))
                return sent, (Append(self.leader_epoch, values),)
            case Appended(error_code, offset):
                return self._appended(error_code, offset)
            case _:
                assert_never(event)

    def _sent(self, in_flight: InFlight) -> "SingleVoter":
        assert self.in_flight is None, "one batch is in flight at a time"
        return self._replace(in_flight=in_flight)

    def _appended(self, error_code: int, offset: int) -> tuple["SingleVoter", Sequence[Output]]:
        sent = self.in_flight
        assert sent is not None, "an append completes once"
        if error_code:
            return self._replace(in_flight=None), (Rejected(error_code),)
        assert offset >= self.log_end_offset, "the log gives offsets in order"
        end = offset + sent.offsets_count
        after = self._replace(in_flight=None, log_end_offset=end)
        return after, (Committed(offset, end - 1, sent.records),)
