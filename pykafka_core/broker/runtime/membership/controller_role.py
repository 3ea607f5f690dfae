"""The controller part of a node: the requests of its controller listeners, and its tasks while it
is the active controller.

A controller listener serves the requests of the quorum, requests of brokers to the active
controller, and client requests that brokers forward in envelopes. The active controller writes the
first records of a new cluster, and fences brokers whose sessions ended.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.membership.broker_liveness import BrokerWatch
from pykafka_core.broker.runtime.membership.envelope_request import EnvelopedRequest
from pykafka_core.broker.runtime.membership.periodic_elections import LeaderPass, LeaderPasses
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.broker.runtime.requests.pending_request import (
    LocalRequest,
    PendingRequest,
    RemoteRequest,
    remote_request,
)
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.timers import Timer
from pykafka_core.errors import InvalidRequestError, NotControllerError
from pykafka_core.handlers.cluster.stale_brokers import fence_one
from pykafka_core.handlers.context import ActiveController, Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome
from pykafka_core.handlers.registry import (
    CONTROLLER_ROWS,
    FORWARDED,
    QUORUM_ROWS,
    VOTER_APIS,
    Owner,
    Row,
)
from pykafka_core.metadata.broker_sessions import BrokerSessions
from pykafka_core.metadata.partition_rules import MIN_ISR
from pykafka_core.metadata.records.bootstrap import with_min_isr
from pykafka_core.protocol import ProtocolError, messages
from pykafka_core.protocol.messages import (
    AbortTransactionRecord,
    BrokerHeartbeatResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    Message,
)
from pykafka_core.types import NS_PER_MS

if TYPE_CHECKING:
    from pykafka_core import _core

ENVELOPE = Row(58, "cluster.envelope", (0, 0), Owner.CONTROLLER)
ROWS: Mapping[int, Row] = {row.api_key: row for row in (*QUORUM_ROWS, *CONTROLLER_ROWS, ENVELOPE)}
"""The APIs of a controller listener."""
RETRY_MS = 1000
"""Pause before rejected records are proposed again."""
CONTROLLER_APIS = {row.api_key: row.versions for row in ROWS.values()}


class Deciders(NamedTuple):
    """The components that decide requests."""

    controller: Controller
    jobs: Jobs
    contexts: Contexts


class ControllerRole:
    """The controller part of one node. Belongs to the control thread.

    Args:
        services: The services of its control plane.
        deciders: The components that decide requests.
        driver: Its replica of the metadata quorum.
        publisher: Has the committed image.
        first_records: The first records of a new cluster.
        session_ms: ``broker.session.timeout.ms``.
        listeners: Names of the controller listeners.
        passes: Elections that the active controller runs at intervals.
        watched_listener: The brokers' listener that is watched (see `BrokerWatch`); None disables
            the watch.
    """

    def __init__(
        self,
        services: Services,
        *,
        deciders: Deciders,
        driver: ReplicaDriver,
        publisher: Publisher,
        first_records: Sequence[Message],
        session_ms: int,
        listeners: Sequence[str],
        passes: Sequence[LeaderPass],
        watched_listener: str | None,
    ) -> None:
        self._services = services
        self._controller, self._jobs, self._contexts = deciders
        self._driver = driver
        self._publisher = publisher
        self._bootstrap = first_records
        self._session_ns = session_ms * NS_PER_MS
        self.listeners = frozenset(listeners)
        self._passes = LeaderPasses(services, passes, self._ask)
        self._watch = watched_listener and BrokerWatch(
            services, node_id=driver.quorum.key.node_id, listener=watched_listener, ask=self._ask
        )
        self._timer: Timer | None = None
        self._epoch = -1
        """The epoch in which this node is the active controller; -1 while it is not."""

    def take(self, event: "_core.Request") -> None:
        """Handle a request of a controller listener."""
        request = remote_request(event, ROWS, self._services.core, self._services.replies)
        if request is None:
            return
        row = ROWS[event.api_key]
        if row is ENVELOPE:
            self._open_envelope(request)
            return
        self._services.requests.begin(request)
        self._services.requests.made(request, partial(self._hand_over, request, row))

    def _hand_over(self, request: RemoteRequest, row: Row) -> None:
        """Give an open request to its owner."""
        if row.owner is Owner.QUORUM or row.api_key in VOTER_APIS:
            self._driver.take(request)
        elif row.owner is Owner.IMAGE:
            self._jobs.take(request)
        elif self._driver.leads:
            self._controller.take(request)
        else:
            self._respond(request, _not_controller(row))

    def _open_envelope(self, outer: RemoteRequest) -> None:
        requests = self._services.requests
        if not self._driver.leads:
            requests.begin(outer)
            self._respond(outer, EnvelopeResponse(error_code=NotControllerError.code))
            return
        try:
            envelope = cast("EnvelopeRequest", outer.decode())
            inner = EnvelopedRequest(outer, envelope, FORWARDED)
        except ProtocolError:
            requests.begin(outer)
            self._respond(outer, EnvelopeResponse(error_code=InvalidRequestError.code))
            return
        requests.begin(inner)
        requests.made(inner, partial(self._hand_over_inner, inner))

    def _hand_over_inner(self, inner: EnvelopedRequest) -> None:
        """Give an open request of an envelope to its owner."""
        if inner.api_key in VOTER_APIS:
            self._driver.take(inner)
        elif inner.owner is Owner.CONTROLLER:
            self._controller.take(inner)
        else:
            self._jobs.take(inner)

    def _respond(self, request: PendingRequest, message: Message | None) -> None:
        if message is None:
            self._services.requests.abandon(request, NotControllerError.code)
        else:
            self._services.requests.respond_at_once(request, message)

    # The active controller.

    def end_turn(self) -> None:
        """Become the active controller or resign, after committed records were published."""
        leads = self._driver.leads
        epoch = self._driver.quorum.leader_epoch if leads else -1
        if epoch != self._epoch:
            self._epoch = epoch
            self._contexts.active = None
            if leads:
                self._begin()
            else:
                self._passes.end()
                if self._watch:
                    self._watch.end()
        if not leads:
            # In every turn: an epoch that began and ended in one turn has left requests, too.
            self._controller.renounce()
        active = self._contexts.active
        if active is not None:
            self._arm(active)
            if self._watch:
                self._watch.look(self._publisher.image, active)

    def _begin(self) -> None:
        """Start all sessions again: the log does not contain those of the previous controller."""
        now_ns = self._services.core.now_ns()
        self._contexts.active = ActiveController(BrokerSessions(self._session_ns, now_ns))
        self._begin_cluster()
        self._passes.begin()

    def _begin_cluster(self) -> None:
        if self._driver.leads:
            self._ask(LocalRequest(self._first_records, on_response=self._on_begun))

    def _on_begun(self, response: Message) -> None:
        if cast("BrokerHeartbeatResponse", response).error_code:
            self._later("the first records", self._begin_cluster)

    def _first_records(self, context: Context) -> Outcome:
        """Abort an open transaction of another controller; give a new cluster its features."""
        records: list[Message] = []
        if self._publisher.in_transaction:
            records.append(AbortTransactionRecord())
        if not self._publisher.image.features:
            records += with_min_isr(self._bootstrap, context.settings.int(MIN_ISR))
        return MetadataWrite(records, lambda code: BrokerHeartbeatResponse(error_code=code))

    def _arm(self, active: ActiveController) -> None:
        """Set the timer for the end of the next session."""
        if self._timer is not None and not self._timer.is_over:
            return
        deadline_ns = active.sessions.deadline_ns(self._publisher.image.brokers.values())
        if deadline_ns is not None:
            self._timer = self._services.timers.once(
                "the session of a broker", deadline_ns + NS_PER_MS, self._fence
            )

    def _fence(self) -> None:
        if self._driver.leads and self._contexts.active is not None:
            # A rejected request (for example, the disk is full) is sent again after a pause: the
            # session has ended, so its deadline would fire at once.
            self._timer = self._later("the session of a broker", self._fence)
            self._ask(LocalRequest(fence_one, on_response=partial(self._on_fenced, self._timer)))

    def _on_fenced(self, again: Timer, response: Message) -> None:
        if not cast("BrokerHeartbeatResponse", response).error_code:
            again.cancel()

    def _later(self, name: str, action: Callable[[], object]) -> Timer:
        due_ns = self._services.core.now_ns() + RETRY_MS * NS_PER_MS
        return self._services.timers.once(name, due_ns, action)

    def _ask(self, request: LocalRequest) -> None:
        self._services.requests.begin(request)
        self._controller.take(request)


def _not_controller(row: Row) -> Message | None:
    """Return NOT_CONTROLLER for an API with a top-level error code; None closes the connection."""
    name = "".join(part.capitalize() for part in row.name.split("_")) + "Response"
    made: Any = getattr(messages, name)
    try:
        return cast("Message", made(error_code=NotControllerError.code))
    except TypeError:
        return None
