"""The contexts of handlers, one for each request."""

from pykafka_core._core import Core
from pykafka_core.broker.rate_limited_logging import Notices
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.metadata.quorum_port import QuorumPort
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.handlers.context import ActiveController, Context, Node, ProducerIds
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.image.image import MetadataImage

_log = GuardedLogger(__name__)


class Contexts:
    """Creates contexts on one node.

    Args:
        core: Provides the clocks.
        node: This node.
        quorum: Provides the offset of the next record.
        publisher: Has the committed image and its settings.
        producer_ids: Producer ids that this broker may assign.
        replicas: The states of this node's logs.
    """

    def __init__(
        self,
        core: Core,
        node: Node,
        quorum: QuorumPort,
        publisher: Publisher,
        producer_ids: ProducerIds,
        replicas: Replicas,
    ) -> None:
        self._core = core
        self._node = node
        self._quorum = quorum
        self._publisher = publisher
        self._producer_ids = producer_ids
        self._replicas = replicas
        self._notices = Notices(core.now_ns)
        self.active: ActiveController | None = None
        """Set only while this node is the active controller of a cluster."""

    def committed(self, request: PendingRequest) -> Context:
        """Return the context of a request that uses the committed image."""
        return self._context(request, self._publisher.image, -1)

    def proposed(
        self, request: PendingRequest, image: MetadataImage, records_before: int
    ) -> Context:
        """Return the context of a request whose records follow the uncommitted ones of
        ``image``.
        """
        return self._context(request, image, self._quorum.quorum.log_end_offset + records_before)

    def _context(self, request: PendingRequest, image: MetadataImage, next_offset: int) -> Context:
        broker = image.brokers.get(self._node.node_id)
        # Positional arguments: each request creates one, and names would double the time.
        return Context(
            image,
            self._publisher.settings,
            self._quorum.quorum,
            self._producer_ids,
            self._node,
            broker.epoch if broker else -1,
            next_offset,
            self._core.time_ms(),
            request.caller,
            self._replicas,
            self._warn,
            self.active,
            self._core.horizon_ns() if self.active else 0,
        )

    def _warn(self, kind: str, text: str) -> None:
        more = self._notices.admit(kind)
        if more is not None:
            _log.warning("%s%s", text, f" ({more} more since the last report)" if more else "")
