"""The context of a handler: the image, the caller and the node."""

from collections.abc import Callable
from typing import NamedTuple, Never, Protocol

from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import NotControllerError
from pykafka_core.metadata.broker_sessions import BrokerSessions
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.quorum.quorum import MetadataQuorum


class Node(NamedTuple):
    """The properties of a node that do not change while the broker runs.

    Attributes:
        directory_id: The id of the data directory, from its meta.properties.
        log_dir: The absolute path of the data directory; ``memory`` without one.
        new_id: Returns 16 random bytes on each call.
    """

    node_id: int
    cluster_id: str
    directory_id: bytes
    log_dir: str
    new_id: Callable[[], bytes]


class Caller(Protocol):
    """The source of a request: a request from the core, or a call of this process."""

    @property
    def api_version(self) -> int:
        """The version of the request and the response."""

    @property
    def client_host(self) -> str:
        """The address of the peer, without its port."""

    @property
    def client_id(self) -> str:
        """The name that the client sent; it is not trustworthy."""

    @property
    def correlation_id(self) -> int:
        """The client's number of the request, 0 to 2³¹ − 1; 0 for a call of this process."""

    @property
    def listener(self) -> str:
        """The name of the listener through which the request arrived."""

    @property
    def received_ns(self) -> int:
        """The monotonic time of its arrival; 0 for a call of this process."""


def _no_request(_: "ProducerIds") -> None:
    """Send no request."""


class ProducerIds:
    """The block of producer ids that this broker may assign; the control thread owns it.

    Requests of the same batch may already take ids from a proposed block, because their responses
    wait for it. The block belongs to the broker after the commit.

    Args:
        ask_for_more: Starts the proposal of a block for these producer ids.
    """

    def __init__(self, ask_for_more: Callable[["ProducerIds"], object] = _no_request) -> None:
        self._next = self._end = 0
        self._proposed = range(0)
        self._ask_for_more = ask_for_more

    def __len__(self) -> int:
        return self._end - self._next

    def take_or_ask(self) -> int | None:
        """Take an id as `take` does; without one, start the request for a new block."""
        producer_id = self.take()
        if producer_id is None:
            self._ask_for_more(self)
        return producer_id

    def take(self) -> int | None:
        """Take the next id; None if the block is used up."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    def propose(self, first: int, end: int) -> int:
        """Take ``first``; the ids up to ``end - 1`` are for other requests of the batch."""
        assert 0 <= first < end, "a block holds at least one id"
        self._proposed = range(first + 1, end)
        return first

    def grant(self, first: int, count: int) -> None:
        """Take over a block that the active controller on another node has assigned."""
        self._next, self._end = first, first + count

    def take_proposed(self, end: int) -> int | None:
        """Take the next id of the proposed block, if that block ends at ``end``."""
        proposed = self._proposed
        if not proposed or proposed.stop != end:
            return None
        self._proposed = proposed[1:]
        return proposed[0]

    def settle(self, end: int, *, committed: bool) -> None:
        """Keep the rest of the proposed block that ends at ``end`` after a commit, or drop it."""
        proposed = self._proposed
        if proposed.stop != end:
            return  # the batch used the block up and proposed another one
        self._proposed = range(0)
        if committed:
            self._next, self._end = proposed.start, proposed.stop


_CORRELATION_IDS = 2**31
_LATER = range(1, 1 << 16)
"""The distances below the newest id at which the broker has abandoned a request.

A caller whose ids are further away numbers its requests differently, and is served.
"""


class ActiveController:
    """The state of the active controller that is in no record; the control thread owns it.

    Args:
        sessions: The sessions at its start; a new active controller does not get those of the
            previous one.
    """

    def __init__(self, sessions: BrokerSessions) -> None:
        self.sessions = sessions
        self._newest: dict[int, tuple[int, int]] = {}

    def has_given_up(self, broker_id: int, broker_epoch: int, correlation_id: int) -> bool:
        """Return whether a broker has sent a newer AlterPartition request than this late one.

        The broker no longer waits for the response. Its later request may have been refused, and it
        relies on that (contract/replication.md#29): a late change would put a replica into the ISR
        for which the broker does not wait.

        Args:
            correlation_id: The request's id. A broker increases it over all its connections, and
                continues with 0 after 2³¹ − 1.
        """
        epoch, newest = self._newest.get(broker_id, (broker_epoch, correlation_id))
        if epoch == broker_epoch and (newest - correlation_id) % _CORRELATION_IDS in _LATER:
            return True
        self._newest[broker_id] = broker_epoch, correlation_id
        return False


def _ignore(_kind: str, _text: str) -> None:
    """Discard a warning."""


class Context(NamedTuple):
    """The metadata and the state in which one request is handled.

    For an API that writes, ``image`` includes the records that earlier requests of the batch
    propose.
    """

    image: MetadataImage
    settings: BrokerConfigs
    """The settings of the start with the changes of the committed image."""
    quorum: MetadataQuorum[Never, object]
    producer_ids: ProducerIds
    node: Node
    broker_epoch: int
    next_offset: int
    """The offset of the first metadata record that this request proposes."""
    now_ms: int
    caller: Caller
    replicas: Replicas
    """The states of this node's logs and of its directory."""
    warn: Callable[[str, str], None] = _ignore
    """Logs a warning of a kind, unless one of the same kind was logged within the last minute."""
    active: ActiveController | None = None
    """It exists only if this node is the active controller of a cluster."""
    now_ns: int = 0
    """The monotonic time, not later than the arrival of a waiting request.

    It is for work without a request.
    """
    is_forwarded: bool = False
    """Whether a broker forwarded the request to the controller, in an envelope."""

    def controller(self) -> ActiveController:
        """Return the state of the active controller.

        Raises:
            NotControllerError: This node is not the active controller.
        """
        if self.active is None:
            raise NotControllerError
        return self.active

    @property
    def arrived_ns(self) -> int:
        """The monotonic time of the request's arrival, or the present time without an arrival."""
        return self.caller.received_ns or self.now_ns
