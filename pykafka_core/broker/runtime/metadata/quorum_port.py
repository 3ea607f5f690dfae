"""What the controller needs of the metadata quorum: of one voter, or of a replica among several."""

from collections.abc import Callable
from typing import NamedTuple, Never, Protocol

from pykafka_core.metadata.image.replay import Replay
from pykafka_core.quorum.quorum import Committed, MetadataQuorum, Proposal


class Replaced(NamedTuple):
    """A snapshot of the leader's stands for all that was committed before."""

    replay: Replay
    """What it holds; whoever takes this may change it."""


def _nothing(*_: object) -> None:
    """Tell nobody."""


class ProposalEnd:
    """What becomes of a proposal that is not committed. The controller sets these."""

    def __init__(self) -> None:
        self.rejected: Callable[[int], object] = _nothing
        """Called with an error code: nothing of it may be seen."""
        self.in_doubt: Callable[[], object] = _nothing
        """Called when another leader may commit it, or not."""


class QuorumPort(Protocol):
    """The quorum as its node sees it. What a call raises ends the broker."""

    @property
    def quorum(self) -> MetadataQuorum[Never, object]:
        """The quorum's value now."""

    @property
    def can_propose(self) -> bool:
        """Whether this node leads, all that is committed was taken, and no batch is in flight."""

    @property
    def has_committed(self) -> bool:
        """Whether `take_committed` has something to give."""

    @property
    def proposal_end(self) -> ProposalEnd:
        """Who is told of a proposal that is not committed."""

    def propose(self, proposal: Proposal) -> None:
        """Have a batch committed; it comes back among the committed ones, or its end is told."""

    def take_committed(self) -> Committed | Replaced | None:
        """The next committed batch, in the order of the log; whose it is does not matter."""
