"""Routes events to the component that handles them; driven by the control loop.

Theory of operation. A request belongs to the owner in its row of `handlers.registry`. The
controller handles requests that may write metadata, one after another; all others are jobs that
take turns. Each pending command has a token in the completion table, and each pending request is in
the table of open requests. So a completion is looked up in one place, a closed connection and the
stop of the broker are handled in one place, and a response may take minutes.

An independent item (a request, a response, a report from the core) fails alone: at most its
connection is closed. Errors while metadata is proposed, committed and applied are raised from
`take` and `advance`, which ends the control thread (`faults`).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar, assert_never, cast

from pykafka_core import _core
from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.coordinators.coordinators import Coordinators
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.requests.jobs import JOBS_NS, Jobs
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import (
    PendingRequest,
    RemoteRequest,
    Replies,
    remote_request,
)
from pykafka_core.broker.runtime.state_logging import Levels
from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS
from pykafka_core.broker.safe_logging import SURVIVED
from pykafka_core.handlers.registry import BY_KEY, VOTER_APIS, Owner

if TYPE_CHECKING:
    from pykafka_core._core import Event
    from pykafka_core.broker.runtime.membership.assignments import Assignments
    from pykafka_core.broker.runtime.membership.membership import Membership

E = TypeVar("E")


class Dispatcher:
    """Handles events and this process's requests.

    Args:
        core: Provides the clock.
        requests: All open requests.
        replies: Responses to clients' requests.
        completions: Pending commands.
        publisher: Has the committed image.
        controller: Handles requests that may write metadata.
        jobs: Handles all other requests.
        coordinators: Own the state in internal topics.
        levels: Reports the states of partitions and disk.
        faults: Records faults of single items.
        membership: This node's membership in a cluster; None for a single broker.
    """

    def __init__(
        self,
        *,
        core: Core,
        requests: OpenRequests,
        replies: Replies,
        completions: Completions,
        publisher: Publisher,
        controller: Controller,
        jobs: Jobs,
        coordinators: Coordinators,
        levels: Levels,
        faults: Faults,
        membership: "Membership | None" = None,
    ) -> None:
        self._core = core
        self._requests = requests
        self._replies = replies
        self._completions = completions
        self._publisher = publisher
        self._controller = controller
        self._jobs = jobs
        self._coordinators = coordinators
        self._levels = levels
        self._faults = faults
        self.membership = membership

    @property
    def idle(self) -> bool:
        """Whether no requests are open and no batch is in flight."""
        return not self._requests and not self._controller.in_flight

    @property
    def in_flight(self) -> bool:
        """Whether a batch waits for its commit by the quorum."""
        return self._controller.in_flight

    def take(self, event: "Event") -> None:
        """Handle one event.

        Raises only errors that end the broker: a commit that cannot be applied.
        """
        match event:
            case _core.Request():
                self._guard(event, self._on_request)
            case _core.Appended() | _core.Maintained():
                self._completions.complete(event.token, Completed(event.error_code, event.offset))
            case _core.LogDirs():
                self._completions.complete(event.token, Completed(0, -1, event))
            case _core.Producers():
                completed = Completed(event.error_code, -1, event.states)
                self._completions.complete(event.token, completed)
            case _core.RecordsRead():
                self._completions.complete(event.token, Completed(event.error_code, -1, event))
            case _core.MarkersWritten():
                self._completions.complete(
                    event.token, Completed(0, -1, MarkerCodes(event.error_codes))
                )
            case _core.Replied():
                self._completions.complete(event.token, Completed(event.error_code, -1, event))
            case _core.VerifyTransaction():
                self._guard(event, self._coordinators.verify)
            case _core.Cancelled():
                self._guard(event, self._on_cancelled)
            case _core.TopicsMissing():
                self._guard(event, self._on_topics_missing)
            case _core.PartitionState():
                self._guard(event, self._levels.partition)
                if self._assignments is not None:
                    self._guard(event, self._assignments.note_partition)
            case _core.DiskState():
                self._guard(event, self._levels.disk)
                if self._assignments is not None:
                    self._guard(event, self._assignments.note_disk)
            case _core.Replica():
                if self.membership is not None:
                    self._guard(event, self.membership.isr.note)
            case _:
                self._guard(event, assert_never)

    def take_late(self, event: "Event") -> None:
        """Report the faults in an event that was left in the queue by a stop."""
        match event:
            case _core.PartitionState():
                self._guard(event, self._levels.partition)
            case _core.DiskState():
                self._guard(event, self._levels.disk)
            case _:
                pass

    def ask(self, request: PendingRequest) -> None:
        """Accept a request of this process."""
        self._dispatch(request)

    def advance(self) -> bool:
        """Work on pending requests for a bounded time, and send responses; return whether there is
        more work.
        """
        if self.membership is not None:
            self.membership.begin_turn()
        self._controller.advance(self._core.now_ns() + TIME_SLICE_NS)
        if self.membership is not None:
            self.membership.end_turn()
        self._jobs.run(self._core.now_ns() + JOBS_NS)
        self._coordinators.advance(self._core.now_ns() + TIME_SLICE_NS)
        self._requests.send_replies()
        self._publisher.note_commits()
        return bool(self._jobs) or self._controller.is_busy or self._coordinators.is_busy

    def fail_all(self, error_code: int) -> None:
        """Complete all pending requests with an error when the broker stops."""
        self._requests.fail_all(error_code)
        self._completions.cancel_all()
        self._controller.drop_all()
        self._jobs.drop_all()
        self._coordinators.drop_all()

    @property
    def _assignments(self) -> "Assignments | None":
        return None if self.membership is None else self.membership.assignments

    def _guard(self, event: E, action: Callable[[E], object]) -> None:
        """Handle one independent event; report its fault."""
        try:
            action(event)
        except SURVIVED as fault:
            self._faults.caught(f"event {type(event).__name__}", fault)

    def _on_cancelled(self, event: _core.Cancelled) -> None:
        self._jobs.cancel(event.id)
        self._requests.cancel(event.id)

    def _on_request(self, event: _core.Request) -> None:
        member = self.membership
        role = member.role_at(event.listener) if member is not None else None
        if role is not None:
            role.take(event)
            return
        request = remote_request(event, BY_KEY, self._core, self._replies)
        if request is not None:
            self._dispatch(request)

    def _on_topics_missing(self, event: _core.TopicsMissing) -> None:
        # Imported only here: most brokers never get a request for a missing topic.
        from pykafka_core.broker.runtime.requests.auto_create import missing_topics

        request = missing_topics(self._publisher.image, self._publisher.settings, event.names)
        if request is not None:
            self._dispatch(request)

    def _dispatch(self, request: PendingRequest) -> None:
        self._requests.begin(request)
        self._requests.made(request, partial(self._hand_over, request))

    def _hand_over(self, request: PendingRequest) -> None:
        """Give an open request to its owner."""
        match request.owner:
            case Owner.CONTROLLER if self.membership is not None and not self.membership.leads:
                self.membership.send_on(request)
            case Owner.CONTROLLER if self.membership is not None and _changes_voters(request):
                self.membership.change_voters(cast("RemoteRequest", request))
            case Owner.ANY_NODE if self.membership is not None:
                self._jobs.take(request)
            case Owner.CONTROLLER | Owner.ANY_NODE:
                # A single broker proposes the records that a request of any node needs.
                self._controller.take(request)
            case Owner.IMAGE | Owner.LOCAL | Owner.SHARD:
                self._jobs.take(request)
            case Owner.QUORUM:
                raise AssertionError("a listener of controllers hands these to its own part")
            case _:
                assert_never(request.owner)


def _changes_voters(request: PendingRequest) -> bool:
    return isinstance(request, RemoteRequest) and request.api_key in VOTER_APIS
