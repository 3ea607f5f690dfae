"""What a coordinator's shard is to the runtime: a machine over one partition of an internal topic.

Theory of operation. A shard holds what the records of its partition say, and what they do not (who waits for a
rebalance). An operation runs on it at once: it changes the machine, and leaves records and answers in a `Turn`. The
runtime gathers the turns of an event batch into one append, and holds back all their answers until the high
watermark has passed it: nobody sees a state that is not committed. An append that fails ends the shard; the runtime
drops it, refuses whoever waits, and loads the partition again. So a machine has no code to undo anything.

An operation that is refused raises a `KafkaError` before it changes anything; so it appends before it changes.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol

from pykafka_core.errors import UnknownServerError

Waiter = Hashable
"""Somebody who waits for one answer, now or later. Opaque here."""

KeyValue = tuple[bytes, bytes | None]
"""A record as it is stored; a value of None is a tombstone."""

FOREVER_NS = 2**62

_RECORD_OVERHEAD = 32
"""At least what a record's framing and its share of a batch's header take."""


def _size(record: KeyValue) -> int:
    key, value = record
    return _RECORD_OVERHEAD + len(key) + len(value or b"")


class Within(NamedTuple):
    """Records are part of a producer's open transaction: they count when it is committed."""

    producer_id: int
    producer_epoch: int


class TransactionEnd(NamedTuple):
    """The marker that ends a producer's transaction on one partition (contract/kafka.md#21)."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class TurnFullError(UnknownServerError):
    """Records exceed a batch of ``max.message.bytes``; clients get the error that Kafka sends."""


class Turn:
    """What one operation came to.

    Args:
        now_ns: Monotonic time at which it happened: the arrival of a request, or when a deadline was judged.
        now_ms: The wall clock.
        bytes_max: What its records may take, so that one batch holds them.

    Attributes:
        records: To be appended, in order.
        answers: Who is answered with what once they are committed. An `int` is an error code.
        effects: What the runtime is to do once they are committed, in order.
        stamp: The transaction that all its records belong to, or the one that it ends; then it has no records.
    """

    __slots__ = "answers", "bytes_left", "effects", "now_ms", "now_ns", "records", "stamp"

    def __init__(self, now_ns: int, now_ms: int, bytes_max: int) -> None:
        self.now_ns = now_ns
        self.now_ms = now_ms
        self.bytes_left = bytes_max
        self.records: list[KeyValue] = []
        self.answers: list[tuple[Waiter, object]] = []
        self.effects: list[object] = []
        self.stamp: Within | TransactionEnd | None = None

    @property
    def is_written(self) -> bool:
        """Whether it left something to append."""
        return bool(self.records) or isinstance(self.stamp, TransactionEnd)

    def append(self, records: Iterable[KeyValue]) -> None:
        """Have records appended, all or none. No more of them are made than fit.

        Raises:
            TurnFullError: They do not fit into one batch with those of this turn so far.
        """
        taken = []
        left = self.bytes_left
        for record in records:
            left -= _size(record)
            if left < 0:
                raise TurnFullError
            taken.append(record)
        self.bytes_left = left
        self.records += taken

    def append_some(self, records: Iterable[KeyValue]) -> int:
        """Have as many of the first records appended as still fit; how many."""
        before = len(self.records)
        for record in records:
            size = _size(record)
            if size > self.bytes_left:
                break
            self.bytes_left -= size
            self.records.append(record)
        return len(self.records) - before

    def answer(self, waiter: Waiter, answer: object) -> None:
        """Answer somebody; once each, in this turn or in a later one."""
        self.answers.append((waiter, answer))

    def then(self, effect: object) -> None:
        """Have the runtime do something when this turn is committed. A shard that is loaded again asks for it again."""
        self.effects.append(effect)


class Shard(Protocol):
    """A machine over one partition. Belongs to the control thread."""

    def replay(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Take in a stored record, in the order of the log, before the shard is used.

        Args:
            producer_id: Of a transaction that has not ended; -1 outside of one.

        Raises:
            ValueError: It is no record of this topic. (A kind that this version does not know is skipped.)
        """

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Take in the end of a transaction."""

    def loaded(self, turn: Turn) -> None:
        """All was replayed: the shard is used from here on. Deadlines begin at ``turn.now_ns``."""

    def next_due_ns(self) -> int:
        """When `run_due` has something to do, or `FOREVER_NS`."""

    def run_due(self, turn: Turn) -> None:
        """Do the first thing that was due at ``turn.now_ns``, if there is one: a turn each, so that its records fit."""

    def topics_deleted(self, topics: Mapping[str, bytes], turn: Turn) -> None:
        """Forget what belongs to topics that are gone; ids by name."""
