"""Values of the quorum that its messages, its commands and its state share."""

from typing import Final, NamedTuple

FETCH_WAIT_MS_MAX: Final = 500
"""As Kafka's (``KafkaRaftClient.MAX_FETCH_WAIT_MS``)."""


PART_BYTES_MAX: Final = 1 << 20
"""Of a snapshot in one answer; a turn of the control thread reads, and writes, no more."""
SNAPSHOT_BYTES_MAX: Final = 512 << 20
"""Of a snapshot: some five million partitions."""

FETCH_BYTES_MAX: Final = 1 << 20
"""Of records, or of a snapshot, that a replica asks for at once, as in Kafka from 4.3 on."""

LISTENERS_MAX: Final = 100
"""Of a node as it registers, or becomes a voter: every node keeps them, and every answer about nodes has them."""


class ReplicaKey(NamedTuple):
    """Who a replica is (KIP-853): a node id, and the id of the directory that holds its log and its votes.

    A node whose disk was replaced comes back with another directory id: it is another replica, and no voter.
    """

    node_id: int
    directory_id: bytes
    """16 bytes."""


class VoterEndpoint(NamedTuple):
    """Where a voter listens for other nodes."""

    listener: str
    """Its name, as the voter has it."""
    host: str
    port: int


class Voter(NamedTuple):
    """A member of the voter set."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)
    """Lowest and highest ``kraft.version`` that it supports."""


class VoterSet(NamedTuple):
    """Who votes from an offset on.

    Attributes:
        end: Exclusive end of the batch that says so; 0 if no record does: it is what the node was formatted with.
        kraft_version: 0 with static voters, which never change; from 1 on they are in the log (KIP-853).
    """

    end: int
    voters: tuple[Voter, ...]
    kraft_version: int = 0

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The voters as replicas."""
        return tuple(voter.key for voter in self.voters)


class VoterSetChange(NamedTuple):
    """What the control records of one batch say of the voter set; None where they say nothing."""

    voters: tuple[Voter, ...] | None
    kraft_version: int | None


class OffsetAndEpoch(NamedTuple):
    """An exclusive end of records, and the leader epoch of the last one before it.

    As a snapshot's id it names what the snapshot holds; as a diverging epoch, where the leader's records of it end.
    """

    offset: int
    epoch: int

    @property
    def recency(self) -> tuple[int, int]:
        """What logs are compared by: the later epoch wins, then the longer log."""
        return self.epoch, self.offset


class ElectionState(NamedTuple):
    """What the file ``quorum-state`` holds: a replica never goes back behind it."""

    epoch: int
    leader_id: int = -1
    """Of this epoch, or -1."""
    voted: ReplicaKey | None = None
    """Who got this replica's vote in this epoch."""


class QuorumConfig(NamedTuple):
    """Kafka's ``controller.quorum.*``: timeouts in milliseconds, and the bytes asked for at once."""

    election_timeout_ms: int = 1000
    """Elections take this long at least, and less than twice as long; each draws its own."""
    election_backoff_ms_max: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = FETCH_WAIT_MS_MAX
    """A leader answers a Fetch at the latest by then, and a follower asks for no more."""
    fetch_bytes_max: int = FETCH_BYTES_MAX
    snapshot_bytes_max: int = FETCH_BYTES_MAX
    joins: bool = False
    """Whether an observer that is a controller has itself added to the voters (KIP-853, KIP-1186)."""


class Batch(NamedTuple):
    """One record batch of the metadata log; it is written whole or not at all."""

    base_offset: int
    leader_epoch: int
    records_count: int
    data: bytes
    """As it stands in the log; no state depends on it."""
    change: VoterSetChange | None = None
    """Of a batch of control records that changes the voter set."""

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.base_offset + self.records_count
