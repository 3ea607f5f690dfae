"""What replicas say to each other: Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot.

They are without their envelopes here.

Cluster id, topic and endpoints are the driver's to check and to fill in.
"""

from typing import NamedTuple

from pykafka_core.quorum.values import (
    FETCH_BYTES_MAX,
    FETCH_WAIT_MS_MAX,
    Batch,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
)


class Vote(NamedTuple):
    """Asks for a vote, or (``pre_vote``, KIP-996) whether one would be given.

    Attributes:
        epoch: The candidate's; a pre-vote asks in the epoch that it is in, without raising it.
        last: The end of the candidate's log.
    """

    candidate: ReplicaKey
    voter: ReplicaKey
    epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


class BeginQuorumEpoch(NamedTuple):
    """The leader tells a voter that it leads."""

    leader_id: int
    voter: ReplicaKey
    epoch: int


class EndQuorumEpoch(NamedTuple):
    """A leader tells a voter that it leads no more, and who should stand for election, the best first."""

    leader_id: int
    epoch: int
    preferred: tuple[ReplicaKey, ...]


class Fetch(NamedTuple):
    """A follower or observer asks for what comes after its log; so it also says how far it has synced.

    Attributes:
        epoch: The one in which it follows the leader.
        offset: End of its log, all of it on its disk.
        last_epoch: Of the last record before ``offset``, 0 for none.
        high_watermark: The one it knows (KIP-1166): a later one is worth an answer without records.
        wait_ms: How long the leader may wait for something to answer.
        bytes_max: Of the records in the answer; the first batch comes whole even if it is larger.
    """

    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    wait_ms: int = FETCH_WAIT_MS_MAX
    bytes_max: int = FETCH_BYTES_MAX


class FetchSnapshot(NamedTuple):
    """A follower or observer asks for a part of a snapshot (KIP-630).

    Attributes:
        epoch: The one in which it follows the leader.
        position: Of the part's first byte.
        bytes_max: Of the part.
    """

    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    bytes_max: int = FETCH_BYTES_MAX


class AddVoter(NamedTuple):
    """Asks the leader for another voter (KIP-853).

    Attributes:
        timeout_ms: How long the leader may take.
        acks_when_committed: Whether the answer waits until the record is committed, not only until it is appended.
    """

    voter: Voter
    timeout_ms: int
    acks_when_committed: bool = True
    epoch: int = 0
    """Of the asker, which the leader does not hear of."""


class RemoveVoter(NamedTuple):
    """Asks the leader to go on without a voter."""

    replica: ReplicaKey
    epoch: int = 0
    """Of the asker, which the leader does not hear of."""


class UpdateVoter(NamedTuple):
    """A voter tells the leader where it listens and what it supports, where the voter set has something else.

    Attributes:
        epoch: The one in which it follows the leader.
    """

    voter: Voter
    epoch: int


class AskVersions(NamedTuple):
    """A leader asks a node that is to be a voter which ``kraft.version`` it supports, by ApiVersions."""

    voter: Voter
    epoch: int
    """Of the asker, which the node does not hear of."""


VoterRequest = AddVoter | RemoveVoter | UpdateVoter
Body = Vote | BeginQuorumEpoch | EndQuorumEpoch | Fetch | FetchSnapshot | VoterRequest | AskVersions


class VoteAnswer(NamedTuple):
    """Every answer says which leader, or -1, in which epoch its sender knows."""

    error_code: int
    leader_id: int
    epoch: int
    granted: bool


class EpochAnswer(NamedTuple):
    """To BeginQuorumEpoch and EndQuorumEpoch."""

    error_code: int
    leader_id: int
    epoch: int


class FetchAnswer(NamedTuple):
    """At most one of ``diverging``, ``snapshot_id`` and ``batches`` is there.

    Attributes:
        high_watermark: -1 before the leader has committed a record of its epoch.
        diverging: Where the leader's records of the epoch end that is not later than the fetch's last one:
            the follower's log differs behind it.
        snapshot_id: What to get by FetchSnapshot, as the leader's log begins later than the follower's ends.
        batches: Whole ones, the first at the fetch's offset.
    """

    error_code: int
    leader_id: int
    epoch: int
    high_watermark: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    batches: tuple[Batch, ...] = ()


class SnapshotAnswer(NamedTuple):
    """To FetchSnapshot. Without an error it has a part.

    Attributes:
        size: Bytes of the whole snapshot.
        position: Of the part's first byte.
    """

    error_code: int
    leader_id: int
    epoch: int
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    part: bytes = b""


class VoterAnswer(NamedTuple):
    """To AddVoter, RemoveVoter and UpdateVoter; only the last one's says who leads.

    Attributes:
        text: Why it was refused.
    """

    error_code: int
    leader_id: int = -1
    epoch: int = -1
    text: str = ""


class VersionsAnswer(NamedTuple):
    """To AskVersions. The first three fields are those of every answer; this one says nothing of leaders.

    Attributes:
        versions: Lowest and highest ``kraft.version``; None if the node does not know of any.
    """

    error_code: int
    leader_id: int = -1
    epoch: int = -1
    versions: tuple[int, int] | None = None


AnswerBody = VoteAnswer | EpochAnswer | FetchAnswer | SnapshotAnswer | VoterAnswer | VersionsAnswer
