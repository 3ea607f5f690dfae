"""From an event to who deals with it: the machine that the control loop drives.

Theory of operation. A request belongs to the owner that its row in `handlers.registry` names. The
controller decides requests that write, one after the other; everything else is a job that takes turns
with others. What either waits for is a token in the completion table; who waits is in the table of open
requests. So a completion is looked up in one place, a connection that closes and a broker that stops are
dealt with in one place, and an answer may be minutes away.

What stands alone (a request, an answer, a fact from the core) fails alone: it costs its connection, or nothing. What
proposes, commits and applies raises out of `take` and `advance`, which ends the control thread (`faults`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, assert_never, cast

from pykafka_core import _core
from pykafka_core._core import Core
from pykafka_core.broker.guarded_log import SURVIVED
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.coordinators.coordinators import Coordinators
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.levels import Levels
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.requests import Asked, RemoteRequest, Replies, admitted
from pykafka_core.broker.runtime.turns import TURN_NS
from pykafka_core.handlers.registry import BY_KEY, VOTER_APIS, Owner

if TYPE_CHECKING:
    from pykafka_core._core import Event
    from pykafka_core.broker.runtime.membership.assignments import Assignments
    from pykafka_core.broker.runtime.membership.membership import Membership

E = TypeVar("E")


class Dispatcher:
    """Takes in events and this process's requests.

    Args:
        core: Its clock; closes connections.
        requests: Everything that is not over.
        replies: Where answers of clients' requests go.
        completions: What others were asked for.
        publisher: Has the committed image.
        controller: Owns requests that write.
        jobs: Works on all others.
        coordinators: Own what internal topics hold.
        levels: Reports what the core says of partitions and disk.
        faults: Takes note of what failed alone.
        membership: This node's part in a cluster of several; None where it is alone.
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
        """Nobody waits for an answer."""
        return not self._requests and not self._controller.in_flight

    @property
    def in_flight(self) -> bool:
        """Whether a batch waits for the quorum."""
        return self._controller.in_flight

    def take(self, event: "Event") -> None:
        """Take in one event. Raises only what ends the broker: a commit that cannot be carried out."""
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
        """Report the faults of one event that a stop left in the queue."""
        match event:
            case _core.PartitionState():
                self._guard(event, self._levels.partition)
            case _core.DiskState():
                self._guard(event, self._levels.disk)
            case _:
                pass

    def ask(self, asked: Asked) -> None:
        """Take in one request of this process."""
        self._dispatch(asked)

    def advance(self) -> bool:
        """Decide what waits for a slice of time, and send answers; whether there is more to decide."""
        if self.membership is not None:
            self.membership.begin_turn()
        self._controller.advance(self._core.now_ns() + TURN_NS)
        if self.membership is not None:
            self.membership.end_turn()
        self._jobs.run(self._core.now_ns() + TURN_NS)
        self._coordinators.advance(self._core.now_ns() + TURN_NS)
        self._requests.send_replies()
        self._publisher.note_commits()
        return bool(self._jobs) or self._controller.is_busy or self._coordinators.is_busy

    def fail_all(self, error_code: int) -> None:
        """End everything that waits with an error: the broker stops."""
        self._requests.fail_all(error_code)
        self._completions.cancel_all()
        self._controller.drop_all()
        self._jobs.drop_all()
        self._coordinators.drop_all()

    @property
    def _assignments(self) -> "Assignments | None":
        return None if self.membership is None else self.membership.assignments

    def _guard(self, event: E, action: Callable[[E], object]) -> None:
        """Have one event dealt with that stands alone."""
        try:
            action(event)
        except SURVIVED as fault:
            self._faults.caught(f"event {type(event).__name__}", fault)

    def _on_cancelled(self, event: _core.Cancelled) -> None:
        self._requests.cancel(event.id)

    def _on_request(self, event: _core.Request) -> None:
        member = self.membership
        role = member.role_at(event.listener) if member is not None else None
        if role is not None:
            role.take(event)
            return
        asked = admitted(event, BY_KEY, self._core, self._replies)
        if asked is not None:
            self._dispatch(asked)

    def _on_topics_missing(self, event: _core.TopicsMissing) -> None:
        # Not before: most brokers are never asked for a topic that is missing.
        from pykafka_core.broker.runtime.requests.auto_create import missing_topics

        request = missing_topics(self._publisher.image, self._publisher.settings, event.names)
        if request is not None:
            self._dispatch(request)

    def _dispatch(self, asked: Asked) -> None:
        self._requests.begin(asked)
        match asked.owner:
            case Owner.CONTROLLER if self.membership is not None and not self.membership.leads:
                self.membership.send_on(asked)
            case Owner.CONTROLLER if self.membership is not None and _changes_voters(asked):
                self.membership.change_voters(cast("RemoteRequest", asked))
            case Owner.ANY_NODE if self.membership is not None:
                self._jobs.take(asked)
            case Owner.CONTROLLER | Owner.ANY_NODE:
                self._controller.take(asked)
            case Owner.IMAGE | Owner.LOCAL | Owner.SHARD:
                self._jobs.take(asked)
            case Owner.QUORUM:
                raise AssertionError("a listener of controllers hands these to its own part")
            case _:
                assert_never(asked.owner)


def _changes_voters(asked: Asked) -> bool:
    return isinstance(asked, RemoteRequest) and asked.api_key in VOTER_APIS
