"""A quorum of one voter: the simple case of KRaft.

It leads from its start, in a new epoch, and a record is committed once its own log has it. A
`Replica` with one voter has the same result, after a vote for itself. This class exists because the
broker's start cannot wait for an election, and its driver only executes appends.
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
from pykafka_core.quorum.values import ReplicaKey, Voter, VoterEndpoint
from pykafka_core.types import ZERO_ID


class Raising(NamedTuple):
    """A control batch that puts the voter into the log.

    Attributes:
        values: The values of its two records, the version and the voters.
        proposal: The proposal to append after it.
    """

    kraft_version: int
    values: Sequence[bytes]
    proposal: Proposal


class InFlight(NamedTuple):
    """The append in flight: its records, empty for a control batch, and its number of offsets."""

    records: Sequence[Message]
    offsets_count: int
    raising: Raising | None = None


class Raised(NamedTuple):
    """The records that put the voter into the log, and the exclusive end of their batch."""

    end: int
    values: Sequence[bytes]


class SingleVoter(NamedTuple):
    """A quorum of one.

    Attributes:
        leader_id: This node.
        leader_epoch: Higher than all epochs in the log and in quorum-state.
        log_end_offset: All records below it are committed.
        in_flight: The append that the log has not completed.
        directory_id: Id of this node's directory.
        kraft_version: 1 once its voter is in the log.
        raised: The records that put it there; None if an earlier process did, or if it is 0.
    """

    leader_id: int
    leader_epoch: int
    log_end_offset: int
    in_flight: InFlight | None = None
    directory_id: bytes = ZERO_ID
    kraft_version: int = 0
    raised: Raised | None = None

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records; the batch in flight is not in the log yet."""
        return self.log_end_offset

    @property
    def can_propose(self) -> bool:
        """Whether no batch is in flight."""
        return self.in_flight is None

    @property
    def is_voter(self) -> bool:
        """True: it is the only voter."""
        return True

    @property
    def other_voters(self) -> Sequence[VoterState]:
        """Empty: there are no other voters."""
        return ()

    @property
    def observers(self) -> Sequence[VoterState]:
        """Empty: there are no observers."""
        return ()

    @property
    def voter_endpoints(self) -> Mapping[int, Sequence[VoterEndpoint]]:
        """Empty: it has no controller listener."""
        return {}

    def kraft_version_problem(self, _level: int) -> str | None:
        """Return None: there are no other voters that could be too old."""
        return None

    def handle(self, event: Event) -> tuple["SingleVoter", Sequence[Output]]:
        """Return the value after an event, and its outputs."""
        match event:
            case BeginEpoch():
                values = [leader_change(self.leader_id, [self.leader_id], [self.leader_id])]
                control = Append(self.leader_epoch, values, (LEADER_CHANGE_KEY,), LEADER_CHANGE)
                return self._sent(InFlight((), 1)), (control,)
            case Proposal(kraft_version=level) if level is not None and level > self.kraft_version:
                return self._raise(level, event)
            case Proposal(records, values):
                assert values, "a batch holds at least one record"
                sent = self._sent(InFlight(records, len(values)))
                return sent, (Append(self.leader_epoch, values),)
            case Appended(error_code, offset):
                return self._appended(error_code, offset)
            case _:
                assert_never(event)

    def _raise(self, level: int, proposal: Proposal) -> tuple["SingleVoter", Sequence[Output]]:
        """Put the voter into the log first, without endpoints: it has no controller listener."""
        # Imported here because few quorums are raised, and the import slows down the start.
        from pykafka_core.quorum.log.voters import append_voters

        own = Voter(ReplicaKey(self.leader_id, self.directory_id), (), (0, level))
        command = append_voters(self.leader_epoch, level, [own])
        raising = Raising(level, command.values, proposal)
        return self._sent(InFlight((), len(command.values), raising)), (command,)

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
        committed = Committed(offset, end - 1, sent.records)
        if sent.raising is None:
            return after, (committed,)
        level, values, proposal = sent.raising
        raised = after._replace(kraft_version=level, raised=Raised(end, values))
        proposed, outputs = raised.handle(proposal)
        return proposed, (committed, *outputs)
