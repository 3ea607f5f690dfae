"""The controller's interface to the metadata quorum, of one voter or of several replicas."""

from collections.abc import Callable
from typing import NamedTuple, Never, Protocol

from pykafka_core.metadata.image.replay import Replay
from pykafka_core.quorum.quorum import Committed, MetadataQuorum, Proposal


class Replaced(NamedTuple):
    """A snapshot of the leader that replaces everything that was committed before."""

    replay: Replay
    """Its content; owned by the caller."""


def _nothing(*_: object) -> None:
    """Ignore the call."""


class ProposalEnd:
    """Callbacks for a proposal that is not committed. The controller sets them."""

    def __init__(self) -> None:
        self.rejected: Callable[[int], object] = _nothing
        """Called with an error code: the proposal must have no visible effect."""
        self.in_doubt: Callable[[], object] = _nothing
        """Called when another leader may or may not commit it."""


class QuorumPort(Protocol):
    """The quorum as seen by its node. Exceptions of its methods end the broker."""

    @property
    def quorum(self) -> MetadataQuorum[Never, object]:
        """The quorum's current value."""

    @property
    def can_propose(self) -> bool:
        """Whether this node leads, all committed batches were taken, and no batch is in flight."""

    @property
    def has_committed(self) -> bool:
        """Whether `take_committed` returns a batch."""

    @property
    def proposal_end(self) -> ProposalEnd:
        """Callbacks for a proposal that is not committed."""

    def propose(self, proposal: Proposal) -> None:
        """Propose a batch; it is later among the committed ones, or one of the callbacks is
        called.
        """

    def take_committed(self) -> Committed | Replaced | None:
        """Return the next committed batch, of any proposer, in log order."""
