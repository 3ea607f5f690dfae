"""Results of shards are delivered in order, each once; a large number is spread over turns."""

from typing import TYPE_CHECKING, cast

from pykafka_core.broker.runtime.coordinators.response_delivery import AT_ONCE, ResponseDelivery
from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.handlers.outcome import ShardResult
from pykafka_core.protocol.messages import FindCoordinatorRequest, JoinGroupResponse
from tests.broker.control.test_slices import TickingCore, step
from tests.handlers.group_requests import join_request
from tests.support.calls import counting_calls
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core

MEMBERS = 2_000
FOREVER_NS = 2**62
CALLS_MAX = 34
"""Limit for the largest turn, per member: the rebalance, and the first `AT_ONCE` results."""


class Listener:
    def __init__(self, number: int, delivered: list[int], lane: Lane = NO_LANE) -> None:
        self._number, self._delivered = number, delivered
        self.lane = lane

    def settle(self, result: ShardResult) -> None:
        self._delivered.append(self._number)


def delivery_of(core: FakeCore, count: int) -> tuple[ResponseDelivery, list[int]]:
    delivery, delivered = ResponseDelivery(cast("Core", core)), list[int]()
    for number in range(count):
        delivery.settle(Listener(number, delivered), ShardResult(0))
    return delivery, delivered


def test_first_batch_of_results_is_delivered_at_once() -> None:
    delivery, delivered = delivery_of(FakeCore(), AT_ONCE)
    assert delivered == list(range(AT_ONCE))
    assert not delivery.is_busy


def test_other_results_are_delivered_in_order_and_once() -> None:
    delivery, delivered = delivery_of(FakeCore(), 3 * AT_ONCE)
    assert len(delivered) == AT_ONCE
    assert delivery.is_busy
    delivery.advance(FOREVER_NS)
    assert delivered == list(range(2 * AT_ONCE))
    delivery.advance(FOREVER_NS)
    delivery.advance(FOREVER_NS)
    assert delivered == list(range(3 * AT_ONCE))
    assert not delivery.is_busy


def test_late_turn_delivers_exactly_one_result() -> None:
    delivery, delivered = delivery_of(TickingCore(), 2 * AT_ONCE)
    delivery.advance(0)
    assert len(delivered) == AT_ONCE + 1
    assert delivery.is_busy


def test_new_result_does_not_overtake_queued_ones() -> None:
    delivery, delivered = delivery_of(FakeCore(), AT_ONCE + 1)
    delivery.settle(Listener(-1, delivered), ShardResult(0))
    delivery.advance(FOREVER_NS)
    assert delivered[-2:] == [AT_ONCE, -1]


def test_an_answer_about_another_group_leaves_in_the_next_turn() -> None:
    """A heartbeat waited for 31 turns after a rebalance of 8,000 members."""
    delivery, delivered = delivery_of(FakeCore(), 31 * AT_ONCE)
    delivery.settle(Listener(-1, delivered, ("topic", b"other")), ShardResult(0))
    delivery.advance(FOREVER_NS)
    assert -1 in delivered


def test_stop_drops_the_remaining_results() -> None:
    delivery, delivered = delivery_of(FakeCore(), 2 * AT_ONCE)
    delivery.drop_all()
    assert not delivery.is_busy
    delivery.advance(FOREVER_NS)
    assert len(delivered) == AT_ONCE


def test_a_rebalance_answers_all_members_of_a_large_group_in_many_turns() -> None:
    broker = SimulatedBroker({"group.initial.rebalance.delay.ms": "1000"}, core=TickingCore())
    broker.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    asked = [broker.send(join_request(rebalance_timeout_ms=1_000), 3) for _ in range(MEMBERS)]
    broker.run()
    broker.core.clock_ns += 2_000_000_000
    with counting_calls() as calls:
        broker.control.timers.run(broker.core.clock_ns)
    largest, is_busy = calls.count, True
    while is_busy:
        with counting_calls() as calls:
            is_busy = step(broker)
        largest = max(largest, calls.count)
    responses = [broker.response(one) for one in asked]
    generations = {one.generation_id for one in responses if isinstance(one, JoinGroupResponse)}
    assert generations == {1}
    assert len(responses) == MEMBERS
    assert None not in responses
    assert largest < CALLS_MAX * MEMBERS
