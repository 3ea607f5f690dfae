"""Registers a controller, so that clients can find it (KIP-919), as Kafka's
``ControllerRegistrationManager`` does.

Voters find each other by the voter set. Clients with ``bootstrap.controllers`` find the other
controllers by these registrations, which the active controller commits. A process registers when
the metadata contain no registration of its node id, or one of another process. It tries again after
a pause until the metadata contain its own.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from pykafka_core.broker.runtime.membership.controller_channel import (
    TIMEOUT_MS,
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.errors import error_of
from pykafka_core.handlers.cluster.controller_registration import LEVEL_MIN
from pykafka_core.metadata.image.features import METADATA_VERSION, SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Endpoint, MetadataImage
from pykafka_core.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Message,
)
from pykafka_core.types import NS_PER_MS

REGISTRATION = ControllerApi(70, (0, 0))
PURPOSE = "registration"
PAUSE_MS = 1000
"""Pause after a request that was rejected or got no response."""

_log = GuardedLogger(__name__)


class Registering(NamedTuple):
    """The content of a controller's registration."""

    node_id: int
    incarnation_id: bytes
    listeners: Sequence[Endpoint]
    """The endpoints of the controller's listeners."""


class ControllerRegistration:
    """One controller's registration. Belongs to the control thread.

    Args:
        services: Has the clock, and the timer of the next attempt.
        channel: Sends to the active controller.
        registering: The content of the registration.
    """

    def __init__(
        self, services: Services, *, channel: ControllerChannel, registering: Registering
    ) -> None:
        self._core = services.core
        self._timers = services.timers
        self._channel = channel
        self._registering = registering
        self._image: MetadataImage | None = None
        self._is_busy = False
        """Whether a request is open or scheduled."""

    def follow(self, image: MetadataImage) -> None:
        """Register if the committed image lacks this process."""
        self._image = image
        if not self._is_busy and self._is_wanted():
            self._register()

    def _is_wanted(self) -> bool:
        image, own = self._image, self._registering
        if image is None or image.features.get(METADATA_VERSION, 0) < LEVEL_MIN:
            return False
        known = image.controllers.get(own.node_id)
        return known is None or known.incarnation_id != own.incarnation_id

    def _register(self) -> None:
        self._is_busy = True
        self._channel.ask(
            REGISTRATION,
            self._request(),
            TIMEOUT_MS,
            self._on_response,
            PURPOSE,
            self._is_still_due,
        )

    def _is_still_due(self) -> bool:
        """Report whether the request is still needed.

        The registration may be committed although its response was lost; a dropped request has no
        callback, so this function also resets the state.
        """
        self._is_busy = self._is_wanted()
        return self._is_busy

    def _request(self) -> ControllerRegistrationRequest:
        of = ControllerRegistrationRequest
        return of(
            controller_id=self._registering.node_id,
            incarnation_id=self._registering.incarnation_id,
            zk_migration_ready=False,
            listeners=[
                of.Listener(
                    name=at.name,
                    host=at.host,
                    port=at.port,
                    security_protocol=at.security_protocol,
                )
                for at in self._registering.listeners
            ],
            features=[
                of.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        )

    def _on_response(self, response: Message | None) -> None:
        response = cast("ControllerRegistrationResponse | None", response)
        if response is not None and response.error_code:
            name, text = error_of(response.error_code).name, response.error_message or ""
            _log.warning("this controller is not registered yet: %s %s", name, text)
        due_ns = self._core.now_ns() + PAUSE_MS * NS_PER_MS
        self._timers.once("the registration of a controller", due_ns, self._again)

    def _again(self) -> None:
        self._is_busy = False
        if self._is_wanted():
            self._register()
