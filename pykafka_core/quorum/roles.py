"""The states of a replica, with Kafka's names: their responses and transitions.

A later epoch leads to Unattached or Follower in that epoch. Unless stated otherwise, every state
grants pre-votes (KIP-996) to replicas with an up-to-date log, and responds to Fetch with
NOT_LEADER_OR_FOLLOWER. An observer is Unattached or Follower; it neither votes nor starts
elections. Kafka's state Voted is `Unattached` with a vote in `ElectionState`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.values import OffsetAndEpoch, ReplicaKey, Voter

NEVER = 2**63 - 1
"""A deadline that is never reached."""


class Unattached(NamedTuple):
    """Without a known leader to fetch from.

    It votes once in an epoch without a leader, for a candidate with an up-to-date log. A known
    leader makes it a Follower, the timeout Prospective.
    """

    deadline_ms: int


class Prospective(NamedTuple):
    """Requests pre-votes.

    It votes like Unattached, and then becomes Unattached. A majority makes it a Candidate. If it is
    refused or times out, it follows the leader of its epoch, or is Unattached if there is none. A
    message of a leader that it knew before does not end it.
    """

    deadline_ms: int
    granted: frozenset[int]
    refused: frozenset[int]
    elections_lost: int
    """Consecutive elections lost as a candidate."""


class Candidate(NamedTuple):
    """Requests votes. Its own vote counts once it is on disk.

    It votes for no other candidate. A majority makes it the Leader. If it is refused or times out,
    it pauses and then becomes Prospective.
    """

    deadline_ms: int
    granted: frozenset[int]
    refused: frozenset[int]
    elections_lost: int
    is_backing_off: bool = False


class Progress(NamedTuple):
    """A leader's view of another voter, or of an observer."""

    replica: ReplicaKey
    synced_end: int
    """Fetch offset of its last Fetch whose log matched the leader's; -1 before that."""
    fetched_ms: int
    """Time of its last Fetch in this epoch, or of the start of the epoch."""
    heard_ms: int
    """Time of its last Fetch or BeginQuorumEpoch response in this epoch; -1 before that."""
    leaders_end: int = -1
    """End of the leader's log at its last Fetch; -1 before that."""
    caught_up_ms: int = -1
    """When it last had all records that the leader had at the time; -1 if never in this epoch."""


class InFlight(NamedTuple):
    """The uncommitted batch; for LeaderChange, ``records`` is empty. Both offsets are inclusive."""

    records: Sequence[Message]
    first_offset: int
    last_offset: int


class VoterSetRequest(NamedTuple):
    """The pending change of the voter set (KIP-853); there is at most one.

    Attributes:
        number: Number of the request; None if it was already responded to.
        voters: The set to append. None while the new voter's supported versions are requested.
        added: The new voter, if one is added.
        acks_when_committed: Whether to respond once the record is committed, or once it is
            appended.
        end: Exclusive end of the record; None before it is appended.
    """

    number: int | None
    deadline_ms: int
    voters: tuple[Voter, ...] | None
    added: Voter | None = None
    acks_when_committed: bool = True
    end: int | None = None


class WaitingFetch(NamedTuple):
    """A Fetch that waits until there is data for it."""

    deadline_ms: int
    number: int
    offset: int
    high_watermark: int


class Leader(NamedTuple):
    """Leads in its epoch, whose first record is at ``epoch_start``.

    It serves Fetch, and grants pre-votes until a record of its epoch is committed. It becomes
    Resigned after 1.5 fetch timeouts without a Fetch from a majority, if its disk is slower than
    those of a majority, on `Resign`, and once its removal from the voter set is committed.

    Attributes:
        voters: The other voters.
        observers: Other replicas that have fetched recently.
        described: Static voters with their own descriptions, which are not in the log.
        appending_since_ms: Since when appends are pending; `NEVER` if there are none.
        outpaced_ms: When other voters had synced the oldest pending append; `NEVER` before that.
    """

    epoch_start: int
    voters: tuple[Progress, ...]
    granted: frozenset[int]
    in_flight: InFlight | None
    waiting: tuple[WaitingFetch, ...] = ()
    observers: tuple[Progress, ...] = ()
    change: VoterSetRequest | None = None
    described: tuple[Voter, ...] = ()
    appending_since_ms: int = NEVER
    outpaced_ms: int = NEVER


class Download(NamedTuple):
    """A snapshot that a follower downloads from its leader, in parts."""

    snapshot_id: OffsetAndEpoch
    position: int = 0
    """Number of bytes that are stored."""
    size: int | None = None
    """Size of the snapshot, known after the first part."""


class Follower(NamedTuple):
    """Fetches from a leader.

    It does not vote, and grants pre-votes only until its first fetch succeeds. It becomes
    Prospective after a fetch timeout without a response, or earlier after EndQuorumEpoch.

    Attributes:
        has_fetched: Whether that leader responded in this epoch and has not resigned since.
        is_in_turn: Whether the leader resigned or ended: the deadline is then the time of this
            replica's election, not a timeout.
        leader_high_watermark: High watermark in the leader's last response.
        download: The snapshot that is downloaded instead of fetches; dropped on a state change.
        joins_ms: Earliest time of the next request to add or update this node in the voter set.
        is_described: Whether the leader has the description of this static voter.
    """

    leader_id: int
    deadline_ms: int
    has_fetched: bool = False
    is_in_turn: bool = False
    leader_high_watermark: int = 0
    download: Download | None = None
    joins_ms: int = 0
    is_described: bool = False


class Resigned(NamedTuple):
    """Was the leader of this epoch and cannot be again; it sends EndQuorumEpoch to other voters.

    It does not vote. After the timeout it becomes Prospective.
    """

    deadline_ms: int
    unaware: frozenset[int]
    preferred: tuple[ReplicaKey, ...]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned
