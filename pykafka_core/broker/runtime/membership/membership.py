"""Joins a node to its cluster, and forwards the requests that the active controller decides.

Theory of operation. The node's replica of the quorum has the committed records and the leader. Once
the node's image has caught up for the first time, the core applies it, and the broker registers
and serves as soon as it is unfenced. A node that is only a controller serves with its first image.
Every controller also registers, for clients with ``bootstrap.controllers``. Requests that the
controller decides are forwarded to the leader, unless this node is the leader.
"""

from collections.abc import Callable

from pykafka_core.broker.runtime.membership.alter_partition_manager import IsrChanges
from pykafka_core.broker.runtime.membership.assignments import Assignments
from pykafka_core.broker.runtime.membership.controller_registration import ControllerRegistration
from pykafka_core.broker.runtime.membership.controller_role import ControllerRole
from pykafka_core.broker.runtime.membership.forwarding import Forwarding
from pykafka_core.broker.runtime.membership.lifecycle import Lifecycle
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest, RemoteRequest
from pykafka_core.metadata.image.image import MetadataImage


class Membership:
    """One node of a cluster. Belongs to the control thread, except for `leave`.

    Args:
        driver: Its replica of the metadata quorum.
        publisher: Has the committed image.
        lifecycle: The membership of its broker; None if the node is only a controller.
        forwarding: Forwards requests to the active controller.
        isr: Proposes changes of the ISR.
        assignments: Moves replicas to and from a failed disk; None if the node is only a
            controller.
        role: The controller part of this node; None if the node is only a broker.
        registration: The registration of this controller; None if the node is only a broker.
        check: Called once with the first image, before the core applies it. Raises if the image
            does not belong to this node's partitions.
        serve: Called once, when the image contains this broker as unfenced, so that its Metadata
            responses contain itself; on a node that is only a controller, with the first image.
    """

    def __init__(
        self,
        *,
        driver: ReplicaDriver,
        publisher: Publisher,
        lifecycle: Lifecycle | None,
        forwarding: Forwarding,
        isr: IsrChanges,
        assignments: Assignments | None,
        role: ControllerRole | None,
        registration: ControllerRegistration | None,
        check: Callable[[MetadataImage], object],
        serve: Callable[[], object],
    ) -> None:
        self.role = role
        self._driver = driver
        self._publisher = publisher
        self._lifecycle = lifecycle
        self._forwarding = forwarding
        self._registration = registration
        self._check = check
        self._serve: Callable[[], object] | None = serve
        self.isr = isr
        self.assignments = assignments
        self._has_begun = False
        self._known_offset = -1
        self._begins_at: int | None = None
        self._left: Callable[[], object] | None = None

    @property
    def leads(self) -> bool:
        """Whether this node is the active controller."""
        return self._driver.leads

    def change_voters(self, request: RemoteRequest) -> None:
        """Submit a request to change the voters to the quorum, which this node leads."""
        self._driver.take(request)

    def send_on(self, request: PendingRequest) -> None:
        """Forward a request to the active controller on another node."""
        self._forwarding.take(request)

    def role_at(self, listener: str) -> ControllerRole | None:
        """Return the controller part of this node if the listener belongs to it."""
        return self.role if self.role is not None and listener in self.role.listeners else None

    def leave(self, left: Callable[[], object]) -> None:
        """Start a controlled shutdown; ``left`` is called on the control thread at its end.

        May be called from any thread; the caller wakes the core.
        """
        self._left = left

    def begin_turn(self) -> None:
        """Run the steps that precede all decisions of a turn of the control thread."""
        if not self._has_begun:
            self._has_begun = True
            self._driver.begin()
        self._driver.advance()
        if self._left is not None:
            left, self._left = self._left, None
            if self._lifecycle is None:
                left()
            else:
                self._lifecycle.leave(left)

    def end_turn(self) -> None:
        """Run the steps that follow the publication of committed records."""
        if self.role is not None:
            self.role.end_turn()
        if not self._publisher.is_begun:
            self._begin_if_current()
            return
        image = self._publisher.image
        if image.offset != self._known_offset:
            self._known_offset = image.offset
            if self._registration is not None:
                self._registration.follow(image)
            if self.assignments is not None:
                self.assignments.follow()
            if self._lifecycle is not None:
                self._lifecycle.beat_soon()
                self._serve_if_unfenced(self._lifecycle)

    def _begin_if_current(self) -> None:
        """Begin once the image has all records committed at the first contact with the leader."""
        if self._begins_at is None:
            self._begins_at = self._driver.leaders_end
        end, image = self._begins_at, self._publisher.image
        # A broker cannot join a cluster before its first records.
        if end is None or not image.features:
            return
        if image.offset + 1 >= end or self._driver.has_taken(end):
            self._check(image)
            self._publisher.publish_whole()
            if self._lifecycle is None:
                self._serve_once()
            else:
                self._lifecycle.register()

    def _serve_if_unfenced(self, lifecycle: Lifecycle) -> None:
        own = self._publisher.image.brokers.get(lifecycle.node_id)
        if own is not None and own.epoch == lifecycle.epoch and not own.fenced:
            self._serve_once()

    def _serve_once(self) -> None:
        serve, self._serve = self._serve, None
        if serve is not None:
            serve()
