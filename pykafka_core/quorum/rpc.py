"""Messages between replicas: Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot.

They have no envelopes here: the driver checks and adds cluster id, topic and endpoints.
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
    """Requests a vote, or (``pre_vote``, KIP-996) asks whether one would be granted.

    Attributes:
        epoch: The candidate's epoch; for a pre-vote its current epoch, which is not increased.
        last: The end of the candidate's log.
    """

    candidate: ReplicaKey
    voter: ReplicaKey
    epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


class BeginQuorumEpoch(NamedTuple):
    """A new leader announces itself to a voter."""

    leader_id: int
    voter: ReplicaKey
    epoch: int


class EndQuorumEpoch(NamedTuple):
    """A leader resigns; ``preferred`` lists the voters that should start elections, best first."""

    leader_id: int
    epoch: int
    preferred: tuple[ReplicaKey, ...]


class Fetch(NamedTuple):
    """A follower or observer requests the records after its log, which also reports its synced end.

    Attributes:
        epoch: The epoch in which it follows the leader.
        offset: End of its log, all of which is on its disk.
        last_epoch: Epoch of the last record before ``offset``, 0 if there is no record.
        high_watermark: Its high watermark (KIP-1166): the leader responds if it has a higher one.
        wait_ms: Maximum time that the leader may wait for new data.
        bytes_max: Limit for records in the response; the first batch is returned whole in any case.
    """

    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    wait_ms: int = FETCH_WAIT_MS_MAX
    bytes_max: int = FETCH_BYTES_MAX


class FetchSnapshot(NamedTuple):
    """A follower or observer requests a part of a snapshot (KIP-630).

    Attributes:
        epoch: The epoch in which it follows the leader.
        position: Position of the part's first byte.
        bytes_max: Maximum size of the part.
    """

    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    bytes_max: int = FETCH_BYTES_MAX


class AddVoter(NamedTuple):
    """Requests the leader to add a voter (KIP-853).

    Attributes:
        timeout_ms: Maximum time for the leader.
        acks_when_committed: Whether the response waits until the record is committed, and not only
            until it is appended.
    """

    voter: Voter
    timeout_ms: int
    acks_when_committed: bool = True
    epoch: int = 0
    """Epoch of the sender, which is not sent."""


class RemoveVoter(NamedTuple):
    """Requests the leader to remove a voter."""

    replica: ReplicaKey
    epoch: int = 0
    """Epoch of the sender, which is not sent."""


class UpdateVoter(NamedTuple):
    """A voter corrects its endpoints and supported versions in the voter set.

    Attributes:
        epoch: The epoch in which it follows the leader.
    """

    voter: Voter
    epoch: int


class AskVersions(NamedTuple):
    """A leader requests a new voter's supported ``kraft.version``, by ApiVersions."""

    voter: Voter
    epoch: int
    """Epoch of the sender, which is not sent."""


VoterRequest = AddVoter | RemoveVoter | UpdateVoter
Body = Vote | BeginQuorumEpoch | EndQuorumEpoch | Fetch | FetchSnapshot | VoterRequest | AskVersions


class VoteReply(NamedTuple):
    """Response to Vote. Every response contains the sender's epoch and its leader, or -1."""

    error_code: int
    leader_id: int
    epoch: int
    granted: bool


class EpochReply(NamedTuple):
    """Response to BeginQuorumEpoch and EndQuorumEpoch."""

    error_code: int
    leader_id: int
    epoch: int


class FetchReply(NamedTuple):
    """Response to Fetch. At most one of ``diverging``, ``snapshot_id`` and ``batches`` is set.

    Attributes:
        high_watermark: -1 before the leader has committed a record of its epoch.
        diverging: The leader's last epoch that is not later than the fetch's, and the end of its
            records: the follower's log differs after it.
        snapshot_id: The snapshot to download, because the follower's log ends before the leader's
            starts.
        batches: Whole batches, the first at the fetch offset.
    """

    error_code: int
    leader_id: int
    epoch: int
    high_watermark: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    batches: tuple[Batch, ...] = ()


class SnapshotReply(NamedTuple):
    """Response to FetchSnapshot. Without an error it contains a part.

    Attributes:
        size: Size of the whole snapshot.
        position: Position of the part's first byte.
    """

    error_code: int
    leader_id: int
    epoch: int
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    part: bytes = b""


class VoterReply(NamedTuple):
    """Response to AddVoter, RemoveVoter and UpdateVoter; only that to UpdateVoter has the leader.

    Attributes:
        text: Reason of an error.
    """

    error_code: int
    leader_id: int = -1
    epoch: int = -1
    text: str = ""


class VersionsReply(NamedTuple):
    """Response to AskVersions. Of the common fields, only ``error_code`` is used.

    Attributes:
        versions: Lowest and highest ``kraft.version``; None if the node does not support any.
    """

    error_code: int
    leader_id: int = -1
    epoch: int = -1
    versions: tuple[int, int] | None = None


ReplyBody = VoteReply | EpochReply | FetchReply | SnapshotReply | VoterReply | VersionsReply
