"""The metadata quorum, which commits records: its common events, commands and notices.

Theory of operation. A quorum is a pure value: ``quorum.handle(event)`` returns the next value and
the outputs of the event: commands to execute and notices to forward. It has no clock, no disk and
no thread. The active controller proposes a batch and waits for one notice, `Committed` or
`Rejected`. One batch is in flight at a time; requests that arrive in the meantime are grouped into
the next one. So disk and network limit the rate of batches, not the rate of requests.

There are two implementations. `SingleVoter` leads from its start and only needs a log; it uses just
the events and commands of this file, and the broker runs it. `Replica` (``replica.py``) is one node
of a quorum of 1 to 7 voters, or an observer; ``events.py`` has its other events and outputs.
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
"""Maximum size of a record in addition to its value."""


def batch_size(values: Sequence[bytes]) -> int:
    """Return the maximum size of ``values`` as one record batch."""
    return BATCH_HEADER_SIZE + sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)


# Events.


class BeginEpoch(NamedTuple):
    """This node becomes the leader."""


class Proposal(NamedTuple):
    """Records of the controller to commit atomically; ``values`` are the encoded ``records``.

    Attributes:
        kraft_version: Raise ``kraft.version`` to this level first; None for no change.
    """

    records: Sequence[Message]
    values: Sequence[bytes]
    kraft_version: int | None = None


class Appended(NamedTuple):
    """The `Append` in flight is completed, or failed; ``offset`` is its first offset."""

    error_code: int
    offset: int


Event = BeginEpoch | Proposal | Appended


# Commands and notices.


class Append(NamedTuple):
    """Command: append ``values`` as one batch to the metadata log. It completes as `Appended`.

    Control records have ``keys``, one for each value; ``control`` is the type of the first one.
    """

    leader_epoch: int
    values: Sequence[bytes]
    keys: tuple[bytes, ...] | None = None
    control: int | None = None

    @property
    def records(self) -> list[tuple[bytes | None, bytes]]:
        """Pairs of key and value."""
        if self.keys is None:
            return [(None, value) for value in self.values]
        return list(zip(self.keys, self.values, strict=True))


class Committed(NamedTuple):
    """Notice: a batch is committed; both offsets are inclusive.

    ``records`` is empty for a control batch of the quorum itself.
    """

    first_offset: int
    last_offset: int
    records: Sequence[Message]
    size: int = 0
    """Size of the batch in bytes, if it was read from the log."""


class Rejected(NamedTuple):
    """Notice: the proposal was not committed; its records must not become visible."""

    error_code: int


Notice = Committed | Rejected
Output = Append | Notice


EventT_contra = TypeVar("EventT_contra", contravariant=True)
OutputT_co = TypeVar("OutputT_co", covariant=True)


class VoterState(NamedTuple):
    """A leader's view of another voter, or of an observer.

    Attributes:
        end: Exclusive end of its synced log; -1 if it has not reported it in this epoch.
        fetched_ago_ms: Time since its last Fetch, or since the start of the epoch.
        caught_up_ago_ms: Time since it had all records of the leader; None if never in this epoch.
    """

    node_id: int
    directory_id: bytes
    end: int
    fetched_ago_ms: int
    caught_up_ago_ms: int | None = None


class MetadataQuorum(Protocol[EventT_contra, OutputT_co]):
    """The quorum's interface to the rest of the control plane.

    The driver of a value names its event and output types; readers accept any value:
    ``MetadataQuorum[Never, object]``.
    """

    @property
    def leader_id(self) -> int:
        """The known leader, or -1."""

    @property
    def leader_epoch(self) -> int:
        """The current epoch."""

    @property
    def high_watermark(self) -> int:
        """Exclusive end of the committed records."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next proposed record."""

    @property
    def can_propose(self) -> bool:
        """Whether this node leads and no batch is in flight."""

    @property
    def kraft_version(self) -> int:
        """0 with static voters; 1 if the voters are in the log (KIP-853)."""

    def kraft_version_problem(self, level: int) -> str | None:
        """Return why ``kraft.version`` cannot be raised to a supported level; None if it can.

        Only for a quorum that can propose.
        """

    @property
    def is_voter(self) -> bool:
        """Whether this node is in the voter set."""

    @property
    def other_voters(self) -> Sequence[VoterState]:
        """The leader's view of the other voters; empty if this node does not lead."""

    @property
    def observers(self) -> Sequence[VoterState]:
        """The leader's view of the observers; empty if this node does not lead."""

    @property
    def voter_endpoints(self) -> Mapping[int, Sequence[VoterEndpoint]]:
        """Endpoints of voters in the log, by node id; empty for static voters."""

    def handle(self, event: EventT_contra) -> tuple[Self, Sequence[OutputT_co]]:
        """Return the value after an event, and its outputs.

        Raises:
            AssertionError: The event does not fit the state; nothing changed.
        """
