"""A node's part in its cluster: when it joins, and which requests it leaves to the active controller.

Theory of operation. The replica of the quorum says what is committed and who leads. Once this node's image has caught
up for the first time the core takes it in, and the broker registers; unfenced, it serves. A node that is a controller
only has joined with its first image. A controller, also one that is a broker too, registers for clients that know
controllers alone. What the controller decides goes to the node that leads, unless this one does.
"""

from collections.abc import Callable
from functools import partial

from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.foundation import Foundation
from pykafka_core.broker.runtime.membership.assignments import Assignments
from pykafka_core.broker.runtime.membership.controller_channel import ControllerChannel
from pykafka_core.broker.runtime.membership.controller_registration import ControllerRegistration
from pykafka_core.broker.runtime.membership.controller_role import ControllerRole
from pykafka_core.broker.runtime.membership.enveloped import EnvelopedRequest
from pykafka_core.broker.runtime.membership.forwarding import Forwarding
from pykafka_core.broker.runtime.membership.isr import IsrChanges
from pykafka_core.broker.runtime.membership.lifecycle import UNKNOWN, Lifecycle
from pykafka_core.broker.runtime.membership.prerequisites import Prerequisites
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.broker.runtime.requests.requests import Asked, RemoteRequest
from pykafka_core.errors import NotControllerError
from pykafka_core.handlers.context import ProducerIds
from pykafka_core.metadata.image.image import MetadataImage


class Membership:
    """One node among several. Belongs to the control thread, but for `leave`.

    Args:
        foundation: Of its control plane.
        driver: Its replica of the metadata quorum.
        publisher: Has the committed image.
        lifecycle: Its broker's; None where it is a controller only.
        forwarding: Sends requests on to the active controller.
        channel: To the active controller.
        role: This node's part as a controller; None where it is a broker only.
        registration: Likewise.
        check: Called once with the first image, before the core applies it. Raises if it cannot be
            that of this node's partitions.
        serve: Called once, when this broker's own metadata have it as unfenced: what it tells clients names itself.
            Of a controller only, when it has its first image.
    """

    def __init__(
        self,
        foundation: Foundation,
        *,
        driver: ReplicaDriver,
        publisher: Publisher,
        lifecycle: Lifecycle | None,
        forwarding: Forwarding,
        channel: ControllerChannel,
        role: ControllerRole | None,
        registration: ControllerRegistration | None,
        check: Callable[[MetadataImage], object],
        serve: Callable[[], object],
    ) -> None:
        self._foundation = foundation
        self._channel = channel
        self.role = role
        self._driver = driver
        self._publisher = publisher
        self._lifecycle = lifecycle
        self._forwarding = forwarding
        self._registration = registration
        self._check = check
        self._serve: Callable[[], object] | None = serve
        self.isr = IsrChanges(
            foundation,
            channel=channel,
            broker=self._broker,
            image=lambda: publisher.image,
        )
        self.assignments = (
            None
            if lifecycle is None
            else Assignments(foundation, channel=channel, lifecycle=lifecycle, publisher=publisher)
        )
        self._has_begun = False
        self._known_offset = -1
        self._begins_at: int | None = None
        self._left: Callable[[], object] | None = None

    def use(
        self, controller: Controller, jobs: Jobs, contexts: Contexts, producer_ids: ProducerIds
    ) -> None:
        """Take the parts that decide. What requests of any node need first the active controller gives."""
        controller.passed_on = self._pass_on
        if self.assignments is not None:
            self.assignments.compare_disks = controller.write_no_op
        if self.role is not None:
            self.role.use(controller, jobs, contexts)
        prerequisites = Prerequisites(
            self._foundation,
            channel=self._channel,
            jobs=jobs,
            producer_ids=producer_ids,
            broker=self._broker,
            has_topic=lambda name: name in self._publisher.image.topics.by_name,
        )
        producer_ids.ask_for_more = partial(prerequisites.more_producer_ids, _done)

    def _broker(self) -> tuple[int, int]:
        """Id of this node, and the epoch of its broker; -1 while that is not registered."""
        epoch = UNKNOWN if self._lifecycle is None else self._lifecycle.epoch
        return self._driver.quorum.key.node_id, epoch

    @property
    def leads(self) -> bool:
        """Whether this node is the active controller."""
        return self._driver.leads

    def change_voters(self, asked: RemoteRequest) -> None:
        """Have the quorum, which is led here, decide a request to change the voters."""
        self._driver.take(asked)

    def send_on(self, asked: Asked) -> None:
        """Have the active controller, on another node, decide a request."""
        self._forwarding.take(asked)

    def _pass_on(self, asked: Asked) -> bool:
        """Have the next controller decide a request that this one has renounced.

        Who asked a controller directly looks for the next one itself. What a client asked of a broker never comes back
        as NOT_CONTROLLER: the broker that sent it on does so again.
        """
        if isinstance(asked, EnvelopedRequest):
            self._foundation.requests.abandon(asked, NotControllerError.code)
        elif isinstance(asked, RemoteRequest) and self.role_at(asked.caller.listener) is None:
            self._forwarding.take(asked)
        else:
            return False
        return True

    def role_at(self, listener: str) -> ControllerRole | None:
        """This node's part as a controller, if what comes by a listener is for that."""
        return self.role if self.role is not None and listener in self.role.listeners else None

    def leave(self, left: Callable[[], object]) -> None:
        """Have what is led here move to others; ``left`` is called on the control thread once it is.

        From any thread; the core has to be woken.
        """
        self._left = left

    def begin_turn(self) -> None:
        """Before anything is decided in a turn of the control thread."""
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
        """After what is committed was published."""
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
        """Begin once the image holds what the leader had committed when it was first heard of."""
        if self._begins_at is None:
            self._begins_at = self._driver.leaders_end
        end, image = self._begins_at, self._publisher.image
        # Before its first records a cluster is nothing that a broker could join.
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


def _done(_is_given: bool) -> None:
    """A coordinator asks again when it needs an id."""
