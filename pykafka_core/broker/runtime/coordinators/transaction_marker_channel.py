"""Writes the markers of a decided transaction: it is complete when each of its partitions has one.

Theory of operation. The decision is committed first (contract/replication.md#T1). For partitions
that this node leads, the core writes the markers; for those of `__consumer_offsets`, the group
shards do, because they hold the transaction's pending offsets. Other leaders get WriteTxnMarkers
requests, as from Kafka's ``TransactionMarkerChannelManager``: at most one is in flight per node,
with partitions of many transactions. A failed marker is retried at the current leader of the
partition until it is written or the partition is deleted. Then the shard of the transaction
completes it. A shard that is loaded again, here or on another node, requests all its markers again,
so a marker may be written twice. If this node no longer leads a shard, it drops the shard's
markers, because their coordinator epoch has ended.

A commit or a load may decide thousands of transactions, and one may have thousands of partitions.
So they are queued in groups of `PARTITIONS_AT_ONCE`, and the queue is handled in slices.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from pykafka_core._core import Core
from pykafka_core.broker.rate_limited_logging import Notices
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.coordinators.shard_host import ShardPlace
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.batched_requests import BatchedRequests
from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerChannel, BrokerResponse
from pykafka_core.broker.runtime.interbroker.marker_batch import (
    PARTITIONS_MAX,
    WRITE_TXN_MARKERS,
    MarkedPart,
    codes_of,
    divide,
    request_of,
)
from pykafka_core.broker.runtime.interbroker.outbox import Outbox
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.timers import Timer, Timers
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.coordinator.group.offsets.transaction import end_transaction
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult, TransactionEnd, Waiter
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
    RecordListTooLargeError,
    TransactionCoordinatorFencedError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.outcome import (
    GroupOperation,
    ShardOperation,
    ShardResult,
    TransactionOperation,
)
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.types import GROUP_TOPIC

RETRY_NS = 100_000_000
"""Delay before the first retry; it doubles with each retry."""
RETRY_NS_MAX = 2_000_000_000
"""Maximum delay: thousands of transactions may wait for one partition."""
PARTITIONS_AT_ONCE = 100
"""Number of partitions of one call of the core: some 2 ms of its time."""
SLICE_NS = 2_000_000
"""How long the queue is handled before other work gets its turn."""

_GONE = frozenset({UnknownTopicIdError.code, UnknownTopicOrPartitionError.code})
_LOADED_AGAIN = frozenset(
    {
        CoordinatorLoadInProgressError.code,
        CoordinatorNotAvailableError.code,
        NotCoordinatorError.code,
        UnknownServerError.code,
    }
)
"""Error codes of a dropped transaction shard. Once it is loaded, here or on another node, it
requests the markers again."""

_log = GuardedLogger(__name__)

Run = Callable[[ShardOperation, Callable[[ShardResult], None]], None]
"""`Coordinators.run`."""


class _Ending:
    """One transaction that ends.

    Attributes:
        left: Partitions without a marker.
        waiting: Number of groups of partitions in progress; at 0 the transaction is completed, or
            retried.
    """

    __slots__ = "effect", "epochs", "left", "pause_ns", "place", "timer", "waiting"

    def __init__(self, place: ShardPlace, effect: WriteMarkers) -> None:
        self.place = place
        self.effect = effect
        self.left = set(effect.partitions)
        self.waiting = 0
        self.pause_ns = RETRY_NS
        self.timer: Timer | None = None
        """Timer of the next retry."""
        self.epochs: Mapping[TopicPartition, int] = MappingProxyType({})
        """Leader epochs of the partitions in ``left`` when the retry was scheduled."""

    def end(self) -> TransactionEnd:
        effect = self.effect
        return TransactionEnd(
            effect.producer_id,
            effect.producer_epoch,
            self.place.leader_epoch,
            effect.committed,
            effect.transaction_version,
        )


class _Part(NamedTuple):
    """Partitions of a transaction that one other node leads."""

    ending: _Ending
    partitions: Sequence[TopicPartition]

    @property
    def marked(self) -> MarkedPart:
        return MarkedPart(self.ending.end(), self.partitions)


class TransactionMarkerChannel:
    """Writes markers. Used only by the control thread.

    Args:
        core: Has the logs.
        node_id: This node.
        publisher: Has the committed image with the partitions and their leaders.
        channel: Sends requests to other leaders.
        completions: Pending markers of the core.
        timers: Run the retries.
        faults: Records a failed call of the core, which is retried.
        run: Runs an operation of a shard.
    """

    def __init__(
        self,
        *,
        core: Core,
        node_id: int,
        publisher: Publisher,
        channel: BrokerChannel,
        completions: Completions,
        timers: Timers,
        faults: Faults,
        run: Run,
    ) -> None:
        self._core = core
        self._node_id = node_id
        self._publisher = publisher
        self._completions = completions
        self._timers = timers
        self._faults = faults
        self._run = run
        self._endings: dict[str, _Ending] = {}
        self._queue: deque[tuple[ShardPlace, Callable[[], None]]] = deque()
        """Work for the next slices, each with the shard of its transaction."""
        self._notices = Notices(core.now_ns)
        self._elsewhere = BatchedRequests[_Part](
            channel,
            faults,
            api=WRITE_TXN_MARKERS,
            outbox=Outbox(
                key=id,
                size=lambda part: len(part.partitions),
                size_max=PARTITIONS_MAX,
                is_wanted=lambda part: self._is_current(part.ending),
            ),
            request=lambda parts: request_of(part.marked for part in parts),
            on_response=self._on_response,
        )
        publisher.followers.append(self.follow)

    def __len__(self) -> int:
        return len(self._endings)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has work."""
        return bool(self._queue) or self._elsewhere.is_busy

    def begin(self, place: ShardPlace, effect: WriteMarkers) -> None:
        """Queue a transaction; `advance` writes a marker to each of its partitions.

        Args:
            place: The shard of the transaction; its leader epoch is the coordinator epoch.
            effect: The decision.
        """
        self._forget(effect.transactional_id)
        ending = self._endings[effect.transactional_id] = _Ending(place, effect)
        self._write_soon(ending)

    def follow(
        self, image: MetadataImage, _deleted: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Apply a committed image: retry at once if a leader epoch has changed, and drop
        transactions whose shard this node no longer leads.
        """
        for ending in list(self._endings.values()):
            if not self._leads(ending.place):
                self._forget(ending.effect.transactional_id)
            elif ending.timer is not None and ending.epochs != _epochs(image, ending.left):
                self._write_soon(ending)

    def advance(self) -> None:
        """Write markers for one time slice, and send the requests to other nodes."""
        stop_ns = self._core.now_ns() + SLICE_NS
        while self._queue and self._core.now_ns() < stop_ns:
            place, work = self._queue.popleft()
            self._faults.guard(f"markers of {place}", work)
        self._elsewhere.advance()

    def drop_all(self) -> None:
        """Drop all markers when the broker stops; the shards request them again when they are
        loaded.
        """
        self._endings.clear()
        self._queue.clear()
        self._elsewhere.drop_all()

    def _is_current(self, ending: _Ending) -> bool:
        return self._endings.get(ending.effect.transactional_id) is ending

    def _forget(self, transactional_id: str) -> None:
        ending = self._endings.pop(transactional_id, None)
        if ending is not None and ending.timer is not None:
            ending.timer.cancel()

    def _leads(self, place: ShardPlace) -> bool:
        """Return whether this node still leads the shard, in the same leader epoch."""
        topic = self._publisher.image.topics.by_id.get(place.topic_id)
        partition = topic.partitions.get(place.partition) if topic else None
        epoch = partition.leader_epoch if partition else -1
        return (
            partition is not None
            and partition.leader == self._node_id
            and epoch == place.leader_epoch
        )

    def _write_soon(self, ending: _Ending) -> None:
        if ending.timer is not None:
            ending.timer.cancel()
            ending.timer = None
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
        division = divide(self._publisher.image.topics.by_name, partitions, self._node_id)
        ending.left.difference_update(division.gone)
        # This slice counts as pending until its end: a missing shard refuses at once, and would
        # start a retry within the loop below. With two retries for each failure there would soon be
        # millions.
        ending.waiting += len(division.groups) + bool(division.logs) + len(division.by_node)
        end = ending.end()
        if division.logs:
            self._write_others(ending, division.logs, end)
        for node_id, places in division.by_node.items():
            self._elsewhere.put(node_id, _Part(ending, places))
        for index in division.groups:
            operation = GroupOperation(index, partial(end_transaction, end))
            self._run(operation, partial(self._on_own, ending, index))
        ending.waiting -= 1
        self._go_on(ending)

    def _write_others(
        self, ending: _Ending, others: Sequence[TopicPartition], end: TransactionEnd
    ) -> None:
        ids = self._publisher.image.topics.by_name
        markers = [(ids[topic].topic_id, index, *end) for topic, index in others]
        token = self._completions.open(partial(self._on_written, ending, others))
        if not self._faults.guard(
            "a transaction's markers", lambda: self._core.write_markers(token, markers)
        ):
            codes = MarkerCodes([UnknownServerError.code] * len(markers))
            self._completions.complete(token, Completed(0, -1, codes))

    def _on_own(self, ending: _Ending, index: int, result: ShardResult) -> None:
        self._note(ending, (GROUP_TOPIC, index), result.error_code)
        ending.waiting -= 1
        self._go_on(ending)

    def _on_written(
        self, ending: _Ending, partitions: Sequence[TopicPartition], completed: Completed
    ) -> None:
        written = completed.value
        assert isinstance(written, MarkerCodes), "markers complete with a code for each"
        for partition, code in zip(partitions, written.codes, strict=True):
            self._note(ending, partition, code)
        ending.waiting -= 1
        self._go_on(ending)

    def _on_response(self, parts: Sequence[_Part], response: BrokerResponse) -> None:
        """Queue a separate slice for each part, because there may be thousands of transactions."""
        all_codes = codes_of([part.marked for part in parts], response)
        for part, codes in zip(parts, all_codes, strict=True):
            self._queue.append((part.ending.place, partial(self._on_part, part, codes)))

    def _on_part(self, part: _Part, codes: Sequence[int]) -> None:
        for place, code in zip(part.partitions, codes, strict=True):
            self._note(part.ending, place, code)
        part.ending.waiting -= 1
        self._go_on(part.ending)

    def _note(self, ending: _Ending, partition: TopicPartition, code: int) -> None:
        named = (ending.effect.transactional_id, *partition)
        if code == 0 or code in _GONE:
            ending.left.discard(partition)
        elif code == InvalidProducerEpochError.code:
            # A newer instance of the producer has written to this partition, and the coordinator
            # has lost its records about that instance. The open transaction in the partition is not
            # this one, whose other partitions, and its transactional id, must not wait forever.
            ending.left.discard(partition)
            _log.error(
                "the transaction of %r does not end in %s-%d: %s", *named, error_of(code).name
            )
        elif code == TransactionCoordinatorFencedError.code and self._is_current(ending):
            # A newer coordinator has written a marker there; it ends the whole transaction.
            self._forget(ending.effect.transactional_id)
            _log.error("the transaction of %r cannot end in %s-%d: %s", *named, error_of(code).name)
        elif code != NotLeaderOrFollowerError.code and self._notices.admit(code) is not None:
            # Thousands of partitions may fail ten times a second; only one of them is logged.
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

    def _complete(
        self, ending: _Ending, state: Transactions, waiter: Waiter, result: CoordinatorResult
    ) -> None:
        """Complete the transaction, unless its shard was loaded again: that has requested markers,
        which would follow the end of the transaction.
        """
        if not self._is_current(ending):
            raise CoordinatorNotAvailableError
        effect = ending.effect
        producer = effect.producer_id, effect.producer_epoch
        try:
            markers_written(effect.transactional_id, *producer, state, waiter, result)
        except BatchFullError:
            # Not UNKNOWN_SERVER_ERROR, the error of a dropped shard, because this error is retried.
            raise RecordListTooLargeError from None

    def _try_again(self, ending: _Ending) -> None:
        due_ns = self._core.now_ns() + ending.pause_ns
        ending.pause_ns = min(2 * ending.pause_ns, RETRY_NS_MAX)
        ending.epochs = _epochs(self._publisher.image, ending.left)
        write = partial(self._write_soon, ending)
        ending.timer = self._timers.once("transaction markers", due_ns, write)

    def _on_complete(self, ending: _Ending, result: ShardResult) -> None:
        if not self._is_current(ending):
            return
        code = result.error_code
        if code == 0 or code in _LOADED_AGAIN:
            self._forget(ending.effect.transactional_id)
            return
        # For example RECORD_LIST_TOO_LARGE after ``max.message.bytes`` was lowered: it may be
        # raised again.
        if self._notices.admit(("complete", code)) is not None:
            name, transactional_id = error_of(code).name, ending.effect.transactional_id
            _log.warning("the transaction of %r cannot be completed: %s", transactional_id, name)
        self._try_again(ending)


def _epochs(image: MetadataImage, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the leader epochs of those partitions that exist."""
    by_name = image.topics.by_name
    named = ((place, by_name.get(place[0])) for place in places)
    found = ((place, topic.partitions.get(place[1])) for place, topic in named if topic is not None)
    return {place: partition.leader_epoch for place, partition in found if partition is not None}
