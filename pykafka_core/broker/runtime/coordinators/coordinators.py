"""The coordinators on this node: the shards of groups and of transactions, and the operations that
one requests from the other.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from pykafka_core._core import Core, VerifyTransaction
from pykafka_core.broker.runtime.completions import Completions
from pykafka_core.broker.runtime.coordinators.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
)
from pykafka_core.broker.runtime.coordinators.response_delivery import ResponseDelivery
from pykafka_core.broker.runtime.coordinators.shard_host import ShardHost, ShardPlace
from pykafka_core.broker.runtime.coordinators.topic_shards import TopicShards
from pykafka_core.broker.runtime.coordinators.transaction_marker_channel import (
    TransactionMarkerChannel,
)
from pykafka_core.broker.runtime.coordinators.verification import Verification
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerChannel
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.requests.fan_in import FanIn, Respond
from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.requests.unread import Unread
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import Waiter
from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.errors import CoordinatorLoadInProgressError, NotCoordinatorError
from pykafka_core.handlers.outcome import (
    HELD_NS_MAX,
    GroupOperation,
    ShardCalls,
    ShardOperation,
    ShardResult,
    TransactionOperation,
    TransactionQuery,
    Work,
)
from pykafka_core.metadata.health import Replicas
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC


class _Slot:
    """The part of a response that one operation provides."""

    __slots__ = "fan_in", "place"

    def __init__(self, fan_in: FanIn[ShardResult], place: int) -> None:
        self.fan_in = fan_in
        self.place = place

    @property
    def lane(self) -> Lane:
        return self.fan_in.lane

    def settle(self, result: ShardResult) -> None:
        self.fan_in.add(self.place, result)


class _Inner:
    """Another component of this broker, which gets the result of an operation."""

    __slots__ = ("settle",)
    lane = NO_LANE

    def __init__(self, settle: Callable[[ShardResult], None]) -> None:
        self.settle = settle


class Coordinators:
    """Runs operations on shards. Used only by the control thread.

    Args:
        core: Has the logs.
        node_id: This node.
        completions: Pending appends.
        requests: The table of open requests.
        timers: Run the deadlines of the shards, and of requests with reserved memory.
        unread: Has the arrival times of requests that no shard has run yet.
        faults: Records faults of single items.
        publisher: Has the committed image with the partitions that this node leads.
        make_group_shard: Creates an empty state machine for groups.
        make_transaction_shard: Creates an empty state machine for transactions.
        replicas: Records the shards that cannot be loaded.
    """

    def __init__(
        self,
        *,
        core: Core,
        node_id: int,
        completions: Completions,
        requests: OpenRequests,
        timers: Timers,
        unread: Unread,
        faults: Faults,
        publisher: Publisher,
        make_group_shard: Callable[[], GroupShard],
        make_transaction_shard: Callable[[], TransactionShard],
        replicas: Replicas,
    ) -> None:
        self._core = core
        self._requests = requests
        self._timers = timers
        self._delivery = ResponseDelivery(core)
        channel = BrokerChannel(core, completions, publisher)
        self._markers = TransactionMarkerChannel(
            core=core,
            node_id=node_id,
            publisher=publisher,
            channel=channel,
            completions=completions,
            timers=timers,
            faults=faults,
            run=self.run,
        )
        self._questions = AddPartitionsToTxnManager(
            node_id=node_id, publisher=publisher, channel=channel, faults=faults, run=self.run
        )
        self._verification = Verification(
            core=core, publisher=publisher, timers=timers, faults=faults, ask=self.run
        )
        self._groups = TopicShards(
            GROUP_TOPIC,
            node_id=node_id,
            core=core,
            publisher=publisher,
            host=partial(
                ShardHost[GroupShard],
                core=core,
                completions=completions,
                timers=timers,
                unread=unread,
                faults=faults,
                responses=self,
                replicas=replicas,
            ),
            make=make_group_shard,
        )
        self._transactions = TopicShards(
            TRANSACTION_TOPIC,
            node_id=node_id,
            core=core,
            publisher=publisher,
            host=partial(
                ShardHost[TransactionShard],
                core=core,
                completions=completions,
                timers=timers,
                unread=unread,
                faults=faults,
                responses=self,
                replicas=replicas,
            ),
            make=make_transaction_shard,
        )

    def begin(self, request: PendingRequest, outcome: ShardCalls, respond: Respond) -> Work[None]:
        """Run a request's operations; ``respond`` is called when all have results."""
        fan_in = FanIn(request, len(outcome.operations), outcome.reply, respond)
        begun_ns = self._core.now_ns()
        arrived_ns = request.caller.received_ns or begun_ns
        if outcome.release is not None:
            self._requests.when_over(request, outcome.release)
        for place, operation in enumerate(outcome.operations):
            if place:
                yield
            self._submit(operation, _Slot(fan_in, place), arrived_ns)
        fan_in.respond_if_complete()
        if not fan_in.is_over:
            request.park()
            self._requests.when_over(request, fan_in.drop)
            if outcome.release is not None:
                late = partial(fan_in.complete, ShardResult(CoordinatorLoadInProgressError.code))
                timer = self._timers.once("reads with memory", begun_ns + HELD_NS_MAX, late)
                self._requests.when_over(request, timer.cancel)

    def run(self, operation: ShardOperation, settle: Callable[[ShardResult], None]) -> None:
        """Run an operation that no request needs; ``settle`` gets its result once, unless the
        broker stops.
        """
        self._submit(operation, _Inner(settle), self._core.now_ns())

    def verify(self, event: VerifyTransaction) -> None:
        """Verify the partitions to which a produce request writes in a transaction."""
        self._verification.begin(event)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to do without an event."""
        return (
            self._groups.is_busy
            or self._transactions.is_busy
            or self._markers.is_busy
            or self._questions.is_busy
            or self._delivery.is_busy
        )

    def advance(self, deadline_ns: int) -> None:
        """Write markers, send requests to other nodes, replay the records that were read, append
        the records of operations, and deliver committed results.
        """
        self._markers.advance()
        self._questions.advance()
        self._transactions.advance(deadline_ns)
        self._groups.advance(deadline_ns)
        self._delivery.advance(deadline_ns)

    def drop_all(self) -> None:
        """Drop all operations when the broker stops; all requests already have responses."""
        self._groups.drop_all()
        self._transactions.drop_all()
        self._markers.drop_all()
        self._questions.drop_all()
        self._delivery.drop_all()

    def on_response(self, waiter: Waiter, response: object) -> None:
        """Deliver the result of an operation; every waiter was created here."""
        self._settle(waiter, ShardResult(0, response))

    def refused(self, waiter: Waiter, error_code: int) -> None:
        """Deliver the error of an operation."""
        self._settle(waiter, ShardResult(error_code))

    def committed(self, place: ShardPlace, effect: object) -> None:
        """Execute a committed effect of a shard."""
        assert isinstance(effect, WriteMarkers), "the only effect there is"
        self._markers.begin(place, effect)

    def _settle(self, waiter: Waiter, result: ShardResult) -> None:
        assert isinstance(waiter, (_Slot, _Inner)), "waiters are made here"
        self._delivery.settle(waiter, result)

    def _submit(self, operation: ShardOperation, waiter: _Slot | _Inner, arrived_ns: int) -> None:
        match operation:
            case GroupOperation(partition, run_group):
                groups = self._groups.get(partition)
                if groups is not None:
                    groups.submit(run_group, waiter, arrived_ns)
                    return
            case TransactionOperation(partition, run_transaction):
                transactions = self._transactions.get(partition)
                if transactions is not None:
                    transactions.submit(run_transaction, waiter, arrived_ns)
                    return
            case TransactionQuery():
                self._questions.ask(operation, partial(self._settle, waiter))
                return
            case _:
                assert_never(operation)
        waiter.settle(ShardResult(NotCoordinatorError.code))
