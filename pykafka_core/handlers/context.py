"""What a handler knows: the image, who asks, and the node that answers."""

from collections.abc import Callable
from typing import NamedTuple, Never, Protocol

from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import NotControllerError
from pykafka_core.metadata.broker_sessions import BrokerSessions
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.quorum.quorum import MetadataQuorum


class Node(NamedTuple):
    """What does not change while the broker runs.

    Attributes:
        directory_id: Of the data directory, as in its meta.properties.
        log_dir: The data directory's absolute path; ``memory`` without one.
        new_id: Gives 16 random bytes at each call.
    """

    node_id: int
    cluster_id: str
    directory_id: bytes
    log_dir: str
    new_id: Callable[[], bytes]


class Caller(Protocol):
    """Who asks, and how: a request as it came from the core is one, and so is a call of this process."""

    @property
    def api_version(self) -> int:
        """Of request and answer."""

    @property
    def client_host(self) -> str:
        """The peer's address without its port."""

    @property
    def client_id(self) -> str:
        """As the client calls itself; not to be trusted."""

    @property
    def correlation_id(self) -> int:
        """0 to 2³¹ − 1, as the client numbers its requests; 0 for a call of this process."""

    @property
    def listener(self) -> str:
        """Name of the listener it came by."""

    @property
    def received_ns(self) -> int:
        """Monotonic time of its arrival; 0 for a call of this process."""


def _nothing() -> None:
    """Ask nobody."""


class ProducerIds:
    """The block of producer ids this broker may give out. Belongs to the control thread.

    A block is proposed, and may already be drawn on by the requests of the same batch, whose answers wait for it; it is
    the broker's once it was committed.
    """

    def __init__(self) -> None:
        self._next = self._end = 0
        self._proposed = range(0)
        self.ask_for_more: Callable[[], object] = _nothing
        """Has a block proposed."""

    def __len__(self) -> int:
        return self._end - self._next

    def take_or_ask(self) -> int | None:
        """As `take`; there will be one later if there is none."""
        producer_id = self.take()
        if producer_id is None:
            self.ask_for_more()
        return producer_id

    def take(self) -> int | None:
        """The next id, or None when the block is used up."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    def propose(self, first: int, end: int) -> int:
        """Take ``first``, and leave the ids up to ``end - 1`` to the other requests of the batch."""
        assert 0 <= first < end, "a block holds at least one id"
        self._proposed = range(first + 1, end)
        return first

    def grant(self, first: int, count: int) -> None:
        """A block that the active controller, on another node, has given this broker."""
        self._next, self._end = first, first + count

    def take_proposed(self, end: int) -> int | None:
        """The next id of the block that the batch proposes, if it is the one that ends at ``end``."""
        proposed = self._proposed
        if not proposed or proposed.stop != end:
            return None
        self._proposed = proposed[1:]
        return proposed[0]

    def settle(self, end: int, *, committed: bool) -> None:
        """What is left of the proposed block that ends at ``end`` is ours now, or it is dropped."""
        proposed = self._proposed
        if proposed.stop != end:
            return  # the batch used it up and proposed another one
        self._proposed = range(0)
        if committed:
            self._next, self._end = proposed.start, proposed.stop


_CORRELATION_IDS = 2**31
_LATER = range(1, 1 << 16)
"""Behind the newest one: a broker has given up on these. Whoever is further off numbers otherwise, and is heard."""


class ActiveController:
    """What the active controller alone knows, and no record says. Belongs to the control thread.

    Args:
        sessions: Those of its beginning. A controller that takes over knows nothing of what its predecessor held.
    """

    def __init__(self, sessions: BrokerSessions) -> None:
        self.sessions = sessions
        self._newest: dict[int, tuple[int, int]] = {}

    def has_given_up(self, broker_id: int, broker_epoch: int, correlation_id: int) -> bool:
        """Whether a broker has asked for a change of an ISR after this request of it, which comes late.

        It waits for no answer any more. What it asked for later may have been refused, and it relies on that
        (contract/replication.md#29): a change that is made all the same would have in sync whom it does not wait for.

        Args:
            correlation_id: Of the request. A broker's grow, over all its connections, and go on at 0 after 2³¹ − 1.
        """
        epoch, newest = self._newest.get(broker_id, (broker_epoch, correlation_id))
        if epoch == broker_epoch and (newest - correlation_id) % _CORRELATION_IDS in _LATER:
            return True
        self._newest[broker_id] = broker_epoch, correlation_id
        return False


def _ignore(_kind: str, _text: str) -> None:
    """Log nothing."""


class Context(NamedTuple):
    """One request's view of the world.

    For an API that writes, ``image`` includes what earlier requests of the same batch propose.
    """

    image: MetadataImage
    settings: BrokerConfigs
    """As given at start and altered since, by the committed image."""
    quorum: MetadataQuorum[Never, object]
    producer_ids: ProducerIds
    node: Node
    broker_epoch: int
    next_offset: int
    """Offset of the first metadata record that this request proposes."""
    now_ms: int
    caller: Caller
    replicas: Replicas
    """The states of this node's logs and of its directory."""
    warn: Callable[[str, str], None] = _ignore
    """Logs a warning of a kind, unless one of this kind was logged within a minute."""
    active: ActiveController | None = None
    """Only where this node is the active controller of a cluster."""
    now_ns: int = 0
    """Monotonic time, not later than the arrival of a request that waits; for what no request asks for."""
    is_forwarded: bool = False
    """A broker sent the request on to the controller, in an envelope."""

    def controller(self) -> ActiveController:
        """What the active controller knows.

        Raises:
            NotControllerError: This node is not the active controller.
        """
        if self.active is None:
            raise NotControllerError
        return self.active

    @property
    def arrived_ns(self) -> int:
        """Monotonic time of the request's arrival; of now for a call of this process."""
        return self.caller.received_ns or self.now_ns
