"""The interface between a coordinator's shard and the runtime: a state machine over one partition
of an internal topic.

Theory of operation. A shard holds the state of the records in its partition, and state that is not
stored, such as pending requests of a rebalance. An operation runs immediately: it changes the state
and adds records and responses to a `CoordinatorResult`. The runtime appends the records of all
operations of an event batch at once, and holds back their responses until the high watermark has
passed the append, so that clients never see uncommitted state. If an append fails, the runtime
discards the shard, fails all pending requests, and loads the partition again. A shard therefore
needs no code to undo changes.

A rejected operation raises a `KafkaError` before it changes anything; so an operation appends
before it changes the state.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol

from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.errors import UnknownServerError

Waiter = Hashable
"""A pending request, which gets one response now or later. Opaque here."""

KeyValue = tuple[bytes, bytes | None]
"""Key and value of a stored record; the value None is a tombstone."""

_RECORD_OVERHEAD = 32
"""At least the bytes of a record's framing and its share of the batch header."""


def _size(record: KeyValue) -> int:
    key, value = record
    return _RECORD_OVERHEAD + len(key) + len(value or b"")


class Within(NamedTuple):
    """The open transaction of the records; they take effect when it is committed."""

    producer_id: int
    producer_epoch: int


class TransactionEnd(NamedTuple):
    """The marker that ends a producer's transaction on one partition (contract/kafka.md#21)."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class BatchFullError(UnknownServerError):
    """Records exceed a batch of ``max.message.bytes``; clients get the same error as from Kafka."""


class CoordinatorResult:
    """The result of one operation.

    Args:
        now_ns: Monotonic time at which the operation runs, however long its request waited. So it
            never decreases from turn to turn, and deadlines that count from it never move back.
        now_ms: Wall-clock time.
        bytes_max: Maximum bytes of the records, so that they fit into one batch.
        due_ns: The time up to which deadlines may run; requests that arrived later may not have run
            yet. By default ``now_ns``.

    Attributes:
        records: Records to append, in order.
        responses: Pending requests and their responses, sent after the commit. An `int` is an error
            code.
        effects: Actions for the runtime after the commit, in order.
        stamp: The transaction of all records, or the transaction that the turn ends; then there are
            no records.
    """

    __slots__ = (
        "bytes_left",
        "due_ns",
        "effects",
        "now_ms",
        "now_ns",
        "records",
        "responses",
        "stamp",
    )

    def __init__(self, now_ns: int, now_ms: int, bytes_max: int, due_ns: int | None = None) -> None:
        self.now_ns = now_ns
        self.now_ms = now_ms
        self.due_ns = now_ns if due_ns is None else due_ns
        self.bytes_left = bytes_max
        self.records: list[KeyValue] = []
        self.responses: list[tuple[Waiter, object]] = []
        self.effects: list[object] = []
        self.stamp: Within | TransactionEnd | None = None

    @property
    def is_written(self) -> bool:
        """Return whether there is anything to append."""
        return bool(self.records) or isinstance(self.stamp, TransactionEnd)

    def append(self, records: Iterable[KeyValue]) -> None:
        """Add records, all or none. The iterable is not read past the limit.

        Raises:
            BatchFullError: They do not fit into one batch with the other records of this turn.
        """
        taken = []
        left = self.bytes_left
        for record in records:
            left -= _size(record)
            if left < 0:
                raise BatchFullError
            taken.append(record)
        self.bytes_left = left
        self.records += taken

    def append_some(self, records: Iterable[KeyValue]) -> int:
        """Add records from the first on while they fit; return their number."""
        before = len(self.records)
        for record in records:
            size = _size(record)
            if size > self.bytes_left:
                break
            self.bytes_left -= size
            self.records.append(record)
        return len(self.records) - before

    def respond(self, waiter: Waiter, response: object) -> None:
        """Respond to a pending request. Each gets one response, in this turn or in a later one."""
        self.responses.append((waiter, response))

    def then(self, effect: object) -> None:
        """Add an action for the runtime after this turn is committed.

        A shard that is loaded again requests it again.
        """
        self.effects.append(effect)


class Shard(Protocol):
    """A state machine over one partition. Used only by the control thread.

    Attributes:
        deadlines: When `run_due` has work to do.
    """

    deadlines: Deadlines

    def replay(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Apply a stored record, in log order, before the shard is used.

        Args:
            producer_id: The producer of the open transaction; -1 outside of a transaction.

        Raises:
            ValueError: The bytes are not a record of this topic. (A record of an unknown kind is
                skipped.)
        """

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Apply the end of a transaction."""

    def loaded(self, result: CoordinatorResult) -> None:
        """Start using the shard after all records are replayed.

        Deadlines count from ``result.now_ns``.
        """

    def run_due(self, result: CoordinatorResult) -> None:
        """Run the first deadline that has passed at ``result.due_ns``, if any.

        Only one per turn, so that the records fit.
        """

    def topics_deleted(self, topics: Mapping[str, bytes], result: CoordinatorResult) -> None:
        """Remove the state of deleted topics; ``topics`` has ids by name."""
