"""The states of a replica, by Kafka's names: what each answers and what leads out of it.

Whatever comes from a later epoch leads to Unattached, or Follower, in that epoch. Unless it is said otherwise, all
answer pre-votes (KIP-996) by whether the other's log is behind, and Fetch with NOT_LEADER_OR_FOLLOWER. An observer is
Unattached or Follower, and neither votes nor stands for election. Voted is `Unattached` with a vote in `ElectionState`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.values import OffsetAndEpoch, ReplicaKey, Voter

NEVER = 2**63 - 1
"""A deadline that does not come."""


class Unattached(NamedTuple):
    """Knows of no leader that it could fetch from.

    Votes once in an epoch that has no leader, for a log that is not behind. A leader that is heard of makes it a
    Follower, the timeout Prospective.
    """

    deadline_ms: int


class Prospective(NamedTuple):
    """Asks whether it would be voted for.

    Votes as Unattached does, which it is then. A majority makes it a Candidate; refused or late, it follows the
    leader that its epoch has, or is Unattached.
    """

    deadline_ms: int
    granted: frozenset[int]
    refused: frozenset[int]
    elections_lost: int
    """One after the other, as a candidate."""


class Candidate(NamedTuple):
    """Asks for votes; its own counts once it is on the disk.

    Votes for nobody else. A majority makes it the Leader; refused or late, it pauses and is Prospective then.
    """

    deadline_ms: int
    granted: frozenset[int]
    refused: frozenset[int]
    elections_lost: int
    is_backing_off: bool = False


class Progress(NamedTuple):
    """What a leader knows of another voter, or of an observer."""

    replica: ReplicaKey
    synced_end: int
    """What it said in a Fetch whose last record is the leader's too; -1 before that."""
    fetched_ms: int
    """Its last Fetch of this epoch, or the start of the epoch."""
    heard_ms: int
    """Its last Fetch, or answer to BeginQuorumEpoch, of this epoch; -1 before that."""
    leaders_end: int = -1
    """Of the leader's log at its last Fetch; -1 before that."""
    caught_up_ms: int = -1
    """When it had all that the leader had at the time; -1 if that was not in this epoch."""


class InFlight(NamedTuple):
    """The batch that is proposed and not committed; no records if it is LeaderChange. Both offsets are inclusive."""

    records: Sequence[Message]
    first_offset: int
    last_offset: int


class VoterSetRequest(NamedTuple):
    """A change of the voter set that is under way (KIP-853); one at a time.

    Attributes:
        number: Of the request that is to be answered; None if it was answered already.
        voters: The set to append. None while the new voter is asked what it supports.
        added: The new voter, if one is added.
        acks_when_committed: Whether it is answered once the record is committed, or once it is appended.
        end: Exclusive end of the record; None before it is appended.
    """

    number: int | None
    deadline_ms: int
    voters: tuple[Voter, ...] | None
    added: Voter | None = None
    acks_when_committed: bool = True
    end: int | None = None


class WaitingFetch(NamedTuple):
    """A Fetch that there is nothing to say to."""

    deadline_ms: int
    number: int
    offset: int
    high_watermark: int


class Leader(NamedTuple):
    """Leads in its epoch, whose first record is at ``epoch_start``.

    Answers Fetch; grants pre-votes until a record of its epoch is committed. Without a Fetch of a majority for 1.5
    fetch timeouts it has Resigned, and after `Resign`; and once it is committed that it is no voter any more.

    Attributes:
        voters: The others of the voter set.
        observers: Whoever else has fetched lately.
        described: Static voters as they described themselves; no log has that.
    """

    epoch_start: int
    voters: tuple[Progress, ...]
    granted: frozenset[int]
    in_flight: InFlight | None
    waiting: tuple[WaitingFetch, ...] = ()
    observers: tuple[Progress, ...] = ()
    change: VoterSetRequest | None = None
    described: tuple[Voter, ...] = ()


class Download(NamedTuple):
    """A snapshot that a follower gets from its leader, part by part."""

    snapshot_id: OffsetAndEpoch
    position: int = 0
    """Bytes that are stored."""
    size: int | None = None
    """Of all of it, known from the first part on."""


class Follower(NamedTuple):
    """Fetches from a leader.

    Votes for nobody; grants pre-votes until it has fetched. Without an answer in a fetch timeout, or sooner after
    EndQuorumEpoch, it is Prospective.

    Attributes:
        has_fetched: Whether that leader answered in this epoch, and has not said that it resigns.
        leader_high_watermark: As the leader had it when it answered last.
        download: What takes the place of fetches as long as it lasts; another state begins another one.
        joins_ms: Not to ask the leader before then to have this node in the voter set as it is now.
        is_described: Whether the leader has the description of a static voter.
    """

    leader_id: int
    deadline_ms: int
    has_fetched: bool = False
    leader_high_watermark: int = 0
    download: Download | None = None
    joins_ms: int = 0
    is_described: bool = False


class Resigned(NamedTuple):
    """Led in this epoch and never will again: tells the others so.

    Votes for nobody. After the timeout it is Prospective.
    """

    deadline_ms: int
    unaware: frozenset[int]
    preferred: tuple[ReplicaKey, ...]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned
