"""Requests that run long after their arrival never shorten the sessions of members."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    Message,
    OffsetCommitRequest,
)
from tests.handlers.group_requests import broker_with_coordinator, joined, pass_ms
from tests.handlers.offset_requests import create_topic
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Event

SESSION_MS = 10_000
"""Session timeout of `join_request`."""


def late_commit(member_id: str) -> OffsetCommitRequest:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[part])
    return OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id=member_id, topics=[topic]
    )


def beat(member_id: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)


def consumer_beat(member_id: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    joins = epoch == 0
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=["orders"] if joins else None,
        topic_partitions=[] if joins else None,
    )


def code_of(response: Message | None) -> int:
    assert isinstance(response, HeartbeatResponse | ConsumerGroupHeartbeatResponse)
    return response.error_code


def held(broker: SimulatedBroker) -> "list[Event]":
    """Take the events from the core, as if they waited for memory."""
    return broker.core.wait(0)


def take(broker: SimulatedBroker, events: "list[Event]") -> None:
    for event in events:
        broker.dispatcher.take(event)
    broker.run()


@pytest.mark.parametrize(("late", "version"), [(late_commit, 7), (beat, 3)])
def test_a_late_request_of_a_classic_member_keeps_its_session(late: object, version: int) -> None:
    broker = broker_with_coordinator()
    create_topic(broker)
    member_id = joined(broker)
    broker.send(late(member_id), version)  # type: ignore[operator]
    events = held(broker)
    for _ in range(4):
        pass_ms(broker, 3_000)
        assert code_of(broker.ask(beat(member_id), 3)) == 0
    take(broker, events)
    pass_ms(broker, SESSION_MS - 1)
    assert code_of(broker.ask(beat(member_id), 3)) == 0


def test_a_late_heartbeat_of_a_consumer_keeps_its_session() -> None:
    broker = broker_with_coordinator({"group.consumer.session.timeout.ms": "45000"})
    create_topic(broker)
    member_id = "m" * 22
    first = broker.ask(consumer_beat(member_id, 0))
    assert isinstance(first, ConsumerGroupHeartbeatResponse)
    epoch = first.member_epoch
    broker.send(consumer_beat(member_id, epoch))
    events = held(broker)
    for _ in range(2):
        pass_ms(broker, 30_000)
        assert code_of(broker.ask(consumer_beat(member_id, epoch))) == 0
    take(broker, events)
    pass_ms(broker, 44_999)
    assert code_of(broker.ask(consumer_beat(member_id, epoch))) == 0


def test_a_session_begins_when_a_late_request_runs() -> None:
    broker = broker_with_coordinator()
    member_id = joined(broker)
    broker.send(beat(member_id), 3)
    events = held(broker)
    broker.core.clock_ns += (SESSION_MS - 1) * 1_000_000
    take(broker, events)
    pass_ms(broker, SESSION_MS - 1)
    assert code_of(broker.ask(beat(member_id), 3)) == 0


sent = st.tuples(
    st.integers(0, SESSION_MS - 1),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from([0, 0, SESSION_MS // 2, 2 * SESSION_MS]),
)


@given(st.lists(sent, min_size=1, max_size=12))
def test_a_member_that_sends_requests_in_time_is_never_expelled(
    requests: list[tuple[int, int, bool, int]],
) -> None:
    """Each request arrives within a session timeout of the one before it; any of them may run
    later, in any order, as if it waited for memory. The disk may stall while its response waits
    for a commit. Deadlines run up to the oldest arrival that waits.
    """
    core = FakeCore()
    broker = broker_with_coordinator(core=core)
    create_topic(broker)
    member_id = joined(broker)
    waiting: list[tuple[int, int, list[Event]]] = []
    beats: list[int] = []
    for number, (pause_ms, delay, commits, stall_ms) in enumerate(requests):
        core.hold_appends = stall_ms > 0
        broker.core.clock_ns += pause_ms * 1_000_000
        arrived_ns = broker.core.clock_ns
        if commits:
            last = broker.send(late_commit(member_id), 7)
        else:
            last = broker.send(beat(member_id), 3)
            beats.append(last)
        waiting.append((number + delay, arrived_ns, held(broker)))
        for entry in [one for one in reversed(waiting) if one[0] <= number]:
            take(broker, entry[2])
            waiting.remove(entry)
        if stall_ms and not waiting and broker.response(last) is None:
            core.clock_ns += stall_ms * 1_000_000
        horizon_ns = min([arrived for _, arrived, _ in waiting], default=broker.core.clock_ns)
        broker.control.timers.run(horizon_ns)
        broker.run()
        core.release_appends()
        broker.run()
    for entry in reversed(waiting):
        take(broker, entry[2])
    assert {code_of(broker.response(one)) for one in beats} <= {0}
    assert code_of(broker.ask(beat(member_id), 3)) == 0


def test_a_session_counts_from_the_commit_of_the_response() -> None:
    """A slow disk delays the response to a heartbeat by more than a session timeout."""
    core = FakeCore()
    broker = broker_with_coordinator(core=core)
    create_topic(broker)
    member_id = joined(broker)
    core.hold_appends = True
    committed = broker.send(late_commit(member_id), 7)
    broker.run()
    first = broker.send(beat(member_id), 3)
    broker.run()
    pass_ms(broker, SESSION_MS + 2_000)
    core.release_appends()
    broker.run()
    assert broker.response(committed) is not None
    assert code_of(broker.response(first)) == 0
    pass_ms(broker, SESSION_MS - 1)
    assert code_of(broker.ask(beat(member_id), 3)) == 0
