"""The metadata quorum: who decides that records are committed. Its events, its commands and its notices.

Theory of operation. A quorum is a pure value: ``quorum.handle(event)`` returns the next value and what
follows from the event: commands to carry out and notices to pass on. It has no clock, no disk and no
token. The active controller proposes a batch and waits for one notice, `Committed` or `Rejected`. One
batch is in flight at a time: requests that come meanwhile are grouped into the next one, so the rate of
the disk or network bounds the batches, not the requests.

There are two values. `SingleVoter` leads since its start and needs a log alone; the events and commands
of this file are all it has, and the broker runs it. `Replica` (``replica.py``) is one node of a quorum of
1 to 7 voters, or an observer of it; ``events.py`` has what it takes in and gives out besides.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.values import VoterEndpoint

BATCH_BYTES_SOFT_MAX = 1024 * 1024
"""Requests are grouped into one batch up to this size."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""No batch may be larger: KRaft's limit (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``)."""

BATCH_HEADER_SIZE = 61
RECORD_OVERHEAD_MAX = 20
"""Of a record beside its value, its numbers as long as they can be."""


def batch_size(values: Sequence[bytes]) -> int:
    """The most that ``values`` take as one batch of records."""
    return BATCH_HEADER_SIZE + sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)


# Events.


class BeginEpoch(NamedTuple):
    """This node leads from now on."""


class Proposal(NamedTuple):
    """The controller wants ``records`` committed, atomically; ``values`` are the same as bytes.

    Attributes:
        kraft_version: What ``kraft.version`` is raised to before them; None if it stays as it is.
    """

    records: Sequence[Message]
    values: Sequence[bytes]
    kraft_version: int | None = None


class Appended(NamedTuple):
    """The log has carried out the `Append` in flight, or not; ``offset`` is its first one."""

    error_code: int
    offset: int


Event = BeginEpoch | Proposal | Appended


# Commands and notices.


class Append(NamedTuple):
    """Command: append ``values`` as one batch to the metadata log. It completes as `Appended`.

    Control records have ``keys``, one for each value; ``control`` is the type of the first.
    """

    leader_epoch: int
    values: Sequence[bytes]
    keys: tuple[bytes, ...] | None = None
    control: int | None = None

    @property
    def records(self) -> list[tuple[bytes | None, bytes]]:
        """Keys and values."""
        if self.keys is None:
            return [(None, value) for value in self.values]
        return list(zip(self.keys, self.values, strict=True))


class Committed(NamedTuple):
    """Notice: a batch is part of the truth; both offsets are inclusive.

    ``records`` are empty for a batch of the quorum's own.
    """

    first_offset: int
    last_offset: int
    records: Sequence[Message]
    size: int = 0
    """Bytes of the batch, of one that was read from the log."""


class Rejected(NamedTuple):
    """Notice: what was proposed is not committed; nothing of it may be seen."""

    error_code: int


Notice = Committed | Rejected
Output = Append | Notice


EventT_contra = TypeVar("EventT_contra", contravariant=True)
OutputT_co = TypeVar("OutputT_co", covariant=True)


class VoterState(NamedTuple):
    """What a leader knows of another voter, or of an observer.

    Attributes:
        end: What it has synced, exclusive; -1 if it has not said so in this epoch.
        fetched_ago_ms: Since its last Fetch, or since the epoch began.
        caught_up_ago_ms: Since it had all that the leader had; None if that was not in this epoch.
    """

    node_id: int
    directory_id: bytes
    end: int
    fetched_ago_ms: int
    caught_up_ago_ms: int | None = None


class MetadataQuorum(Protocol[EventT_contra, OutputT_co]):
    """What the rest of the control plane needs of a quorum's value.

    Who runs a value names its events and outputs; who only reads it takes any: ``MetadataQuorum[Never, object]``.
    """

    @property
    def leader_id(self) -> int:
        """The leader this node knows of, or -1."""

    @property
    def leader_epoch(self) -> int:
        """The current epoch."""

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records."""

    @property
    def log_end_offset(self) -> int:
        """Offset the next proposed record gets."""

    @property
    def can_propose(self) -> bool:
        """Whether this node leads and no batch is in flight."""

    @property
    def kraft_version(self) -> int:
        """0 with static voters; 1 where the voters are in the log (KIP-853)."""

    def kraft_version_problem(self, level: int) -> str | None:
        """Why ``kraft.version`` cannot be raised to a supported level, None if it can.

        Only of a quorum that can propose.
        """

    @property
    def is_voter(self) -> bool:
        """Whether this node is in the voter set."""

    @property
    def other_voters(self) -> Sequence[VoterState]:
        """The other voters as this node knows them if it leads; none else."""

    @property
    def observers(self) -> Sequence[VoterState]:
        """Replicas that fetch and do not vote, as this node knows them if it leads; none else."""

    @property
    def voter_endpoints(self) -> Mapping[int, Sequence[VoterEndpoint]]:
        """Where voters listen, by node id, as the log has them; none of static voters."""

    def handle(self, event: EventT_contra) -> tuple[Self, Sequence[OutputT_co]]:
        """The value after an event, and what follows from it.

        Raises:
            AssertionError: The event does not fit the state; nothing changed.
        """
