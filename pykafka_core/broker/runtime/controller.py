"""The controller: requests in, metadata committed, replies out. Runs on the control thread alone.

Theory of operation. A request that only reads is answered at once from the committed image. One
that may write waits in a queue; when no batch is in flight, the queue's requests are handled one
after another on a draft, each seeing what those before it propose, until the batch is full. The
batch goes to the quorum; their replies are parked behind it, reads of the draft included, so an
uncommitted state is never seen. On `Committed` the draft becomes the image, the core takes the
step, and only then the replies leave: a client that was told of a topic can use it. On `Rejected`
the draft is dropped, unless the disk is full and there is a reserve to try again with.

The core is asked before a batch is proposed whether it can take the step, which it has to once the
batch is committed. A batch of several requests that is refused, by the core or by the quorum, is
taken apart: its requests wait at the head of the queue, and each goes alone.

What stands alone (a request, an answer, a fact from the core) fails alone: it costs its connection, or nothing. What
proposes, commits and applies raises out of `take` and `advance`, which ends the control thread (`faults`).
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar, assert_never, cast

from pykafka_core import _core
from pykafka_core.broker.guarded_log import SURVIVED, GuardedLogger
from pykafka_core.broker.notices import Notices
from pykafka_core.broker.runtime.facts import CoreFacts
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests import Asked, RemoteRequest
from pykafka_core.broker.seam.core import Core
from pykafka_core.broker.seam.metadata_log import append_metadata
from pykafka_core.broker.seam.projection import Projection
from pykafka_core.broker.storage.reserve import Reserve
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.errors import (
    BrokerNotAvailableError,
    InvalidConfigError,
    PolicyViolationError,
    UnknownServerError,
    error_of,
)
from pykafka_core.handlers.context import Context, ProducerIds
from pykafka_core.handlers.outcome import Maintain, Maintained, Outcome, Propose, Steps
from pykafka_core.handlers.registry import BY_KEY
from pykafka_core.metadata.image import mutators
from pykafka_core.metadata.image.delta import delta_of
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.records.codec import encode
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.quorum import (
    BATCH_BYTES_MAX,
    BATCH_BYTES_SOFT_MAX,
    Committed,
    MetadataQuorum,
    Rejected,
    batch_size,
)

SLICE_NS = 10_000_000
"""How long a request may be worked on before other requests get their turn."""

T = TypeVar("T")

_log = GuardedLogger(__name__)


class Node(NamedTuple):
    """What does not change while the broker runs."""

    node_id: int
    cluster_id: str
    new_id: Callable[[], bytes]


class _Batch:
    """Requests whose records travel together."""

    __slots__ = "draft", "full", "parked", "records", "size", "values"

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.records: list[Message] = []
        self.values: list[bytes] = []
        self.size = 0
        self.full = False
        self.parked: list[tuple[Asked, Propose | Message]] = []


class _Job(NamedTuple):
    """A request whose handler was asked: its outcome, or the steps to it."""

    asked: Asked
    work: Outcome | Steps


_UNFINISHED: Message = cast("Message", object())
"""In place of an outcome: the deadline came first."""


class _Maintenance(NamedTuple):
    """A request that waits for its logs: one slot for each command."""

    asked: Asked
    outcome: Maintain
    results: list[Maintained | None]


class Controller:
    """Answers requests and commits what they change.

    Args:
        core: Executes the commands.
        quorum: Decides what is committed.
        image: As loaded; everything in it is committed.
        node: This broker.
        projection: Makes the core's steps.
        facts: Answers the handlers' questions.
        faults: Takes note of what failed alone.
        new_token: Gives a token that is not open; shared with ``quorum``.
        snapshots: Writes the image now and then; None where nothing outlives the process.
        reserve: Space for a batch that finds the disk full; None where there is none.
    """

    def __init__(
        self,
        *,
        core: Core,
        quorum: MetadataQuorum,
        image: MetadataImage,
        node: Node,
        projection: Projection,
        facts: CoreFacts,
        faults: Faults,
        new_token: Callable[[], int],
        snapshots: Snapshots | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._core = core
        self._reserve = reserve
        self._snapshots = snapshots
        self._committed_bytes = 0
        self._quorum = quorum
        self._image = image
        self._node = node
        self._projection = projection
        self._facts = facts
        self._faults = faults
        self._new_token = new_token
        self._settings = projection.settings(image)
        self._producer_ids = ProducerIds()
        self._notices = Notices(core.now_ns)
        self._writers: deque[Asked] = deque()
        self._jobs: deque[_Job] = deque()
        self._retention: int | None = None
        """The token of the retention that runs."""
        self._building: _Batch | None = None
        self._deciding: _Job | None = None
        self._cancelled: set[int] = set()
        """Of requests that wait; empty while none does."""
        self._in_flight: _Batch | None = None
        self._alone = 0
        self._maintained: dict[int, tuple[_Maintenance, int]] = {}
        self._replies: list[tuple[int, bytes]] = []

    @property
    def image(self) -> MetadataImage:
        """The committed image. May be read from any thread: it is replaced, never changed."""
        return self._image

    @property
    def in_flight(self) -> bool:
        """Whether a batch waits for the quorum."""
        return self._in_flight is not None

    @property
    def idle(self) -> bool:
        """Nothing in flight and nothing waiting."""
        return not (
            self._in_flight or self._writers or self._maintained or self._jobs or self._building
        )

    @property
    def faults(self) -> Faults:
        """What failed alone, so far."""
        return self._faults

    def take(self, event: "_core.Event") -> None:
        """Take in one event. Raises only what ends the broker: a commit that cannot be carried out."""
        match event:
            case _core.Appended():
                self._on_appended(event)
                return
            case _core.Request():
                action = partial(self._on_request, event)
            case _core.Cancelled():
                action = partial(self._on_cancelled, event)
            case _core.Maintained():
                action = partial(self._on_maintained, event)
            case _core.TopicsMissing():
                action = partial(self._on_topics_missing, event)
            case _core.PartitionState():
                action = partial(self._on_partition_state, event)
            case _core.DiskState():
                action = partial(self._on_disk_state, event)
            case _core.Replica():
                return  # a follower's progress: there is none on a single node
            case _:
                action = partial(assert_never, event)
        self._faults.guard(f"event {type(event).__name__}", action)

    def ask(self, asked: Asked) -> None:
        """Take in one request of this process."""
        self._take(asked)

    def advance(self) -> bool:
        """Decide what waits for a slice of time, and send answers; whether there is more to decide."""
        self._propose(self._core.now_ns() + SLICE_NS)
        self._run_jobs(self._core.now_ns() + SLICE_NS)
        if not self._writers and not self._jobs:
            self._cancelled.clear()
        self._send_replies()
        self._note_commits()
        return bool(self._jobs or self._building) or (
            bool(self._writers) and self._quorum.can_propose()
        )

    def _note_commits(self) -> None:
        size, self._committed_bytes = self._committed_bytes, 0
        snapshots = self._snapshots
        if snapshots is not None and size:
            self._faults.guard("a snapshot", lambda: snapshots.committed(self._image, size))

    def enforce_retention(self) -> None:
        """Have the core delete what is past its limits, unless it is still at it."""
        if self._retention is None:
            token = self._new_token()
            self._core.enforce_retention(token)
            self._retention = token

    def write_snapshot_if_due(self) -> None:
        """Something that has to be done now and then, when nothing is committed for long."""
        if self._snapshots is not None:
            self._snapshots.write_if_due(self._image)

    def fail_all(self, error_code: int) -> None:
        """Answer everything that waits with an error: the broker stops."""
        waiting = [*self._writers, *(asked for asked, _ in self._parked())]
        waiting += [job.asked for job in (*self._jobs, self._deciding) if job is not None]
        self._jobs.clear()
        self._building = self._deciding = None
        waiting += {id(m): m.asked for m, _ in self._maintained.values()}.values()
        self._writers.clear()
        self._maintained.clear()
        self._in_flight = None
        for asked in waiting:
            self._abandon(asked, error_code)

    # Events.

    def _on_request(self, event: _core.Request) -> None:
        row = BY_KEY.get(event.api_key)
        if row is None or not row.versions[0] <= event.api_version <= row.versions[1]:
            reason = f"API {event.api_key} version {event.api_version} is not answered here"
            self._core.close_connection(event.connection, reason)
        else:
            self._take(RemoteRequest(event, row, self._core, self._replies))

    def _on_cancelled(self, event: _core.Cancelled) -> None:
        """What was not begun, or only read, is dropped; records that are proposed may be committed already."""
        if self._writers or self._jobs:
            self._cancelled.add(event.id)

    def _on_appended(self, event: _core.Appended) -> None:
        batch = self._in_flight
        outcome = self._quorum.appended(event.token, event.error_code, event.offset)
        if outcome is None or batch is None:
            return
        if isinstance(outcome, Rejected):
            self._rejected(batch, outcome)
            return
        self._commit(
            batch.draft, outcome
        )  # should it fail, the batch is still there for `fail_all`
        self._in_flight = None
        self._committed_bytes += batch.size
        self._release(batch, 0)

    def _rejected(self, batch: _Batch, outcome: Rejected) -> None:
        self._in_flight = None
        if self._make_way():
            self._send(batch)
            return
        self._refuse(batch, outcome.error_code, error_of(outcome.error_code).name)

    def _make_way(self) -> bool:
        reserve = self._reserve
        return reserve is not None and reserve.make_way()

    def _on_maintained(self, event: _core.Maintained) -> None:
        if event.token == self._retention:
            self._retention = None
            return
        waiting = self._maintained.pop(event.token, None)
        if waiting is None:  # nobody asked: the metadata log made way for a snapshot
            if event.error_code:
                _log.error("the metadata log kept its old part: error code %d", event.error_code)
            return
        maintenance, slot = waiting
        maintenance.results[slot] = Maintained(event.error_code, event.offset)
        self._finish(maintenance)

    def _on_topics_missing(self, event: _core.TopicsMissing) -> None:
        from pykafka_core.broker.runtime.auto_create import missing_topics

        request = missing_topics(self._image, self._settings, event.names)
        if request is not None:
            self._take(request)

    def _on_partition_state(self, event: _core.PartitionState) -> None:
        if event.state not in ("offline", "read_only"):
            return
        topic = self._image.topics.by_id.get(event.topic_id)
        name = f"{topic.name if topic else event.topic_id.hex()}-{event.partition}"
        if self._notices.admit((name, event.state)) is None:
            return  # the inspection at the start and the first use find the same
        if event.state == "read_only":
            import shlex  # for a shell, and not at every start

            where = shlex.quote(os.path.join(self._facts.log_dir(), name))
            advice = f"; it refuses records: stop the broker and run pykafka-core repair {where}"
        else:
            advice = ""
        _log.error("partition %s is %s: %s%s", name, event.state, event.reason, advice)

    def _on_disk_state(self, event: _core.DiskState) -> None:
        level = logging.INFO if event.state == "ok" else logging.ERROR
        _log.log(level, "data directory is %s: %s", event.state, event.reason)

    # Requests.

    def _take(self, asked: Asked) -> None:
        if asked.writes:
            self._writers.append(asked)
            return
        job = self._begin(asked, self._image, 0)
        if job is not None:
            self._jobs.append(job)
            self._run_jobs(self._core.now_ns() + SLICE_NS)

    def _run_jobs(self, deadline_ns: int) -> None:
        """Carry on with the requests that read, one after the other, until the deadline."""
        while self._jobs and self._core.now_ns() < deadline_ns:
            job = self._jobs[0]
            if job.asked.id in self._cancelled:
                self._jobs.popleft()
                continue
            outcome = self._carry_on(job, deadline_ns)
            if outcome is _UNFINISHED:
                self._jobs.rotate(-1)  # the others get the next slices
                return
            self._jobs.popleft()
            if isinstance(outcome, Maintain):
                self._maintain(job.asked, outcome)
            elif outcome is not None:
                assert not isinstance(outcome, Propose), "only a row that writes may propose"
                self._answer(job.asked, partial(_reply, outcome, 0))

    def _begin(self, asked: Asked, image: MetadataImage, records_before: int) -> "_Job | None":
        """Ask the handler; ``None`` when the request was dealt with: malformed, or a bug."""
        outcome = self._guarded(
            asked, lambda: asked.decide(self._context(asked, image, records_before))
        )
        return None if outcome is None else _Job(asked, outcome)

    def _carry_on(self, job: "_Job", deadline_ns: int) -> "Outcome | None":
        """Let a handler work until the deadline; its outcome, `_UNFINISHED`, or None as of `_begin`."""
        steps = job.work
        if not isinstance(steps, Generator):
            return steps
        return self._guarded(job.asked, lambda: self._steps(steps, deadline_ns))

    def _steps(self, steps: Steps, deadline_ns: int) -> Outcome:
        try:
            next(steps)
            while self._core.now_ns() < deadline_ns:
                next(steps)
        except StopIteration as end:
            return cast("Outcome", end.value)
        return _UNFINISHED

    def _guarded(self, asked: Asked, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except ProtocolError as error:
            reason = f"malformed request: {error}"
            self._faults.guard("a refusal", lambda: asked.refuse(reason))
        except SURVIVED as fault:
            self._faults.caught(f"the handler of {asked.name}", fault)
            self._abandon(asked, UnknownServerError.code)
        except BaseException:  # the broker ends: nobody may be left waiting
            self._abandon(asked, BrokerNotAvailableError.code)
            raise
        return None

    def _abandon(self, asked: Asked, error_code: int) -> None:
        self._faults.guard("the end of a request", lambda: asked.abandon(error_code))

    def _answer(self, asked: Asked, reply: Callable[[], Message]) -> None:
        """Make and send an answer; a bug in making it costs the connection."""
        try:
            asked.answer(reply())
        except SURVIVED as fault:
            self._faults.caught(f"the answer to {asked.name}", fault)
            self._abandon(asked, UnknownServerError.code)

    def _context(self, asked: Asked, image: MetadataImage, records_before: int) -> Context:
        broker = image.brokers.get(self._node.node_id)
        return Context(
            image=image,
            settings=self._settings,
            facts=self._facts,
            producer_ids=self._producer_ids,
            node_id=self._node.node_id,
            cluster_id=self._node.cluster_id,
            broker_epoch=broker.epoch if broker else -1,
            next_offset=self._quorum.log_end_offset + records_before,
            now_ms=self._core.time_ms(),
            caller=asked.caller,
            new_id=self._node.new_id,
            warn=self._warn,
        )

    def _warn(self, kind: str, text: str) -> None:
        more = self._notices.admit(kind)
        if more is not None:
            _log.warning("%s%s", text, f" ({more} more since the last report)" if more else "")

    def _maintain(self, asked: Asked, outcome: Maintain) -> None:
        maintenance = _Maintenance(asked, outcome, [None] * len(outcome.commands))
        for slot, command in enumerate(outcome.commands):
            token = self._new_token()
            self._maintained[token] = (maintenance, slot)
            partition = (command.topic_id, command.partition)
            if not self._faults.guard(
                "a maintenance command",
                partial(self._core.delete_before, token, partition, command.offset),
            ):
                del self._maintained[token]
                maintenance.results[slot] = Maintained(UnknownServerError.code, -1)
        self._finish(maintenance)

    def _finish(self, maintenance: _Maintenance) -> None:
        results = [result for result in maintenance.results if result is not None]
        if len(results) == len(maintenance.results):
            self._answer(maintenance.asked, lambda: maintenance.outcome.reply(results))

    # Metadata.

    def _propose(self, deadline_ns: int) -> None:
        """Decide requests that write, until the batch is full, the deadline has come or none is left; then send it."""
        if self._building is None:
            if not self._writers or not self._quorum.can_propose():
                return
            self._building = _Batch(Draft(self._image))
        batch = self._building
        size_max = 1 if self._alone else BATCH_BYTES_SOFT_MAX
        while self._deciding is not None or self._writers:
            outcome = self._decide_next(batch, deadline_ns)
            if outcome is _UNFINISHED:
                return
            if batch.full or batch.size >= size_max or self._core.now_ns() >= deadline_ns:
                break
        self._building = None
        if not batch.values:
            self._release(batch, 0)
        elif problems := self._check(batch):
            self._refuse(batch, InvalidConfigError.code, "; ".join(problems))
        else:
            self._send(batch)

    def _check(self, batch: _Batch) -> list[str]:
        """What the core could not carry out of a batch if it were committed."""
        try:
            delta = delta_of(batch.draft.image, batch.draft.changes, self._node.node_id)
            settings = self._settings
            if delta.settings_changed:
                settings = self._projection.settings(batch.draft.image)
            step = self._projection.settings_of(delta, settings)
            return [] if step is None else self._core.check(step)
        except SURVIVED as fault:
            self._faults.caught("the check of a batch", fault)
            return [f"they cannot be checked: {fault}"]

    def _refuse(self, batch: _Batch, error_code: int, reason: str) -> None:
        """Answer with the error; but each request of a group gets its own try first."""
        if sum(map(_proposes, batch.parked)) > 1:
            self._writers.extendleft(asked for asked, _ in reversed(batch.parked))
            self._alone += len(batch.parked)
            return
        _log.error("metadata records were refused: %s", reason)
        self._release(batch, error_code)

    def _decide_next(self, batch: _Batch, deadline_ns: int) -> "Outcome | None":
        """Carry on with the request at hand, or with the next; what it decided joins the batch."""
        job = self._deciding
        if job is None:
            asked = self._writers.popleft()
            self._alone = max(self._alone - 1, 0)
            if asked.id in self._cancelled:
                return None
            job = self._begin(asked, batch.draft.image, len(batch.values))
            if job is None:
                return None
        outcome = self._carry_on(job, deadline_ns)
        self._deciding = job if outcome is _UNFINISHED else None
        if outcome is not None and outcome is not _UNFINISHED:
            self._join(batch, job.asked, outcome)
            if batch.full:
                self._writers.appendleft(job.asked)
        return outcome

    def _send(self, batch: _Batch) -> None:
        self._in_flight = batch
        append_metadata(self._core, self._quorum.propose(batch.values))

    def _join(self, batch: _Batch, asked: Asked, outcome: Outcome) -> None:
        """Add a request's records to the batch, all or none, and park its reply.

        The batch is full when the records need another one; the request is as if it had not been decided.
        """
        assert not isinstance(outcome, Maintain), "a row that writes does not maintain"
        if isinstance(outcome, Propose) and outcome.records:
            try:
                if not self._add(batch, outcome.records):
                    if batch.values:
                        batch.full = True
                        return
                    outcome = outcome.reply(PolicyViolationError.code)
            except SURVIVED as fault:
                self._faults.caught(f"the records of {asked.name}", fault)
                batch.draft = mutators.draft_of(self._image, batch.records)
                self._abandon(asked, UnknownServerError.code)
                return
        batch.parked.append((asked, outcome))

    def _add(self, batch: _Batch, records: Sequence[Message]) -> bool:
        """Whether ``records`` still fit; then they are part of the batch."""
        values = [encode(record) for record in records]
        size = batch_size(values)
        if batch.size + size > BATCH_BYTES_MAX:
            return False
        for record in records:
            mutators.apply(batch.draft, record)
        batch.records += records
        batch.values += values
        batch.size += size
        return True

    def _commit(self, draft: Draft, committed: Committed) -> None:
        image, changes = draft.image, draft.changes
        image.offset = committed.last_offset
        if changes.features:
            image.features_epoch = committed.last_offset
        delta = delta_of(image, changes, self._node.node_id)
        if delta.settings_changed:
            self._settings = self._projection.settings(image)
        self._projection.report_ignored(delta, self._settings)
        self._core.apply(self._projection.step(delta, self._settings))
        self._image = image

    def _release(self, batch: _Batch, error_code: int) -> None:
        for asked, outcome in batch.parked:
            self._answer(asked, partial(_reply, outcome, error_code))

    def _parked(self) -> list[tuple[Asked, Propose | Message]]:
        batches = (self._in_flight, self._building)
        return [parked for batch in batches if batch is not None for parked in batch.parked]

    def _send_replies(self) -> None:
        if self._replies:
            replies = self._replies.copy()
            self._replies.clear()
            if not self._faults.guard("an answer", lambda: self._core.respond(replies)):
                for reply in replies:
                    self._faults.guard("an answer", partial(self._core.respond, [reply]))


def _proposes(parked: tuple[Asked, Propose | Message]) -> bool:
    outcome = parked[1]
    return isinstance(outcome, Propose) and bool(outcome.records)


def _reply(outcome: Propose | Message, error_code: int) -> Message:
    return outcome.reply(error_code) if isinstance(outcome, Propose) else outcome
