"""Detects brokers whose process has ended, so that the active controller fences them at once and
does not wait for their sessions.

Theory of operation. The active controller keeps a connection to every broker that has a session.
When a connection ends, the controller opens another one. If the host refuses it, no process listens
at the registered address: the broker's process has ended, and its session ends too. Other failures
(a connection that hangs, a host name without an address) prove nothing; the session decides, as in
Apache Kafka. A refusal also proves nothing if the broker has never been seen listening, because
brokers of Apache Kafka are unfenced before they listen. Brokers that an earlier controller unfenced
count as seen.

If a running broker is fenced, its next heartbeat unfences it. A broker that stopped cleanly can be
started again at once, as its session has ended. A broker that is killed and started again before
the controller notices replaces itself: a connection that ended leaves its session in doubt until
the next heartbeat.
"""

from collections.abc import Callable
from functools import partial

from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.runtime.services import Services
from pykafka_core.errors import NONE, ListenerNotFoundError, RequestTimedOutError
from pykafka_core.handlers.cluster.stale_brokers import fence_gone
from pykafka_core.handlers.context import ActiveController
from pykafka_core.metadata.image.image import Broker, Endpoint, MetadataImage
from pykafka_core.protocol.messages import BrokerHeartbeatResponse, Message

PURPOSE = "watch"
API_VERSIONS = 18, 0
RESPONSE_MS = 10_000
LASTS_MS = 60_000
"""How long a connection is watched before the broker's registration is checked again."""
PAUSE_NS = 20_000_000
"""Pause before the next connection: an ending process does not close all its sockets at once."""
PAUSE_NS_MAX = 1_000_000_000
"""Upper bound of the pause, which doubles while connections fail for other reasons."""


class _Watched:
    """One process of a broker; ignored once it is not the one in the table."""

    __slots__ = "epoch", "pause_ns", "peer", "was_seen"

    def __init__(self, epoch: int, at: Endpoint, *, was_seen: bool) -> None:
        self.epoch = epoch
        self.peer = PURPOSE, at.host, at.port
        self.was_seen = was_seen
        self.pause_ns = PAUSE_NS


class BrokerWatch:
    """Watches the processes of brokers while a node is the active controller.

    Belongs to the control thread.

    Args:
        services: Has the connections.
        node_id: This node, which is not watched.
        listener: The brokers' listener to connect to.
        ask: Submits a request that this node decides.
    """

    def __init__(
        self,
        services: Services,
        *,
        node_id: int,
        listener: str,
        ask: Callable[[LocalRequest], None],
    ) -> None:
        self._services = services
        self._node_id = node_id
        self._listener = listener.upper()
        self._ask = ask
        self._watched: dict[int, _Watched] = {}
        self._known: MetadataImage | None = None
        self._active: ActiveController | None = None

    def look(self, image: MetadataImage, active: ActiveController) -> None:
        """Watch every broker that has a session, and no other; cheap if the image is unchanged."""
        if image is self._known:
            return
        is_first = self._known is None
        self._known, self._active = image, active
        now_ns = self._services.core.now_ns()
        for node_id in [node for node in self._watched if node not in image.brokers]:
            self._drop(node_id)
        for broker in image.brokers.values():
            watched = self._watched.get(broker.node_id)
            if watched is not None and watched.epoch != broker.epoch:
                self._drop(broker.node_id)
                watched = None
            if watched is None and active.sessions.is_valid(broker, now_ns):
                self._begin(broker, was_seen=is_first and not broker.fenced)

    def end(self) -> None:
        """Stop all watches: this node is no longer the active controller."""
        for node_id in list(self._watched):
            self._drop(node_id)
        self._known = self._active = None

    def _begin(self, broker: Broker, *, was_seen: bool) -> None:
        at = next((at for at in broker.endpoints if at.name.upper() == self._listener), None)
        if at is not None and broker.node_id != self._node_id:
            watched = self._watched[broker.node_id] = _Watched(broker.epoch, at, was_seen=was_seen)
            self._wait(broker.node_id, watched)

    def _drop(self, node_id: int) -> None:
        self._services.core.disconnect(self._watched.pop(node_id).peer)

    def _wait(self, node_id: int, watched: _Watched) -> None:
        if self._watched.get(node_id) is watched:
            token = self._services.completions.open(partial(self._on_ended, node_id, watched))
            if watched.was_seen:
                self._services.core.watch(token, watched.peer, LASTS_MS)
            else:
                self._services.core.send(token, watched.peer, *API_VERSIONS, b"", RESPONSE_MS)

    def _on_ended(self, node_id: int, watched: _Watched, ended: Completed) -> None:
        if self._watched.get(node_id) is not watched:
            return
        if ended.error_code == NONE:
            watched.was_seen = True
            self._wait(node_id, watched)
            return
        if ended.error_code == ListenerNotFoundError.code and watched.was_seen:
            del self._watched[node_id]
            self._fence(node_id, watched)
            return
        has_lasted = ended.error_code == RequestTimedOutError.code
        if not has_lasted and self._active is not None:
            active, now_ns = self._active, self._services.core.now_ns()
            active.sessions = active.sessions.doubted(node_id, watched.epoch, now_ns)
        if has_lasted:
            watched.pause_ns = PAUSE_NS
        self._pause(node_id, watched)

    def _pause(self, node_id: int, watched: _Watched) -> None:
        """Open the next connection after the pause, and double the pause."""
        due_ns = self._services.core.now_ns() + watched.pause_ns
        watched.pause_ns = min(2 * watched.pause_ns, PAUSE_NS_MAX)
        self._services.timers.once(
            "the watch on a broker", due_ns, partial(self._wait, node_id, watched)
        )

    def _fence(self, node_id: int, watched: _Watched) -> None:
        active = self._active

        def on_response(response: Message) -> None:
            assert isinstance(response, BrokerHeartbeatResponse)
            if response.error_code != NONE:
                self._look_again(node_id, watched, active)
            elif not response.is_fenced:
                self._fence(node_id, watched)  # one batch did not hold all of its partitions

        self._ask(
            LocalRequest(partial(fence_gone, node_id, watched.epoch), on_response=on_response)
        )

    def _look_again(self, node_id: int, watched: _Watched, active: ActiveController | None) -> None:
        """Watch the broker again: the fencing failed or its outcome is unknown."""
        if active is not None and self._active is active and node_id not in self._watched:
            self._watched[node_id] = watched
            self._pause(node_id, watched)
