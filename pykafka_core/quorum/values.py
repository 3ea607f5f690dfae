"""Values that the quorum's messages, commands and state share."""

from typing import Final, NamedTuple

FETCH_WAIT_MS_MAX: Final = 500
"""Kafka's value (``KafkaRaftClient.MAX_FETCH_WAIT_MS``)."""


PART_BYTES_MAX: Final = 1 << 20
"""Size of a snapshot's part in one response, and thus the limit of one read or write of it."""
SNAPSHOT_BYTES_MAX: Final = 512 << 20
"""Size of a snapshot: about five million partitions."""

FETCH_BYTES_MAX: Final = 1 << 20
"""Size of records, or of a snapshot's part, that a replica requests, as in Kafka from 4.3 on."""

LISTENERS_MAX: Final = 100
"""Listeners of a node or voter: every node stores them, and responses about nodes contain them."""


class ReplicaKey(NamedTuple):
    """A replica's identity (KIP-853): node id, and the id of the directory with its log and votes.

    A node whose disk was replaced has a new directory id: it is another replica, and not a voter.
    """

    node_id: int
    directory_id: bytes
    """16 bytes."""


class VoterEndpoint(NamedTuple):
    """Address of a voter's listener for other nodes."""

    listener: str
    """Name of the listener, in the voter's spelling."""
    host: str
    port: int


class Voter(NamedTuple):
    """A member of the voter set."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)
    """Lowest and highest supported ``kraft.version``."""


class VoterSet(NamedTuple):
    """The voters from an offset on.

    Attributes:
        end: Exclusive end of the batch with the set; 0 if the node was formatted with the set.
        kraft_version: 0 for static voters, which never change; from 1 on they are in the log
            (KIP-853).
    """

    end: int
    voters: tuple[Voter, ...]
    kraft_version: int = 0

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The replica keys of the voters."""
        return tuple(voter.key for voter in self.voters)


class VoterSetChange(NamedTuple):
    """Changes to the voter set by the control records of a batch; None for no change."""

    voters: tuple[Voter, ...] | None
    kraft_version: int | None


class OffsetAndEpoch(NamedTuple):
    """An exclusive end offset, and the leader epoch of the last record before it.

    As a snapshot id it describes the content of the snapshot; as a diverging epoch, the end of the
    leader's records of that epoch.
    """

    offset: int
    epoch: int

    @property
    def recency(self) -> tuple[int, int]:
        """Key to compare logs: the later epoch wins, then the longer log."""
        return self.epoch, self.offset


class ElectionState(NamedTuple):
    """The content of the file ``quorum-state``. A replica never returns to an earlier state."""

    epoch: int
    leader_id: int = -1
    """Leader of this epoch, or -1."""
    voted: ReplicaKey | None = None
    """Candidate that this replica voted for in this epoch."""


class QuorumConfig(NamedTuple):
    """Kafka's ``controller.quorum.*``: timeouts in milliseconds, and sizes of requested data."""

    election_timeout_ms: int = 1000
    """Minimum duration of an election; each election draws a random one of less than twice that."""
    election_backoff_ms_max: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = FETCH_WAIT_MS_MAX
    """Limit of a Fetch's wait: followers do not request more, and leaders respond by then."""
    fetch_bytes_max: int = FETCH_BYTES_MAX
    snapshot_bytes_max: int = FETCH_BYTES_MAX
    joins: bool = False
    """Whether a controller that is an observer requests to become a voter (KIP-853, KIP-1186)."""


class Batch(NamedTuple):
    """One record batch of the metadata log, which is written atomically."""

    base_offset: int
    leader_epoch: int
    records_count: int
    data: bytes
    """Its bytes in the log, which no state depends on."""
    change: VoterSetChange | None = None
    """Set for a batch of control records that changes the voter set."""

    @property
    def end_offset(self) -> int:
        """Exclusive end offset."""
        return self.base_offset + self.records_count
