"""How a broker joins its cluster and stays in it, as Kafka's ``BrokerLifecycleManager`` does.

The broker registers with the active controller and gets an epoch. Then it sends a heartbeat every
``broker.heartbeat.interval.ms``, with the offset that its metadata have reached. It is fenced until
its metadata contain its own registration; then it serves. A broker that is fenced later continues:
its metadata report the fencing. At a clean stop it requests a controlled shutdown, which is granted
once its partitions have other leaders.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from pykafka_core.broker.runtime.membership.controller_channel import (
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.timers import Timer
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import (
    BrokerIdNotRegisteredError,
    ClusterAuthorizationFailedError,
    InconsistentClusterIdError,
    InvalidRegistrationError,
    InvalidRequestError,
    StaleBrokerEpochError,
    UnsupportedVersionError,
    error_of,
)
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Endpoint
from pykafka_core.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Message,
)
from pykafka_core.types import NS_PER_MS

REGISTRATION = ControllerApi(62, (0, 4))
HEARTBEAT = ControllerApi(63, (0, 2))
PURPOSE = "lifecycle"
"""Heartbeats have their own connection, so that no other request delays them."""
REFUSED_PAUSE_MS = 100
"""Pause after the first registration that was rejected; it doubles."""
REFUSED_PAUSE_MS_MAX = 500
"""Upper bound of the pause, along with ``broker.heartbeat.interval.ms``."""
LEAVING_PAUSE_MS = 50
"""Pause between heartbeats during a controlled shutdown."""
LEAVING_MS_MAX = 1000
"""How long a controlled shutdown waits for a controller that does not respond."""
FINAL = frozenset(
    {
        BrokerIdNotRegisteredError.code,
        ClusterAuthorizationFailedError.code,
        InconsistentClusterIdError.code,
        InvalidRegistrationError.code,
        InvalidRequestError.code,
        UnsupportedVersionError.code,
    }
)
"""Errors that reject a registration permanently."""
UNKNOWN = -1

_log = GuardedLogger(__name__)


class Joining(NamedTuple):
    """The content of a broker's registration.

    Attributes:
        previous_epoch: The epoch with which the broker stopped cleanly. -1 after an unclean stop,
            when its logs may lack acknowledged records.
    """

    identity: Identity
    incarnation_id: bytes
    listeners: Sequence[Endpoint]
    rack: str | None
    previous_epoch: int
    heartbeat_ms: int
    session_ms: int


class Lifecycle:
    """One broker's membership. Belongs to the control thread.

    Args:
        services: Has the clock, the timer of the next heartbeat, and the health of this node.
        channel: Sends to the active controller.
        joining: The content of the registration.
        metadata_offset: Returns the offset of the last record in this broker's image; -1 if the
            image is empty.
        cordoned: Returns the directories that take no new replicas, by that image; None below the
            feature level of cordoned directories.
        refused: Called with the reason if the controller rejects the registration permanently; the
            node must stop.
    """

    def __init__(
        self,
        services: Services,
        *,
        channel: ControllerChannel,
        joining: Joining,
        metadata_offset: Callable[[], int],
        cordoned: Callable[[], tuple[bytes, ...] | None],
        refused: Callable[[str], object],
    ) -> None:
        self._core = services.core
        self._timers = services.timers
        self._channel = channel
        self.joining = joining
        self._metadata_offset = metadata_offset
        self._cordoned = cordoned
        self._refused = refused
        self._replicas = services.replicas
        self._timer: Timer | None = None
        self._is_leaving = False
        self._last_refusal = 0
        self._refused_pause_ms = REFUSED_PAUSE_MS
        self._sent_offset = UNKNOWN
        self._sent_cordoned: tuple[bytes, ...] | None = None
        self._left: Callable[[], object] | None = None
        self.epoch = UNKNOWN
        """The broker epoch: the offset of the registration's record."""
        self.is_fenced = True

    @property
    def node_id(self) -> int:
        """The node id of this broker."""
        return self.joining.identity.node_id

    def register(self) -> None:
        """Register with the controller; heartbeats follow automatically."""
        identity = self.joining.identity
        of = BrokerRegistrationRequest
        request = of(
            broker_id=identity.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=self.joining.incarnation_id,
            listeners=[
                of.Listener(
                    name=at.name,
                    host=at.host,
                    port=at.port,
                    security_protocol=at.security_protocol,
                )
                for at in self.joining.listeners
            ],
            features=[
                of.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            rack=self.joining.rack,
            log_dirs=[identity.directory_id],
            previous_broker_epoch=self.joining.previous_epoch,
        )
        self._ask(REGISTRATION, request, self._on_registered)

    def leave(self, left: Callable[[], object]) -> None:
        """Start a controlled shutdown; ``left`` is called once no partition is led here."""
        self._is_leaving, self._left = True, left
        if self.epoch == UNKNOWN:
            self._end()
        else:
            self._beat_now()

    def beat_soon(self) -> None:
        """Send a heartbeat at once if the new image changes a value that is urgent.

        Urgent are the metadata offset of a fenced broker, and the cordoned directories.
        """
        if self.epoch == UNKNOWN or self._metadata_offset() < self.epoch:
            return
        if self.is_fenced or self._cordoned() != self._sent_cordoned:
            self._beat_now()

    def _ask(
        self, api: ControllerApi, request: Message, on_response: Callable[[Message | None], object]
    ) -> None:
        def take(response: Message | None) -> None:
            self._replicas.lacks_controller = response is None
            on_response(response)

        timeout_ms = LEAVING_MS_MAX if self._is_leaving else self.joining.session_ms
        self._channel.ask(api, request, timeout_ms, take, PURPOSE)

    def _on_registered(self, response: Message | None) -> None:
        if response is None:
            self._register_later()
            return
        response = cast("BrokerRegistrationResponse", response)
        code = response.error_code
        if code in FINAL:
            name = error_of(code).name
            self._refused(f"the controller refuses the registration of this broker: {name}")
        elif code:
            # For example, the session of an earlier process of this broker has not ended.
            if code != self._last_refusal:
                self._last_refusal = code
                _log.warning("this broker is not registered yet: %s", error_of(code).name)
            self._register_later()
        else:
            self._last_refusal, self._refused_pause_ms = 0, REFUSED_PAUSE_MS
            self.epoch = response.broker_epoch
            self._core.registered(self.epoch)
            self._beat()

    def _beat_now(self) -> None:
        if self._timer is not None:  # no request is open
            self._timer.cancel()
            self._timer = None
            self._beat()

    def _beat(self) -> None:
        self._timer = None
        self._sent_offset = self._metadata_offset()
        # Metadata from before the registration may be outdated.
        is_current = self._sent_offset >= self.epoch
        cordoned = self._sent_cordoned = self._cordoned() if is_current else None
        request = BrokerHeartbeatRequest(
            broker_id=self.joining.identity.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._sent_offset,
            want_fence=False,
            want_shut_down=self._is_leaving,
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
        self._ask(HEARTBEAT, request, self._on_beat)

    def _on_beat(self, response: Message | None) -> None:
        response = cast("BrokerHeartbeatResponse | None", response)
        if response is None and self._is_leaving:
            self._end()
            return
        if response is None:
            _log.warning("no controller has answered this broker's heartbeats for a session")
        elif response.error_code == StaleBrokerEpochError.code:
            self.epoch = UNKNOWN
            self.register()
            return
        elif response.error_code:
            _log.warning("a heartbeat was refused: %s", error_of(response.error_code).name)
        else:
            self.is_fenced = response.is_fenced
            if response.should_shut_down:
                self._end()
                return
            if self.is_fenced and self._sent_offset < self.epoch <= self._metadata_offset():
                # The image got the registration while the request was open, when `beat_soon` has no
                # effect.
                self._beat()
                return
        self._later(self._beat, self.joining.heartbeat_ms)

    def _register_later(self) -> None:
        pause_ms = min(self._refused_pause_ms, REFUSED_PAUSE_MS_MAX, self.joining.heartbeat_ms)
        self._refused_pause_ms = 2 * pause_ms
        self._later(self.register, pause_ms)

    def _later(self, action: Callable[[], object], pause_ms: int) -> None:
        pause_ms = LEAVING_PAUSE_MS if self._is_leaving else pause_ms
        due_ns = self._core.now_ns() + pause_ms * NS_PER_MS
        self._timer = self._timers.once("a heartbeat", due_ns, action)

    def _end(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()
