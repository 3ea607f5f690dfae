"""What replicas say to each other: Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot.

They are without their envelopes here.

Cluster id, topic and endpoints are the driver's to check and to fill in.
"""

from typing import NamedTuple

from pykafka_core.quorum.values import (
    FETCH_WAIT_MS_MAX,
    PART_BYTES_MAX,
    Batch,
    OffsetAndEpoch,
    ReplicaKey,
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
    """

    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    wait_ms: int = FETCH_WAIT_MS_MAX


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
    bytes_max: int = PART_BYTES_MAX


Body = Vote | BeginQuorumEpoch | EndQuorumEpoch | Fetch | FetchSnapshot


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


AnswerBody = VoteAnswer | EpochAnswer | FetchAnswer | SnapshotAnswer
