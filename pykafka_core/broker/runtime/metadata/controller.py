"""The controller: requests that write, in batches through the quorum.

Runs only on the control thread.

Theory of operation. Requests wait in a queue. When no batch is in flight, they are handled one
after another on a proposed image, which includes the changes proposed by earlier requests, until
the batch is full. The batch goes to the quorum; its responses, also to requests that only read the
proposed image, are held back until the commit, so uncommitted state is never visible. The publisher
applies every committed batch, of any node, to the committed image; the core applies the step, and
only then the responses are sent: a client can immediately use a topic that it created.

A rejected batch has changed nothing; if the disk is full, a reserve allows another attempt. A batch
that another leader may still commit is in doubt and never proposed again: its requests are
forwarded to that leader (`pass_on`), or fail with NOT_CONTROLLER.

Before a batch is proposed, the core checks whether it can apply the step, because it must apply it
after the commit. A batch of several requests that is refused, by the core or by the quorum, is
split: its requests return to the head of the queue, and each gets its own batch.

An error within a request fails that request; an error in proposing or committing is raised and ends
the broker (`faults`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.metadata.quorum_port import QuorumPort, Replaced
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.time_slice import advanced
from pykafka_core.broker.safe_logging import SURVIVED, GuardedLogger
from pykafka_core.broker.storage.reserve import Need, Reserve
from pykafka_core.errors import (
    InvalidConfigError,
    KafkaStorageError,
    NotControllerError,
    PolicyViolationError,
    UnknownServerError,
    error_of,
)
from pykafka_core.handlers.outcome import LogCommands, MetadataWrite, Outcome, Reply, Work, collect
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.proposed import ProposedImage
from pykafka_core.metadata.records.codec import encode
from pykafka_core.protocol.messages import (
    AbortTransactionRecord,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    Message,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
)
from pykafka_core.quorum.events import InDoubt
from pykafka_core.quorum.quorum import (
    BATCH_BYTES_MAX,
    BATCH_BYTES_SOFT_MAX,
    Committed,
    Proposal,
    Rejected,
    batch_size,
)

_log = GuardedLogger(__name__)

_NEEDS = {
    RegisterBrokerRecord: Need.START,
    RegisterControllerRecord: Need.START,
    BrokerRegistrationChangeRecord: Need.START,
    PartitionChangeRecord: Need.START,
    ProducerIdsRecord: Need.START,
    AbortTransactionRecord: Need.START,
    RemoveTopicRecord: Need.DELETION,
}
"""Needs of records that do not make metadata grow permanently."""

_OF_CLIENTS = frozenset({43, 45, 57})
"""ElectLeaders, AlterPartitionReassignments and UpdateFeatures also create such records, but
clients may send them without limit."""

_NO_OP = encode(NoOpRecord())

Parked = MetadataWrite | Reply
"""The response to a request once its batch is committed."""


class _Batch:
    """Requests whose records are proposed together, and the resulting image."""

    __slots__ = "is_full", "kraft_version", "parked", "proposed", "size", "values"

    def __init__(self, committed: MetadataImage) -> None:
        self.proposed = ProposedImage(committed)
        self.values: list[bytes] = []
        self.size = 0
        self.is_full = False
        self.kraft_version: int | None = None
        self.parked: list[tuple[PendingRequest, Parked]] = []

    def add(self, records: Sequence[Message]) -> Work[bool]:
        """Add all ``records``; return False if they do not fit.

        After an exception none are added.
        """
        values = yield from collect(map(encode, records))
        size = batch_size(values)
        if self.size + size > BATCH_BYTES_MAX:
            return False
        yield from self.proposed.add(records)
        self.values += values
        self.size += size
        return True

    def need(self) -> Need:
        """Return how much of the reserve the batch may use."""
        return need_of(self._proposing(), self.proposed.records)

    def proposing_count(self) -> int:
        """Return the number of requests with records."""
        return sum(1 for _ in self._proposing())

    def _proposing(self) -> Iterator[PendingRequest]:
        for request, outcome in self.parked:
            if isinstance(outcome, MetadataWrite) and outcome.records:
                yield request


def need_of(requests: Iterable[PendingRequest], records: Iterable[Message]) -> Need:
    """Return how much of the reserve a batch of these requests may use; ``records`` are not
    empty.
    """
    if any(one.api_key in _OF_CLIENTS for one in requests):
        return Need.GROWTH
    records = tuple(records)
    if any(isinstance(record, FeatureLevelRecord) for record in records):
        return Need.START  # the first records of a cluster
    return max(_NEEDS.get(type(record), Need.GROWTH) for record in records)


class Controller:
    """Handles requests that write, and commits their records.

    Args:
        core: Provides the clock.
        quorum: Commits the records.
        publisher: Has the committed image, and creates the next one.
        contexts: Creates the contexts of handlers.
        requests: The table of open requests.
        jobs: Create and send the responses.
        faults: Records faults of single items.
        reserve: Space for a batch when the disk is full; None without a reserve.
        pass_on: Forwards a request to the next controller if possible and returns whether it did;
            otherwise the request fails with NOT_CONTROLLER.
        must_append: Whether the node stops when a batch that it proposed cannot be appended.
    """

    def __init__(
        self,
        *,
        core: Core,
        quorum: QuorumPort,
        publisher: Publisher,
        contexts: Contexts,
        requests: OpenRequests,
        jobs: Jobs,
        faults: Faults,
        reserve: Reserve | None,
        pass_on: Callable[[PendingRequest], bool],
        must_append: bool,
    ) -> None:
        self._core = core
        self._quorum = quorum
        self._publisher = publisher
        self._contexts = contexts
        self._requests = requests
        self._jobs = jobs
        self._faults = faults
        self._reserve = reserve
        self._pass_on = pass_on
        self._must_append = must_append
        self._waiting: deque[PendingRequest] = deque()
        self._alone = 0
        """Number of requests at the head of the queue that each get their own batch."""
        self._work: Work[None] | None = None
        """The batch that is being built or published."""
        self._deadline_ns = 0
        self._in_flight: _Batch | None = None

    @property
    def in_flight(self) -> bool:
        """Whether a batch waits for its commit by the quorum."""
        return self._in_flight is not None

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has work without an event."""
        return self._work is not None or self._quorum.has_notice or self._can_decide

    @property
    def _can_decide(self) -> bool:
        return (
            bool(self._waiting)
            and self._in_flight is None
            and self._quorum.can_propose
            and self._waiting[0].admit()
        )

    def take(self, request: PendingRequest) -> None:
        """Queue a request."""
        request.unreserve()
        self._waiting.append(request)

    def advance(self, deadline_ns: int) -> None:
        """Continue with the current batch, committed records, or the queued requests, until the
        deadline.
        """
        self._deadline_ns = deadline_ns
        work = self._work = self._work or self._next()
        if work is not None and advanced(work, self._core, deadline_ns) and self._work is work:
            self._work = None

    def _next(self) -> Work[None] | None:
        match self._quorum.take_notice():
            case Committed() as committed:
                return self._commit(committed)
            case Replaced(replay):
                return self._publisher.replace(replay)
            case Rejected(error_code):
                self._on_rejected(error_code)
            case InDoubt():
                self._on_in_doubt()
        return self._decide() if self._can_decide else None

    def renounce(self) -> None:
        """Forward the queued requests to the active controller, because it is not this node."""
        waiting, self._waiting = self._waiting, deque()
        self._alone = 0
        for request in waiting:
            if self._stays_here(request):
                self._requests.abandon(request, NotControllerError.code)

    def drop_all(self) -> None:
        """Drop everything when the broker stops."""
        self._waiting.clear()
        self._work = self._in_flight = None

    def write_no_op(self) -> None:
        """Commit a record without content, as Kafka's idle controllers do, unless there is a batch.

        The quorum compares how long its voters need for it.
        """
        is_idle = self._work is None and self._in_flight is None and self._quorum.can_propose
        if is_idle and not self._is_kept_from(Need.GROWTH):
            self._quorum.propose(Proposal((), (_NO_OP,)))

    def _decide(self) -> Work[None]:
        """Build a batch until it is full, the time has passed or the queue is empty; then propose
        it.
        """
        batch = _Batch(self._publisher.image)
        size_max = 1 if self._alone else BATCH_BYTES_SOFT_MAX
        while self._waiting and self._waiting[0].admit():
            request = self._waiting.popleft()
            self._alone = max(self._alone - 1, 0)
            image, count = batch.proposed.image, len(batch.values)
            context = partial(self._contexts.proposed, request, image, count)
            outcome = yield from self._requests.decide(request, context)
            if outcome is not None:
                yield from self._join(batch, request, outcome)
            if batch.is_full:
                self._waiting.appendleft(request)
            if batch.is_full or batch.size >= size_max or self._core.now_ns() >= self._deadline_ns:
                break
            yield
        yield from self._propose(batch)

    def _join(self, batch: _Batch, request: PendingRequest, outcome: Outcome) -> Work[None]:
        """Add all of a request's records to the batch or none, and hold back its response.

        The batch is full if the records do not fit; the request then counts as not handled.
        """
        assert not isinstance(outcome, LogCommands), (
            "a row of the controller has no logs maintained"
        )
        parked: Parked = outcome
        if isinstance(outcome, MetadataWrite) and outcome.records:
            try:
                fits = yield from batch.add(outcome.records)
            except SURVIVED as fault:
                self._faults.caught(f"the records of {request.name}", fault)
                self._requests.abandon(request, UnknownServerError.code)
                return
            if not fits and batch.values:
                batch.is_full = True
                return
            if not fits:
                parked = outcome.reply(PolicyViolationError.code)
            elif outcome.kraft_version is not None:
                batch.kraft_version = outcome.kraft_version
        batch.parked.append((request, parked))

    def _propose(self, batch: _Batch) -> Work[None]:
        problems = (yield from self._publisher.problems(batch.proposed)) if batch.values else []
        if not self._quorum.leads:
            # This node lost leadership while it built the batch; a request that did not fit is in
            # the queue again.
            self._renounce_batch(batch)
            self.renounce()
        elif not self._quorum.can_propose:
            # The voters changed, or another epoch of this node began, while it built the batch.
            self._put_back(batch)
        elif problems:
            self._refuse(batch, InvalidConfigError.code, "; ".join(problems))
        elif batch.values and self._is_kept_from(batch.need()):
            self._refuse(batch, KafkaStorageError.code, "the disk is full")
        elif batch.values:
            self._send(batch)
        else:
            self._release(batch, 0)

    def _is_kept_from(self, need: Need) -> bool:
        """Whether a batch must not use the rest of the reserve.

        On a cluster node, the log would use it.
        """
        return self._must_append and self._reserve is not None and self._reserve.is_kept_from(need)

    def _send(self, batch: _Batch) -> None:
        self._in_flight = batch
        for request, _ in batch.parked:
            request.unreserve()
        proposal = Proposal(batch.proposed.records, batch.values, batch.kraft_version)
        self._quorum.propose(proposal)

    def _commit(self, committed: Committed) -> Work[None]:
        """Publish a batch; if it has records and a batch is in flight, it is that batch."""
        batch = self._in_flight if committed.records else None
        yield from self._publisher.publish(committed)
        self._publisher.note_size(committed.size if batch is None else batch.size)
        if batch is None:
            return
        self._in_flight = None
        self._release(batch, 0)

    def _on_rejected(self, error_code: int) -> None:
        batch, self._in_flight = self._in_flight, None
        assert batch is not None, "a rejected batch was proposed"
        if self._reserve is not None and self._reserve.make_way(batch.need()):
            self._send(batch)
        else:
            self._refuse(batch, error_code, error_of(error_code).name)

    def _on_in_doubt(self) -> None:
        """Drop the batch in flight; a later leader decides whether it is committed."""
        batch, self._in_flight = self._in_flight, None
        if batch is not None:
            self._renounce_batch(batch)

    def _renounce_batch(self, batch: _Batch) -> None:
        """Forward the requests of a batch in doubt, or fail them.

        Its records may still be committed. A client that retries may get, for example,
        TOPIC_ALREADY_EXISTS, as in Kafka.
        """
        for request, outcome in batch.parked:
            if self._stays_here(request):
                self._jobs.respond(request, partial(_reply, outcome, NotControllerError.code))

    def _stays_here(self, request: PendingRequest) -> bool:
        """Forward a request if possible, and return whether it is not; an exception ends it."""
        return self._requests.made(request, partial(self._pass_on, request)) is False

    def _refuse(self, batch: _Batch, error_code: int, reason: str) -> None:
        """Fail the requests with the error; several requests are first retried in separate
        batches.
        """
        if batch.proposing_count() > 1:
            self._put_back(batch)
            self._alone += len(batch.parked)
            return
        _log.error("metadata records were refused: %s", reason)
        self._release(batch, error_code)

    def _put_back(self, batch: _Batch) -> None:
        """Return the requests of a batch to the head of the queue: they are decided again."""
        for request, _ in reversed(batch.parked):
            request.unreserve()
            self._waiting.appendleft(request)

    def _release(self, batch: _Batch, error_code: int) -> None:
        for request, outcome in batch.parked:
            self._jobs.respond(request, partial(_reply, outcome, error_code))


def _reply(outcome: Parked, error_code: int) -> Reply:
    return outcome.reply(error_code) if isinstance(outcome, MetadataWrite) else outcome
