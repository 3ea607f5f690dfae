"""From a decided transaction to its markers: every partition gets one before the transaction is complete.

Theory of operation. The decision is committed before this begins (contract/replication.md#T1). Markers of
partitions with clients' records are written by the core, those of `__consumer_offsets` by the group shards, which hold
the offsets that wait for them. What fails is tried again until it is written or the partition is gone. Then the
shard of the transaction is told. A shard that is loaded again asks for its markers again; a marker may be written
twice.

A commit, or a load, may decide thousands of transactions, and one may have thousands of partitions. So they wait in
a queue, `PARTITIONS_AT_ONCE` by `PARTITIONS_AT_ONCE`, which is worked off in slices.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.notices import Notices
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.shard_host import ShardPlace
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.coordinator.group.offsets.transaction import end_transaction
from pykafka_core.coordinator.shard import TransactionEnd, Turn, Waiter
from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.markers_written import markers_written
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.transaction import TopicPartition
from pykafka_core.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerEpochError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    TransactionCoordinatorFencedError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.outcome import (
    Coordinated,
    GroupOperation,
    ShardOperation,
    TransactionOperation,
)
from pykafka_core.types import GROUP_TOPIC

RETRY_NS = 100_000_000
"""Between the first two tries; then twice as long each time."""
RETRY_NS_MAX = 2_000_000_000
"""As thousands of transactions may wait for one partition."""
PARTITIONS_AT_ONCE = 100
"""Some 2 ms of the core's time."""
SLICE_NS = 2_000_000
"""How long the queue is worked off before others have their turn."""

_GONE = frozenset({UnknownTopicIdError.code, UnknownTopicOrPartitionError.code})
_LOADED_AGAIN = frozenset(
    {
        CoordinatorLoadInProgressError.code,
        CoordinatorNotAvailableError.code,
        NotCoordinatorError.code,
        UnknownServerError.code,
    }
)
"""The shard of the transaction was dropped. Once it is loaded, here or elsewhere, it asks for the markers again."""

_log = GuardedLogger(__name__)

Run = Callable[[ShardOperation, Callable[[Coordinated], None]], None]
"""`Coordinators.run`."""


class _Ending:
    """One transaction that ends. ``left`` are partitions without a marker, of which ``waiting`` are under way."""

    __slots__ = "effect", "left", "pause_ns", "place", "waiting"

    def __init__(self, place: ShardPlace, effect: WriteMarkers) -> None:
        self.place = place
        self.effect = effect
        self.left = set(effect.partitions)
        self.waiting = 0
        self.pause_ns = RETRY_NS

    def end(self) -> TransactionEnd:
        effect = self.effect
        return TransactionEnd(
            effect.producer_id,
            effect.producer_epoch,
            self.place.leader_epoch,
            effect.committed,
            effect.transaction_version,
        )


class TransactionMarkers:
    """Writes markers. Belongs to the control thread.

    Args:
        core: Has the logs.
        publisher: Has the committed image, which says what partitions there are.
        completions: Where the core's markers are waited for.
        timers: For what is tried again.
        faults: Takes note of a call of the core that fails alone: it is tried again.
        run: Runs an operation of a shard.
    """

    def __init__(
        self,
        *,
        core: Core,
        publisher: Publisher,
        completions: Completions,
        timers: Timers,
        faults: Faults,
        run: Run,
    ) -> None:
        self._core = core
        self._publisher = publisher
        self._completions = completions
        self._timers = timers
        self._faults = faults
        self._run = run
        self._endings: dict[str, _Ending] = {}
        self._queue: deque[tuple[ShardPlace, Callable[[], None]]] = deque()
        """What is to be done now, and for which shard."""
        self._notices = Notices(core.now_ns)

    def __len__(self) -> int:
        return len(self._endings)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to do."""
        return bool(self._queue)

    def begin(self, place: ShardPlace, effect: WriteMarkers) -> None:
        """End a transaction on all its partitions; `advance` does it.

        Args:
            place: The shard that decided it; its leader epoch is the coordinator's.
            effect: What was decided.
        """
        ending = self._endings[effect.transactional_id] = _Ending(place, effect)
        self._write_soon(ending)

    def advance(self) -> None:
        """Write markers, for as long as one may."""
        stop_ns = self._core.now_ns() + SLICE_NS
        while self._queue and self._core.now_ns() < stop_ns:
            place, work = self._queue.popleft()
            self._faults.guard(f"markers of {place}", work)

    def drop_all(self) -> None:
        """The broker stops: the next start asks again."""
        self._endings.clear()
        self._queue.clear()

    def _is_current(self, ending: _Ending) -> bool:
        return self._endings.get(ending.effect.transactional_id) is ending

    def _write_soon(self, ending: _Ending) -> None:
        self._queue.append((ending.place, partial(self._write, ending)))

    def _write(self, ending: _Ending) -> None:
        if not self._is_current(ending):
            return
        left = list(ending.left)
        starts = range(0, len(left), PARTITIONS_AT_ONCE)
        first, *others = [left[start : start + PARTITIONS_AT_ONCE] for start in starts] or [[]]
        ending.waiting = 1 + len(others)
        for some in others:
            self._queue.append((ending.place, partial(self._write_some, ending, some)))
        self._write_some(ending, first)

    def _write_some(self, ending: _Ending, partitions: Sequence[TopicPartition]) -> None:
        if not self._is_current(ending):
            return
        own, others = self._divide(ending, partitions)
        # This slice is waited for too until the end: a shard that is not there refuses at once, and with two tries for
        # each one that failed there would soon be millions.
        ending.waiting += len(own) + bool(others)
        end = ending.end()
        if others:
            self._write_others(ending, others, end)
        for index in own:
            operation = GroupOperation(index, partial(end_transaction, end))
            self._run(operation, partial(self._on_own, ending, index))
        ending.waiting -= 1
        self._go_on(ending)

    def _write_others(
        self, ending: _Ending, others: list[TopicPartition], end: TransactionEnd
    ) -> None:
        ids = self._publisher.image.topics.by_name
        markers = [(ids[topic].topic_id, index, *end) for topic, index in others]
        token = self._completions.open(partial(self._on_written, ending, others))
        if not self._faults.guard(
            "a transaction's markers", lambda: self._core.write_markers(token, markers)
        ):
            codes = MarkerCodes([UnknownServerError.code] * len(markers))
            self._completions.complete(token, Completed(0, -1, codes))

    def _divide(
        self, ending: _Ending, partitions: Sequence[TopicPartition]
    ) -> tuple[list[int], list[TopicPartition]]:
        """Partitions of groups, and those of clients; without those that are gone."""
        own: list[int] = []
        others: list[TopicPartition] = []
        for topic, index in partitions:
            found = self._publisher.image.topics.by_name.get(topic)
            if found is None or index not in found.partitions:
                ending.left.discard((topic, index))
            elif topic == GROUP_TOPIC:
                own.append(index)
            else:
                others.append((topic, index))
        return own, others

    def _on_own(self, ending: _Ending, index: int, result: Coordinated) -> None:
        self._note(ending, (GROUP_TOPIC, index), result.error_code)
        ending.waiting -= 1
        self._go_on(ending)

    def _on_written(
        self, ending: _Ending, partitions: list[TopicPartition], completed: Completed
    ) -> None:
        written = completed.answer
        assert isinstance(written, MarkerCodes), "markers complete with a code for each"
        for partition, code in zip(partitions, written.codes, strict=True):
            self._note(ending, partition, code)
        ending.waiting -= 1
        self._go_on(ending)

    def _note(self, ending: _Ending, partition: TopicPartition, code: int) -> None:
        named = (ending.effect.transactional_id, *partition)
        if code == 0 or code in _GONE:
            ending.left.discard(partition)
        elif code == InvalidProducerEpochError.code:
            # A newer instance of the producer has written there, of which the coordinator has lost what it knew. What
            # is open there is not this transaction; its other partitions, and its id, must not wait for ever.
            ending.left.discard(partition)
            _log.error(
                "the transaction of %r does not end in %s-%d: %s", *named, error_of(code).name
            )
        elif code == TransactionCoordinatorFencedError.code and self._is_current(ending):
            # A newer coordinator has written there, and ends all of it.
            del self._endings[ending.effect.transactional_id]
            _log.error("the transaction of %r cannot end in %s-%d: %s", *named, error_of(code).name)
        elif code != NotLeaderOrFollowerError.code and self._notices.admit(code) is not None:
            # Of thousands of partitions that fail ten times a second, one is named.
            name = error_of(code).name
            _log.warning("a transaction's marker for %s-%d is tried again: %s", *partition, name)

    def _go_on(self, ending: _Ending) -> None:
        if ending.waiting or not self._is_current(ending):
            return
        if ending.left:
            self._try_again(ending)
            return
        operation = TransactionOperation(ending.place.partition, partial(self._complete, ending))
        self._run(operation, partial(self._on_complete, ending))

    def _complete(self, ending: _Ending, state: Transactions, waiter: Waiter, turn: Turn) -> None:
        """Unless its shard was loaded again, and asks for markers that would come after the end."""
        if not self._is_current(ending):
            raise CoordinatorNotAvailableError
        effect = ending.effect
        producer = effect.producer_id, effect.producer_epoch
        markers_written(effect.transactional_id, *producer, state, waiter, turn)

    def _try_again(self, ending: _Ending) -> None:
        due_ns = self._core.now_ns() + ending.pause_ns
        ending.pause_ns = min(2 * ending.pause_ns, RETRY_NS_MAX)
        self._timers.once("transaction markers", due_ns, partial(self._write_soon, ending))

    def _on_complete(self, ending: _Ending, result: Coordinated) -> None:
        if not self._is_current(ending):
            return
        code = result.error_code
        if code == 0 or code in _LOADED_AGAIN:
            del self._endings[ending.effect.transactional_id]
            return
        # Such as RECORD_LIST_TOO_LARGE, where ``max.message.bytes`` was lowered: it may be raised again.
        if self._notices.admit(("complete", code)) is not None:
            name, transactional_id = error_of(code).name, ending.effect.transactional_id
            _log.warning("the transaction of %r cannot be completed: %s", transactional_id, name)
        self._try_again(ending)
