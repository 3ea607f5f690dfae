"""A fake core whose appends wait, for each partition, and which handles transactional Produce."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafka_core._core import Appended, VerifyTransaction
from pykafka_core.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
)
from pykafka_core.types import PartitionId
from tests.support.simulated import fake_core
from tests.support.simulated.fake_core import FakeCore, ProducerState, _Append

if TYPE_CHECKING:
    from pykafka_core._core import EncodedMessage, Event

METADATA_ID = bytes(15) + b"\1"
"""The topic whose records are committed at once; without it a broker cannot start."""
_FIRST_OWN_TOKEN = 2**60

Producers = dict[int, ProducerState]


class Produce(NamedTuple):
    """One record of a transactional producer."""

    partition: PartitionId
    transactional_id: str
    producer: tuple[int, int]
    sequence: int
    value: bytes
    adds: bool
    """Whether it adds its partition to the transaction (TV2)."""


class _Held(NamedTuple):
    append: _Append
    producers: Producers
    """The producers before the append."""


Done = Callable[[int], None]


class Door:
    """Callbacks for events of the core; this class ignores them."""

    def replied(self, request: int, body: bytes) -> None:
        """Called when a request gets its response."""

    def begins(self, partition: PartitionId, producer: tuple[int, int]) -> None:
        """Called when a transaction first writes to a partition."""

    def marks(self, marker: fake_core.Marker) -> None:
        """Called when a transaction ends in a partition."""


@dataclass
class _Guard:
    """Verification state like that of `rust/log/src/log/verification.rs`."""

    number: int
    epoch: int
    adds: bool

    def is_of_next(self, marker: fake_core.Marker) -> bool:
        """Return whether it is the marker of the previous transaction.

        If commits add partitions (TV2), each marker raises the epoch.
        """
        return self.adds and marker[3] == self.epoch


class SimulatedCore(FakeCore):
    """A core whose appends end in order, on command; a failed one fails the later ones, too.

    Args:
        logs: Those of an earlier core, for a restart.
        door: Callbacks.
    """

    def __init__(self, door: Door, logs: "dict[PartitionId, Any] | None" = None) -> None:
        super().__init__(logs=logs, hold_appends=True)
        self.waiting: dict[PartitionId, deque[_Held]] = {}
        self._door = door
        self._guards: dict[tuple[PartitionId, int], _Guard] = {}
        self._numbers = count(_FIRST_OWN_TOKEN)
        self._asked: dict[int, tuple[Produce, int, Done]] = {}
        self._produced: dict[int, Done] = {}

    def respond(self, replies: "Sequence[tuple[int, bytes | EncodedMessage]]") -> None:
        for request, body in replies:
            assert request not in self.replies, "a request is answered once"
            self.replies[request] = bytes(body)
            self._door.replied(request, self.replies[request])

    @property
    def has_events(self) -> bool:
        """Return whether events for the broker are waiting."""
        return bool(self._events)

    # Appends.

    def append(self, token: int, partition: PartitionId, *rest: Any, **named: Any) -> None:
        log = self.logs.get(partition)
        before = {} if log is None else dict(log.producers)
        super().append(token, partition, *rest, **named)
        producer = named.get("producer")
        if self._adopt(before) and producer is not None:
            known = before.get(producer[0])
            if known is None or known.current_txn_start_offset < 0:
                self._door.begins(partition, producer)

    def _write_marker(self, settling: Any, place: int, marker: fake_core.Marker) -> None:
        partition, producer_id = (marker[0], marker[1]), marker[2]
        log = self.logs.get(partition)
        before = {} if log is None else dict(log.producers)
        super()._write_marker(settling, place, marker)
        if not self._adopt(before) or log is None:
            return
        self._door.marks(marker)
        guard = self._guards.get((partition, producer_id))
        if guard is not None and not guard.is_of_next(marker):
            del self._guards[partition, producer_id]
        known = before.get(producer_id)
        if known is not None and known.producer_epoch == marker[3]:
            now = log.producers[producer_id]
            log.producers[producer_id] = replace(now, last_sequence=known.last_sequence)

    def _adopt(self, before: Producers) -> bool:
        """Adopt a held append; return whether there was one."""
        if not self._held:
            return False
        append = self._held.pop()
        held = self.waiting.setdefault(append.partition, deque())
        held.append(_Held(append, before))
        if append.partition[0] == METADATA_ID:
            self.complete(append.partition)
        return True

    def complete(self, partition: PartitionId, error_code: int = 0) -> None:
        """End the oldest append of a partition, or all of them with an error."""
        held = self.waiting[partition]
        first = held.popleft()
        self._end(first, error_code)
        if error_code:
            while held:
                self._end(held.popleft(), error_code)
            log = self.logs[partition]
            log.end, log.producers = first.append.base_offset, first.producers
            for place in [place for place in self._guards if place[0] == partition]:
                del self._guards[place]
        if not held:
            del self.waiting[partition]
        self._tell_awaited()

    def _held_of(self, partition: PartitionId) -> Iterator[_Append]:
        return (held.append for held in self.waiting.get(partition, ()))

    def _end(self, held: _Held, error_code: int) -> None:
        self._held.append(held.append)
        self.complete_append(error_code)

    def push(self, event: "Event") -> None:
        if isinstance(event, Appended) and event.token in self._produced:
            self._produced.pop(event.token)(event.error_code)
        else:
            super().push(event)

    # Produce requests.

    def produce(self, asked: Produce, done: Done) -> None:
        """Handle Produce like the data plane: a transaction's first record needs verification."""
        refusal = self._judge(asked)
        if refusal is not None:
            done(refusal)
        elif self._is_open(asked):
            self._take(asked, done)
        else:
            place = asked.partition, asked.producer[0]
            number, epoch = next(self._numbers), asked.producer[1]
            guard = self._guards.setdefault(place, _Guard(number, epoch, asked.adds))
            guard.epoch = max(guard.epoch, epoch)
            token = next(self._numbers)
            self._asked[token] = (asked, guard.number, done)
            super().push(
                VerifyTransaction(
                    token=token,
                    transactional_id=asked.transactional_id,
                    producer_id=asked.producer[0],
                    producer_epoch=asked.producer[1],
                    partitions=[asked.partition],
                    add=asked.adds,
                    received_ns=self.clock_ns,
                )
            )

    def verified(self, token: int, error_codes: Sequence[int]) -> None:
        asked, number, done = self._asked.pop(token)
        guard = self._guards.get((asked.partition, asked.producer[0]))
        holds = guard is not None and guard.number == number
        refusal = error_codes[0] or self._judge(asked)
        if refusal is not None:
            done(refusal)
        elif not self._is_open(asked) and not holds:
            done(InvalidTxnStateError.code)
        else:
            self._take(asked, done)

    def _known(self, asked: Produce) -> ProducerState | None:
        return self.logs[asked.partition].producers.get(asked.producer[0])

    def _is_open(self, asked: Produce) -> bool:
        known = self._known(asked)
        is_open = known is not None and known.current_txn_start_offset >= 0
        return is_open and known is not None and known.producer_epoch == asked.producer[1]

    def _judge(self, asked: Produce) -> int | None:
        """Return an error code, 0 for a duplicate, or None for a record that may be written."""
        known, epoch = self._known(asked), asked.producer[1]
        if known is None:
            return None
        if epoch < known.producer_epoch:
            return InvalidProducerEpochError.code
        last = known.last_sequence if epoch == known.producer_epoch else -1
        if asked.sequence <= last:
            return RequestTimedOutError.code if asked.partition in self.waiting else 0
        return None if asked.sequence == last + 1 else OutOfOrderSequenceNumberError.code

    def _take(self, asked: Produce, done: Done) -> None:
        log, token = self.logs[asked.partition], next(self._numbers)
        self._produced[token] = done
        records, producer = [(None, asked.value)], asked.producer
        self.append(token, asked.partition, log.leader_epoch, records, producer=producer)
        known = log.producers.get(asked.producer[0])
        if known is not None and token in self._produced:
            log.producers[asked.producer[0]] = replace(known, last_sequence=asked.sequence)
            self._guards.pop((asked.partition, asked.producer[0]), None)

    # Restarts and other leaders.

    def crash(self, keep: Callable[[int], int]) -> None:
        """Drop all results; keep ``keep(n)`` of each partition's n waiting appends."""
        self._produced.clear()
        for partition in list(self.waiting):
            self.cut(partition, keep)

    def cut(self, partition: PartitionId, keep: Callable[[int], int]) -> None:
        """Do the same in one partition."""
        held, log = self.waiting.pop(partition, None), self.logs[partition]
        if held is None:
            return
        kept = keep(len(held))
        if kept < len(held):
            first = held[kept]
            log.batches = [one for one in log.batches if one[0] < first.append.base_offset]
            log.end, log.producers = first.append.base_offset, first.producers
        log.high_watermark = log.end
