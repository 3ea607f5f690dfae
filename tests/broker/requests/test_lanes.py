"""A burst of requests about one group delays neither other groups nor other deadlines."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core._core import Cancelled
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.requests.lanes import (
    _FORMS,
    KEY_BYTES_MAX,
    NO_LANE,
    Lane,
    Lanes,
    lane_of,
)
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.requests.unread import FORGOTTEN_MAX, Unread
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.errors import UnknownMemberIdError
from pykafka_core.handlers.registry import BY_KEY
from pykafka_core.protocol import encode_request
from pykafka_core.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    EndTxnRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from pykafka_core.types import FOREVER_NS, GROUP_TOPIC, TRANSACTION_TOPIC
from tests.broker.control.test_slices import TickingCore
from tests.handlers.group_requests import broker_with_coordinator, join_request, joined
from tests.support.calls import counting_calls
from tests.support.simulated.broker import SimulatedBroker

if TYPE_CHECKING:
    from pykafka_core._core import Core

MANY = 2_000
SECOND_NS = 10**9
LONG_KEY = "k" * 300
A, B, C = ((GROUP_TOPIC, name) for name in (b"a", b"b", b"c"))


# Lanes.


def filled(*lanes: Lane) -> Lanes[int]:
    """Return items 0, 1, 2... in these lanes."""
    filled = Lanes[int]()
    for number, lane in enumerate(lanes):
        filled.push(lane, number, number)
    return filled


def drained(lanes: Lanes[int]) -> list[int]:
    items = []
    while lanes.arrived:
        items.append(lanes.pop())
    return items


def test_a_lane_keeps_its_order() -> None:
    assert drained(filled(*[A] * 10)) == list(range(10))
    order = drained(filled(*[A, B, B, C] * 10))
    for lane, first in ((A, {0}), (B, {1, 2}), (C, {3})):
        of_lane = [item for item in order if item % 4 in first]
        assert of_lane == sorted(of_lane), lane


def test_an_item_of_another_lane_does_not_wait_for_a_full_one() -> None:
    assert drained(filled(*[A] * 100, B)).index(100) <= 3


def test_an_item_waits_for_at_most_twice_those_before_it() -> None:
    """A rotation alone would starve a group with 8,000 members among 8,000 groups with one."""
    lanes = filled(*[A] * 100)
    order = []
    for number in range(100, 10_000):
        lanes.push((GROUP_TOPIC, b"%d" % number), number, number)
        order.append(lanes.pop())
    for item in range(100):
        assert order.index(item) <= 2 * item


def test_a_removed_item_leaves_nothing() -> None:
    lanes = filled(A, A, B)
    assert [lanes.remove(number) for number in (0, 2, 7)] == [A, B, None]
    assert drained(lanes) == [1]
    assert not lanes._lanes
    assert not lanes.arrived


# The lane of a request.

OF_GROUPS: list[Any] = [
    OffsetCommitRequest,
    JoinGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
    OffsetDeleteRequest,
    ConsumerGroupHeartbeatRequest,
]
OF_TRANSACTIONS: list[Any] = [
    InitProducerIdRequest,
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
]


def made(api_key: int, version: int, key: str) -> Message:
    """Return the smallest request about a key."""
    of_fetch, of_add = OffsetFetchRequest, AddPartitionsToTxnRequest
    if api_key == 9 and version >= 8:
        return of_fetch(groups=[of_fetch.OffsetFetchRequestGroup(group_id=key)])
    if api_key == 9:
        return of_fetch(group_id=key, topics=[])
    if api_key == 24 and version >= 4:
        transaction = of_add.AddPartitionsToTxnTransaction(transactional_id=key)
        return of_add(transactions=[transaction])
    if api_key == 24:
        return of_add(v3_and_below_transactional_id=key)
    name = BY_KEY[api_key].name.title().replace("_", "") + "Request"
    make = {one.__name__: one for one in (*OF_GROUPS, *OF_TRANSACTIONS)}[name]
    if make in OF_GROUPS:
        return cast("Message", make(group_id=key))
    return cast("Message", make(transactional_id=key))


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (api_key, version)
        for api_key in _FORMS
        for version in range(BY_KEY[api_key].versions[0], BY_KEY[api_key].versions[1] + 1)
    ],
)
@pytest.mark.parametrize("key", ["g", LONG_KEY, "ü"])
def test_requests_about_one_key_have_its_lane(api_key: int, version: int, key: str) -> None:
    body = encode_request(made(api_key, version, key), version)
    topic = TRANSACTION_TOPIC if api_key in (22, 24, 25, 26, 28) else GROUP_TOPIC
    assert lane_of(api_key, version, body) == (topic, key.encode())


def test_a_fetch_of_several_groups_has_no_lane() -> None:
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(groups=[of(group_id="a"), of(group_id="b")])
    assert lane_of(9, 8, encode_request(request, 8)) is NO_LANE


def test_a_request_about_no_single_key_has_no_lane() -> None:
    request = DeleteGroupsRequest(groups_names=["a"])
    assert lane_of(42, 2, encode_request(request, 2)) is NO_LANE
    anybody = InitProducerIdRequest(transactional_id=None)
    for version in range(BY_KEY[22].versions[1] + 1):
        assert lane_of(22, version, encode_request(anybody, version)) is NO_LANE


@pytest.mark.parametrize("body", [b"", b"\0", b"\xff\xff", b"\xff\xff\xff\xff", b"\2"])
def test_a_malformed_request_has_no_lane(body: bytes) -> None:
    for api_key in _FORMS:
        for version in range(BY_KEY[api_key].versions[0], BY_KEY[api_key].versions[1] + 1):
            assert lane_of(api_key, version, body) is NO_LANE


@pytest.mark.parametrize(("size", "has_lane"), [(KEY_BYTES_MAX, True), (KEY_BYTES_MAX + 1, False)])
def test_key_of_a_lane_is_as_long_as_a_string_may_be(size: int, has_lane: bool) -> None:
    """A longer key would be kept in addition to its body, without being counted by the memory
    limit.
    """
    length = size + 1  # the length of a compact string
    prefix = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
    assert (lane_of(12, 4, prefix + b"k" * size) is not NO_LANE) is has_lane


# Arrivals.


def asked_at(lane: Lane, key: int, received_ns: int) -> PendingRequest:
    request = SimpleNamespace(lane=lane, key=key, caller=SimpleNamespace(received_ns=received_ns))
    return cast("PendingRequest", request)


def unread_at(*arrivals: tuple[bytes, int]) -> Unread:
    unread = Unread(dict)
    for key, (name, received_ns) in enumerate(arrivals):
        unread.add(asked_at((GROUP_TOPIC, name), key, received_ns))
    return unread


@given(
    arrivals=st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 20))),
    data=st.data(),
)
def test_no_deadline_runs_before_a_request_that_arrived_earlier(
    arrivals: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    unread = unread_at(*arrivals)
    waiting = dict(enumerate(received_ns for _, received_ns in arrivals))
    for key in data.draw(st.permutations(list(waiting))):
        assert unread.oldest_ns(GROUP_TOPIC, -1) <= min(waiting.values())
        del waiting[key]
        unread.remove(key)
    assert unread.oldest_ns(GROUP_TOPIC, -1) == FOREVER_NS


@given(arrivals=st.lists(st.integers(0, 9), min_size=1, max_size=500), data=st.data())
def test_removed_requests_hold_back_no_deadline_for_long(
    arrivals: list[int], data: st.DataObject
) -> None:
    unread = unread_at(*((b"%d" % number, at) for number, at in enumerate(arrivals)))
    kept = data.draw(st.integers(0, len(arrivals) - 1))
    for key in range(len(arrivals)):
        if key != kept:
            unread.remove(key)
    for _ in range(len(arrivals) // FORGOTTEN_MAX + 1):
        found = unread.oldest_ns(GROUP_TOPIC, -1)
    assert found == arrivals[kept]


@pytest.mark.parametrize("lane_count", [1, MANY])
def test_oldest_arrival_is_found_without_a_look_at_all_requests(lane_count: int) -> None:
    unread = unread_at(*((b"%d" % (number % lane_count), 1) for number in range(MANY)))
    for key in range(MANY - 1, 0, -1):
        with counting_calls() as calls:
            unread.remove(key)
        assert calls.count < 20
    with counting_calls() as calls:
        unread.oldest_ns(GROUP_TOPIC, -1)
    assert calls.count < 3 * FORGOTTEN_MAX


# The broker.


def beat(member_id: str, group_id: str = "g") -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id)


def error_code(broker: SimulatedBroker, asked: int) -> int:
    response = broker.response(asked)
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


def ticking() -> tuple[SimulatedBroker, ControlLoop]:
    broker = broker_with_coordinator(core=TickingCore())
    control = broker.control
    return broker, ControlLoop(
        cast("Core", broker.core), control.dispatcher, control.timers, "test"
    )


def taken(broker: SimulatedBroker) -> None:
    """Queue all requests without running any."""
    for event in broker.core.wait(0, 10 * MANY):
        broker.dispatcher.take(event)


def test_a_heartbeat_does_not_wait_for_a_burst_of_another_group() -> None:
    """During a rebalance of 8,000 members it waited for 0.7 s."""
    broker, loop = ticking()
    member = joined(broker)
    burst = [broker.send(join_request(group_id="big"), 3) for _ in range(MANY)]
    asked, turns = broker.send(beat(member), 3), 0
    while broker.response(asked) is None:
        loop.turn()
        turns += 1
        assert turns < MANY
    assert error_code(broker, asked) == 0
    taking = MANY // 256 + 1
    assert turns <= taking + 2
    assert len(broker.dispatcher._jobs) > MANY / 2
    broker.run()
    assert broker.dispatcher._jobs._unread._waiting == {}
    assert all(
        broker.response(one) is not None or broker.dispatcher._requests._open.get(one)
        for one in burst
    )


def test_a_session_does_not_expire_while_its_heartbeat_waits_in_a_lane() -> None:
    broker, _ = ticking()
    member = joined(broker)
    for _ in range(100):
        broker.send(join_request(group_id="big"), 3)
    asked = broker.send(beat(member), 3)
    taken(broker)
    broker.core.clock_ns += 60 * SECOND_NS
    for _ in range(3):
        broker.control.timers.run(broker.core.horizon_ns())
    broker.run()
    assert error_code(broker, asked) == 0


def test_a_waiting_request_holds_back_the_deadlines_of_its_shard_only() -> None:
    """One waiting request delayed every timer of the node, and its broker was fenced after 9 s."""
    broker, _ = ticking()
    lone = joined(broker, "alone")
    of_lone, of_big = (coordinator_partition(group, 50) for group in ("alone", "big"))
    assert of_lone != of_big
    due: list[int] = []
    broker.control.timers.once(
        "of the node", broker.core.clock_ns + SECOND_NS, lambda: due.append(1)
    )
    broker.send(join_request(group_id="big"), 3)
    taken(broker)
    broker.core.clock_ns += 60 * SECOND_NS
    broker.control.timers.run(broker.core.horizon_ns())
    assert due == [1]
    assert broker.dispatcher._jobs, "the request still waits"
    asked = broker.send(beat(lone, "alone"), 3)
    broker.run()
    assert error_code(broker, asked) == UnknownMemberIdError.code, "its session expired"


def test_a_closed_connection_leaves_nothing_in_the_lanes() -> None:
    broker, _ = ticking()
    asked = [broker.send(join_request(group_id="big"), 3) for _ in range(100)]
    taken(broker)
    for one in asked:
        broker.core.push(Cancelled(one))
    taken(broker)
    jobs = broker.dispatcher._jobs
    assert not jobs
    assert not jobs._unread._waiting
    assert not jobs._unread._shards
    assert broker.dispatcher.idle


def test_requests_of_one_producer_are_run_in_their_order() -> None:
    broker, _ = ticking()
    order = [broker.send(EndTxnRequest(transactional_id="t"), 3) for _ in range(50)]
    for _ in range(50):
        broker.send(join_request(group_id="big"), 3)
    broker.run()
    on_response = [one for one in broker.core.replies if one in order]
    assert on_response == order
