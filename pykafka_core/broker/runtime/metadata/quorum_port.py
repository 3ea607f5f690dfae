"""The controller's interface to the metadata quorum, of one voter or of several replicas."""

from typing import NamedTuple, Never, Protocol, TypeAlias

from pykafka_core.metadata.image.replay import Replay
from pykafka_core.quorum.events import InDoubt
from pykafka_core.quorum.quorum import Committed, MetadataQuorum, Proposal, Rejected


class Replaced(NamedTuple):
    """A snapshot of the leader that replaces everything that was committed before."""

    replay: Replay
    """Its content; owned by the caller."""


Notice: TypeAlias = Committed | Replaced | Rejected | InDoubt
"""A committed batch or snapshot, or the end of a proposal that this node did not commit."""


class QuorumPort(Protocol):
    """The quorum as seen by its node. Exceptions of its methods end the broker."""

    @property
    def quorum(self) -> MetadataQuorum[Never, object]:
        """The quorum's current value."""

    @property
    def leads(self) -> bool:
        """Whether this node is the active controller."""

    @property
    def can_propose(self) -> bool:
        """Whether this node leads, all notices were taken, and no batch is in flight."""

    @property
    def has_notice(self) -> bool:
        """Whether `take_notice` returns a notice."""

    def propose(self, proposal: Proposal) -> None:
        """Propose a batch; a later notice is about its end."""

    def take_notice(self) -> Notice | None:
        """Return the end of a proposal, or the next committed batch of any proposer, in log
        order.
        """
