"""The shard of a transaction coordinator without a broker; its records can be loaded again."""

from collections.abc import Callable, Collection
from functools import partial
from itertools import count

from pykafka_core.coordinator.shard import CoordinatorResult, KeyValue, Waiter
from pykafka_core.coordinator.transaction.add_partitions import add_partitions
from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.end_transaction import end_transaction
from pykafka_core.coordinator.transaction.init_producer_id import InitProducerId, init_producer_id
from pykafka_core.coordinator.transaction.markers_written import markers_written
from pykafka_core.coordinator.transaction.records import transaction_record
from pykafka_core.coordinator.transaction.settings import TransactionSettings
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    TV2,
    TopicPartition,
    Transaction,
)
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.coordinator.transaction.verify_partitions import verify_partitions
from pykafka_core.errors import KafkaError
from pykafka_core.protocol.messages import EndTxnResponse, InitProducerIdResponse
from pykafka_core.types import FOREVER_NS

MS = 1_000_000
HOUR_MS = 3_600_000
BYTES_MAX = 1_000_000
TIMEOUT_MS = 60_000
NOW_MS = 1_700_000_000_000
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = tuple(
    TransactionState
)[:6]

SETTINGS = TransactionSettings(
    max_timeout_ms=900_000,
    id_expiration_ms=24 * HOUR_MS,
    abort_timed_out_interval_ms=10_000,
    remove_expired_interval_ms=HOUR_MS,
)

Operation = Callable[[Transactions, Waiter, CoordinatorResult], None]
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


class World:
    """A loaded shard and its log.

    Attributes:
        effects: Requested markers that are not written yet.
        ids_at_hand: Whether new producer ids are available.
    """

    def __init__(self, *stored: Transaction, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.now_ms = NOW_MS
        self.began_ms = NOW_MS
        self.records: list[KeyValue] = []
        self.effects: list[WriteMarkers] = []
        self.ids_at_hand = True
        self._ids = count(100)
        self.shard = self._empty()
        self._load([transaction_record(one) for one in stored])

    def ask(self, operation: Operation) -> object:
        """Run an operation; return its response or error code. Checks that a refusal changes
        nothing.
        """
        result, before = self.turn(), self.dump()
        try:
            operation(self.shard, "waiter", result)
        except KafkaError as error:
            assert self.dump() == before, "a refusal changes nothing"
            assert not any((result.records, result.responses, result.effects))
            return error.code
        self._take(result)
        ((waiter, response),) = result.responses
        assert waiter == "waiter"
        return response

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; each deadline is run when it is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ns := self.shard.deadlines.next_ns()) <= self._ns(end_ms):
            self.now_ms = max(self.now_ms, self.began_ms - (-due_ns // MS))
            result = self.turn()
            self.shard.run_due(result)
            self._take(result)
        self.now_ms = end_ms

    def write_markers(self) -> None:
        """Report all requested markers as written, twice."""
        effects, self.effects = self.effects, []
        for effect in effects:
            for _ in range(2):
                assert self.ask(written(effect)) is None

    def reload(self) -> "World":
        """Return a world that was loaded from the stored records."""
        other = World(bytes_max=self.bytes_max)
        other.now_ms, other._ids = self.now_ms, self._ids
        other.shard = other._empty()
        other._load(self.records)
        return other

    def dump(self) -> tuple[object, ...]:
        """Return the whole state of the shard."""
        keys = [key for key in self.shard.deadlines._due if key]
        dues = {key: self.shard.deadlines.get(key) for key in keys}
        return dict(self.shard.by_id), self.shard.bytes_used, dues, tuple(self.shard.to_search)

    def one(self, transactional_id: str = "x") -> Transaction:
        return self.shard.by_id[transactional_id]

    @property
    def is_quiet(self) -> bool:
        """Return whether no deadline is pending, except that of the expiry."""
        return len(self.shard.deadlines) == 1 and self.shard.deadlines.next_ns() != FOREVER_NS

    def turn(self) -> CoordinatorResult:
        return CoordinatorResult(self._ns(self.now_ms), self.now_ms, self.bytes_max)

    def _ns(self, at_ms: int) -> int:
        return (at_ms - self.began_ms) * MS

    def _empty(self) -> TransactionShard:
        return TransactionShard(SETTINGS, lambda: next(self._ids) if self.ids_at_hand else None)

    def _load(self, records: list[KeyValue]) -> None:
        for key, value in records:
            self.shard.replay(-1, key, value)
        self.records = list(records)
        result = self.turn()
        self.shard.loaded(result)
        self._take(result)

    def _take(self, result: CoordinatorResult) -> None:
        self.records += result.records
        for effect in result.effects:
            assert isinstance(effect, WriteMarkers)
            self.effects.append(effect)


def transaction(
    state: TransactionState = EMPTY,
    *,
    transactional_id: str = "x",
    producer_id: int = 7,
    epoch: int = 5,
    last_epoch: int = -1,
    previous_id: int = -1,
    next_id: int = -1,
    timeout_ms: int = TIMEOUT_MS,
    partitions: Collection[TopicPartition] | None = None,
    start_ms: int | None = None,
    version: int = TV2,
) -> Transaction:
    """Return a stored transaction, by default with the values that fit its state."""
    has_partitions = state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)
    if partitions is None:
        partitions = (T0, U0) if has_partitions else ()
    if start_ms is None:
        start_ms = -1 if state is EMPTY else NOW_MS
    return Transaction(
        transactional_id,
        state,
        producer_id,
        epoch,
        last_epoch,
        previous_id,
        next_id,
        timeout_ms,
        frozenset(partitions),
        start_ms,
        NOW_MS,
        version,
    )


def init(
    producer_id: int = -1, epoch: int = -1, *, name: str = "x", timeout_ms: int = TIMEOUT_MS
) -> Operation:
    """Return an InitProducerId; by default of a new client."""
    return partial(init_producer_id, InitProducerId(name, timeout_ms, producer_id, epoch))


def add(
    producer_id: int,
    epoch: int,
    *partitions: TopicPartition,
    name: str = "x",
    version: int = TV2,
) -> Operation:
    """Return an AddPartitionsToTxn."""
    return partial(add_partitions, name, producer_id, epoch, partitions, version)


def verify(producer_id: int, epoch: int, *partitions: TopicPartition, name: str = "x") -> Operation:
    """Return an AddPartitionsToTxn that only verifies."""
    return partial(verify_partitions, name, producer_id, epoch, partitions)


def commit(producer_id: int, epoch: int, *, name: str = "x", version: int = TV2) -> Operation:
    """Return an EndTxn that commits."""
    return partial(end_transaction, name, producer_id, epoch, True, version)


def abort(producer_id: int, epoch: int, *, name: str = "x", version: int = TV2) -> Operation:
    """Return an EndTxn that aborts."""
    return partial(end_transaction, name, producer_id, epoch, False, version)


def written(effect: WriteMarkers) -> Operation:
    """Return the operation that reports all markers as written."""
    return partial(
        markers_written, effect.transactional_id, effect.producer_id, effect.producer_epoch
    )


def producer(response: object) -> object:
    """Return producer id and epoch of a response, or an error code; 0 if it has no id."""
    if isinstance(response, InitProducerIdResponse | EndTxnResponse):
        assert response.error_code == 0
        has_none = response.producer_id == -1 and isinstance(response, EndTxnResponse)
        return 0 if has_none else (response.producer_id, response.producer_epoch)
    return 0 if response is None else response


def shape(one: Transaction) -> tuple[TransactionState, int, int]:
    """Return state, producer id and epoch."""
    return one.state, one.producer_id, one.producer_epoch


def without_last_epoch(by_id: dict[str, Transaction]) -> dict[str, Transaction]:
    """Return the transactions as they are after a load."""
    return {name: one._replace(last_producer_epoch=-1) for name, one in by_id.items()}
