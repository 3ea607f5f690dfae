"""The life cycle of one shard: it is loaded, used, and dropped when an append to its partition
fails.

Theory of operation. Operations run immediately, one after the other. The records and responses of
an operation join a batch. One batch is in flight; the next ones grow until it is committed, so with
a slow disk batches become larger, not more numerous. A response is sent when its batch is
committed. This includes responses of operations that only read, because they may have read
uncommitted state. While no batch is in flight, a response without records is sent at once.

Operations are queued while the shard is loaded, and while more than `UNCOMMITTED_BYTES_MAX` bytes
or `UNCOMMITTED_RESPONSES_MAX` responses wait for the disk. No further requests are read from their
connections until then.

A shard is loaded up to the log end, and is used once all of that is committed: the last records of
the previous leader may be lost if this node fails, so no marker or response may depend on them
before (contract/replication.md#T1).

After a failed append, all pending operations fail, the state machine is dropped with all its
uncommitted changes, and the partition is loaded again. After repeated failures, the delay before
the next load grows (`Reloads`).
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from pykafka_core._core import Core, RecordsRead
from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.load_backoff import Reloads
from pykafka_core.broker.runtime.requests.unread import Unread
from pykafka_core.broker.runtime.timers import Timer, Timers
from pykafka_core.broker.safe_logging import SURVIVED, GuardedLogger
from pykafka_core.coordinator.shard import (
    CoordinatorResult,
    KeyValue,
    Shard,
    TransactionEnd,
    Waiter,
    Within,
)
from pykafka_core.errors import (
    BrokerNotAvailableError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionCoordinatorFencedError,
    UnknownLeaderEpochError,
    UnknownProducerIdError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.outcome import Work
from pykafka_core.metadata.health import Replicas
from pykafka_core.types import FOREVER_NS, PartitionId

S = TypeVar("S", bound=Shard)

UNCOMMITTED_BYTES_MAX = 4 * 1024 * 1024
UNCOMMITTED_RESPONSES_MAX = 2000
LOAD_BYTES = 256 * 1024
"""Bytes of one read while loading."""
LOAD_PATIENCE_NS = 500_000_000
"""How long operations wait for a load before they fail with COORDINATOR_LOAD_IN_PROGRESS. Kafka
fails them immediately."""
DUE_NS = 200_000
"""How long one shard runs its deadlines before the next events are handled. After a start, the
deadlines of all transactions may have passed, in every shard."""
_BATCH_OVERHEAD = 128
"""Upper bound for the bytes of a batch in addition to its records."""

_NOT_HERE = frozenset(
    error.code
    for error in (
        UnknownTopicOrPartitionError,
        NotLeaderOrFollowerError,
        FencedLeaderEpochError,
        UnknownLeaderEpochError,
        UnknownTopicIdError,
    )
)
"""Error codes of an append or a load which mean that this node no longer leads the partition, or
not in this leader epoch."""
_STOPS = BrokerNotAvailableError.code

_OF_PRODUCER = frozenset(
    error.code
    for error in (
        OutOfOrderSequenceNumberError,
        InvalidProducerEpochError,
        InvalidTxnStateError,
        TransactionCoordinatorFencedError,
        UnknownProducerIdError,
        ProducerFencedError,
        TransactionAbortableError,
    )
)
"""Error codes of an append that concern the producer of a transaction; all others concern the
log."""

_log = GuardedLogger(__name__)


class ShardPlace(NamedTuple):
    """The partition of a shard, and its leader epoch."""

    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int

    @property
    def id(self) -> PartitionId:
        """The partition, without the leader epoch."""
        return self.topic_id, self.partition

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Responses(Protocol):
    """Receives the results and effects of operations."""

    def on_response(self, waiter: Waiter, response: object) -> None:
        """Deliver a committed result."""

    def refused(self, waiter: Waiter, error_code: int) -> None:
        """Deliver an error."""

    def committed(self, place: "ShardPlace", effect: object) -> None:
        """Execute a committed effect of the shard at that place."""


class _Batch:
    """Results of operations that are appended together: records of one transaction, records outside
    of transactions, or one marker.
    """

    __slots__ = (
        "bytes_left",
        "deadlines",
        "effects",
        "records",
        "responses",
        "size",
        "stamp",
        "transaction_waiters",
    )

    def __init__(self, bytes_max: int, stamp: Within | TransactionEnd | None = None) -> None:
        self.stamp = stamp
        self.records: list[KeyValue] = []
        self.responses: list[tuple[Waiter, object]] = []
        self.transaction_waiters: list[Waiter] = []
        """Waiters whose operations belong to the transaction; the batch may also have responses for
        others."""
        self.effects: list[object] = []
        self.deadlines: list[tuple[int, Mapping[Hashable, int]]] = []
        """The time of each turn, and the deadlines that it set; never empty in a pending batch."""
        self.bytes_left = bytes_max
        self.size = 0

    @property
    def since_ns(self) -> int:
        """Time of the first turn."""
        return self.deadlines[0][0]

    @property
    def is_written(self) -> bool:
        """Whether the batch has records or a marker to append."""
        return bool(self.records) or isinstance(self.stamp, TransactionEnd)

    def takes(self, result: CoordinatorResult, size: int) -> bool:
        if not result.records and result.stamp is None:
            return True
        if isinstance(result.stamp, TransactionEnd) or isinstance(self.stamp, TransactionEnd):
            return False
        return self.stamp == result.stamp and self.bytes_left >= size

    def add(self, result: CoordinatorResult, size: int, deadlines: Mapping[Hashable, int]) -> None:
        self.deadlines.append((result.now_ns, deadlines))
        self.records += result.records
        self.responses += result.responses
        if result.stamp is not None:
            self.transaction_waiters += (waiter for waiter, _ in result.responses)
        self.effects += result.effects
        self.bytes_left -= size
        self.size += size


class _Queued(NamedTuple, Generic[S]):
    run: Callable[[S, Waiter, CoordinatorResult], None]
    waiter: Waiter
    arrived_ns: int


class ShardHost(Generic[S]):
    """Hosts one shard. Used only by the control thread.

    Args:
        place: Its partition.
        make: Creates an empty state machine.
        batch_bytes_max: ``max.message.bytes`` of the partition.
        ready: Called when `carry_on_loading`, `flush` or `work_off` has work.
        core: Has the log, and the clocks.
        completions: Pending appends and reads.
        timers: Run the deadlines of the machine.
        unread: Has the arrival times of requests that will be submitted later.
        faults: Records an operation that raised an unexpected exception.
        responses: Receives results and effects.
        replicas: Records a failed load.
    """

    def __init__(
        self,
        place: ShardPlace,
        make: Callable[[], S],
        *,
        batch_bytes_max: int,
        ready: "Callable[[ShardHost[S]], object]",
        core: Core,
        completions: Completions,
        timers: Timers,
        unread: Unread,
        faults: Faults,
        responses: Responses,
        replicas: Replicas,
    ) -> None:
        self.place = place
        self._make = make
        self._ready = ready
        self._bytes_max = 0
        self.limit_batches(batch_bytes_max)
        self._core = core
        self._completions = completions
        self._timers = timers
        self._unread = unread
        self._faults = faults
        self._responses = responses
        self._replicas = replicas
        self._machine: S | None = None
        """None during a load, and after a failed one."""
        self._refusal: int | None = None
        """The error code of all further operations, once the shard is closed or its load failed."""
        self._queue: deque[_Queued[S]] = deque()
        self._waiters: dict[Waiter, None] = {}
        """Waiters of operations that the machine has run, in their order, until their results are
        delivered."""
        self._gathered: deque[_Batch] = deque()
        self._in_flight: _Batch | None = None
        self._token = 0
        self._timer: Timer | None = None
        self._patience: Timer | None = None
        """Ends the wait of operations for a load whose records are not committed soon."""
        self._replaying: Work[None] | None = None
        self._load_began_ns = 0
        self._reloads = Reloads()
        self._begin_load()

    @property
    def machine(self) -> S | None:
        """The state machine; None while it is loaded, and once it is dropped."""
        return self._machine

    @property
    def is_loading(self) -> bool:
        """Whether the shard is being loaded, or will be."""
        return self._machine is None and self._refusal is None

    def submit(
        self, run: Callable[[S, Waiter, CoordinatorResult], None], waiter: Waiter, arrived_ns: int
    ) -> None:
        """Run an operation now, or when the shard is loaded and below its limits."""
        if self._refusal is not None:
            self._responses.refused(waiter, self._refusal)
        elif self.is_loading and self._core.now_ns() > self._load_began_ns + LOAD_PATIENCE_NS:
            self._responses.refused(waiter, CoordinatorLoadInProgressError.code)
        elif self._machine is None or self._queue or self._is_full:
            self._queue.append(_Queued(run, waiter, arrived_ns))
        else:
            self._run(self._machine, run, waiter)

    def limit_batches(self, bytes_max: int) -> None:
        """Set ``max.message.bytes`` of the partition. Batches that already exist may be too large
        after that.
        """
        self._bytes_max = max(bytes_max - _BATCH_OVERHEAD, 0)

    def flush(self) -> None:
        """Append the next batch, unless one is in flight."""
        while self._gathered and self._in_flight is None:
            batch = self._gathered.popleft()
            if batch.is_written:
                self._append(batch)
            else:
                self._release(batch)

    def work_off(self, deadline_ns: int) -> None:
        """Run queued operations until the deadline, at least one; `ready` is called if more can
        run.
        """
        while self._queue and self._machine is not None and not self._is_full:
            run, waiter, _ = self._queue.popleft()
            self._run(self._machine, run, waiter)
            if self._core.now_ns() >= deadline_ns:
                break
        self._resume()

    def carry_on_loading(self) -> Work[None] | None:
        """Return the replay of the last read, in slices, if it has not started; from now on it
        belongs to the caller.
        """
        work, self._replaying = self._replaying, None
        return work

    def close(self, error_code: int) -> None:
        """Fail all operations, because this node no longer leads the partition."""
        self._refusal = error_code
        self._replicas.coordinator_closed(self.place.id)
        self._drop(error_code)

    def topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        """Remove the data about deleted topics from the machine."""
        if self._machine is not None:
            machine = self._machine
            self._take(lambda result: machine.topics_deleted(topics, result))

    # Operations.

    @property
    def _is_full(self) -> bool:
        gathered = self._gathered
        return bool(gathered) and (
            sum(batch.size for batch in gathered) > UNCOMMITTED_BYTES_MAX
            or sum(len(batch.responses) for batch in gathered) > UNCOMMITTED_RESPONSES_MAX
        )

    def _run(
        self, machine: S, run: Callable[[S, Waiter, CoordinatorResult], None], waiter: Waiter
    ) -> None:
        self._waiters[waiter] = None
        try:
            self._take(partial(run, machine, waiter))
        except KafkaError as error:
            self._refuse(waiter, error.code)
        except SURVIVED as fault:
            # The operation may have changed the machine, so all uncommitted changes are dropped.
            self._faults.caught(f"an operation of {self.place}", fault)
            self._fail(UnknownServerError.code)

    def _take(self, run: Callable[[CoordinatorResult], None], due_ns: int | None = None) -> None:
        result = CoordinatorResult(
            self._core.now_ns(), self._core.time_ms(), self._bytes_max, due_ns
        )
        run(result)
        self._gather(result)
        if not self._queue:
            self._arm()

    def _gather(self, result: CoordinatorResult) -> None:
        """Add an operation's results to a batch; deliver them at once if nothing is pending."""
        deadlines = {} if self._machine is None else self._machine.deadlines.take_set()
        if not result.is_written and self._in_flight is None and not self._gathered:
            self._release(result)
            return
        if not (result.is_written or result.responses or result.effects):
            return
        size = self._bytes_max - result.bytes_left
        if not self._gathered or not self._gathered[-1].takes(result, size):
            self._gathered.append(_Batch(self._bytes_max, result.stamp))
        self._gathered[-1].add(result, size, deadlines)
        self._ready(self)

    def _resume(self) -> None:
        """Let `work_off` continue with the queue; without one, await the next deadline."""
        if self._machine is None:
            return
        if self._queue and not self._is_full:
            self._ready(self)
        else:
            self._arm()

    def _refuse(self, waiter: Waiter, error_code: int) -> None:
        """Deliver an error after the pending batches: the operation may have read uncommitted
        state.
        """
        result = CoordinatorResult(self._core.now_ns(), 0, self._bytes_max)
        result.respond(waiter, error_code)
        self._gather(result)

    # Appends.

    def _append(self, batch: _Batch) -> None:
        self._in_flight = batch
        self._token = self._completions.open(self._on_appended)
        try:
            self._send(self._token, batch)
        except SURVIVED as fault:
            self._faults.caught(f"an append to {self.place}", fault)
            self._completions.complete(self._token, Completed(UnknownServerError.code, -1))

    def _send(self, token: int, batch: _Batch) -> None:
        place, stamp = self.place, batch.stamp
        if isinstance(stamp, TransactionEnd):
            self._core.write_markers(token, [(*place.id, *stamp)])
        elif stamp is None:
            self._core.append(token, place.id, place.leader_epoch, batch.records)
        else:
            self._core.append(token, place.id, place.leader_epoch, batch.records, producer=stamp)

    def _on_appended(self, completed: Completed) -> None:
        batch, self._in_flight = self._in_flight, None
        assert batch is not None, "an append completes once"
        error_code = completed.error_code or _marker_code(completed.value)
        if error_code:
            self._append_failed(batch, error_code)
            return
        self._release(batch)
        self.flush()
        self._resume()

    def _append_failed(self, batch: _Batch, error_code: int) -> None:
        name = error_of(error_code).name
        _log.error("%s refused %d records with %s", self.place, len(batch.records), name)
        not_here = error_code in _NOT_HERE
        if error_code in _OF_PRODUCER:
            self._respond([(waiter, error_code) for waiter in batch.transaction_waiters])
        self._fail((NotCoordinatorError if not_here else CoordinatorNotAvailableError).code)

    def _release(self, done: _Batch | CoordinatorResult) -> None:
        if isinstance(done, _Batch) and self._machine is not None:
            now_ns = self._core.now_ns()
            for since_ns, deadlines in done.deadlines:
                self._machine.deadlines.postpone(deadlines, now_ns - since_ns)
        self._respond(done.responses)
        for effect in done.effects:
            self._responses.committed(self.place, effect)

    def _respond(self, responses: Sequence[tuple[Waiter, object]]) -> None:
        for waiter, response in responses:
            if waiter in self._waiters:
                del self._waiters[waiter]
                if isinstance(response, int):
                    self._responses.refused(waiter, response)
                else:
                    self._responses.on_response(waiter, response)

    # Life.

    def _fail(self, error_code: int) -> None:
        self._drop(error_code)
        now_ns = self._load_began_ns = self._core.now_ns()
        pause_ns = self._reloads.pause_ns(now_ns)
        if pause_ns:
            name = f"the load of {self.place}"
            self._timer = self._timers.once(name, now_ns + pause_ns, self._begin_load)
        else:
            self._begin_load()

    def _drop(self, error_code: int) -> None:
        """Fail all operations, and drop the machine."""
        self._completions.cancel(self._token)
        self._end_patience()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters = [*self._waiters, *(queued.waiter for queued in self._queue)]
        self._machine = self._in_flight = self._replaying = None
        self._waiters.clear()
        self._queue.clear()
        self._gathered.clear()
        for waiter in waiters:
            self._responses.refused(waiter, error_code)

    def _begin_load(self) -> None:
        self._timer = None
        self._load_began_ns = self._core.now_ns()
        self._read(self._make(), 0)

    def _read(self, machine: S, offset: int) -> None:
        self._token = self._completions.open(partial(self._on_read, machine))
        try:
            self._core.read_records(self._token, self.place.id, offset, LOAD_BYTES)
        except SURVIVED as fault:
            self._completions.cancel(self._token)
            self._load_failed(f"{type(fault).__name__}: {fault}")

    def _on_read(self, machine: S, completed: Completed) -> None:
        read = completed.value
        assert isinstance(read, RecordsRead), "a read completes as RecordsRead"
        if completed.error_code:
            self._load_refused(completed.error_code)
            return
        self._replaying = self._replay(machine, read)
        self._ready(self)

    def _replay(self, machine: S, read: RecordsRead) -> Work[None]:
        try:
            for record in RecordBatchReader(read.records, start=read.offset, control=True):
                _replay_one(machine, record)
                yield
                if self._refusal is not None:
                    break
        except SURVIVED as fault:
            self._load_failed(f"{type(fault).__name__}: {fault}")
            return
        if self._refusal is not None:
            return  # closed during the replay: this node no longer leads the partition
        if self._core.now_ns() > self._load_began_ns + LOAD_PATIENCE_NS:
            self._refuse_queued(CoordinatorLoadInProgressError.code)
        if read.next_offset < read.log_end_offset:
            self._read(machine, read.next_offset)
        elif read.log_end_offset == 0:
            self._loaded(machine)
        else:
            self._await_commit(machine, read.log_end_offset)

    def _await_commit(self, machine: S, log_end_offset: int) -> None:
        due_ns = self._load_began_ns + LOAD_PATIENCE_NS
        refuse = partial(self._refuse_queued, CoordinatorLoadInProgressError.code)
        self._patience = self._timers.once(f"the load of {self.place}", due_ns, refuse)
        self._token = self._completions.open(partial(self._on_committed, machine))
        epoch = self.place.leader_epoch
        try:
            self._core.when_committed(self._token, self.place.id, epoch, log_end_offset)
        except SURVIVED as fault:
            self._completions.cancel(self._token)
            self._load_failed(f"{type(fault).__name__}: {fault}")

    def _on_committed(self, machine: S, completed: Completed) -> None:
        self._end_patience()
        if completed.error_code:
            self._load_refused(completed.error_code)
        else:
            self._loaded(machine)

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _loaded(self, machine: S) -> None:
        self._machine = machine
        self._take(machine.loaded)
        self._resume()

    def _load_refused(self, error_code: int) -> None:
        if error_code in _NOT_HERE or error_code == _STOPS:
            # The next image no longer has this node as the leader, and closes this host.
            self.close(NotCoordinatorError.code)
        else:
            self._load_failed(error_of(error_code).name)

    def _load_failed(self, reason: str) -> None:
        self._refusal = NotCoordinatorError.code
        self._replicas.coordinator_failed(self.place.id)
        self._drop(self._refusal)
        _log.error(
            "%s cannot be loaded: %s; its groups or transactions are refused until the broker starts with it repaired",
            self.place,
            reason,
        )

    def _refuse_queued(self, error_code: int) -> None:
        queued, self._queue = self._queue, deque()
        for operation in queued:
            self._responses.refused(operation.waiter, error_code)

    # Deadlines.

    def _arm(self) -> None:
        assert self._machine is not None, "a machine in use has deadlines"
        due_ns = self._machine.deadlines.next_ns()
        if due_ns == FOREVER_NS or due_ns > self._judged_ns():
            return
        if self._timer is not None and self._timer.due_ns <= due_ns:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.once(str(self.place), due_ns, self._on_due)

    def _judged_ns(self) -> int:
        """Return the time up to which deadlines may run.

        A session does not expire while its heartbeat waits in the queue, or while a response to its
        member waits for a commit.
        """
        oldest_ns = min((queued.arrived_ns for queued in self._queue), default=FOREVER_NS)
        uncommitted = self._in_flight or (self._gathered[0] if self._gathered else None)
        return oldest_ns if uncommitted is None else min(oldest_ns, uncommitted.since_ns)

    def _on_due(self) -> None:
        """Run deadlines: the horizon has passed the first one.

        Every operation that arrived earlier has ended, waits in the queue, or belongs to an unread
        request.
        """
        self._timer = None
        machine, place = self._machine, self.place
        if machine is None:
            return
        due_ns = min(
            self._core.horizon_ns(),
            self._judged_ns(),
            self._unread.oldest_ns(place.topic, place.partition),
        )
        stop_ns = self._core.now_ns() + DUE_NS
        try:
            while machine.deadlines.next_ns() <= due_ns and self._machine is machine:
                self._take(machine.run_due, due_ns)
                if self._core.now_ns() > stop_ns:
                    break
        except SURVIVED as fault:
            self._faults.caught(f"a deadline of {self.place}", fault)
            self._fail(UnknownServerError.code)
        self.flush()
        self._resume()


def _marker_code(response: object) -> int:
    """Return the error code of a marker; 0 if the batch was not a marker."""
    return response.codes[0] if isinstance(response, MarkerCodes) else 0


def _replay_one(machine: Shard, record: Record) -> None:
    key = record.key
    if key is None:
        raise ValueError(f"the record at offset {record.offset} has no key")
    # The key of a control record has four bytes: version 0 and a type. A coordinator's key of kind
    # 0 is always longer.
    if len(key) == 4 and key.startswith(b"\0\0"):
        machine.replay_marker(record.producer_id, committed=key[3] == 1)
    else:
        machine.replay(record.producer_id, key, record.value)
