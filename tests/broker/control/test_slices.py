"""Requests of one client never occupy the control thread so that those of others wait for long."""

import logging
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core._core import Cancelled, TopicsMissing
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS
from pykafka_core.handlers.topics import create_partitions, create_topics
from pykafka_core.handlers.topics.placement import NewPartitions
from pykafka_core.metadata.image.delta import PIECE_MAX
from pykafka_core.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    Message,
    PartitionRecord,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core

MANY = 5000
LOOK_NS = 1_000_000


class TickingCore(FakeCore):
    """Each read of the clock advances it by a millisecond, so that a slice ends after ten items."""

    def now_ns(self) -> int:
        self.clock_ns += LOOK_NS
        return self.clock_ns


def deletion(count: int) -> DeleteTopicsRequest:
    states = [DeleteTopicsRequest.DeleteTopicState(name=f"t{n}") for n in range(count)]
    return DeleteTopicsRequest(topics=states)


def deletion_of(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])


def creation(*names: str) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in names
    ]
    return CreateTopicsRequest(topics=topics)


def description(names: list[str], keys: list[str] | None = None) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=RESOURCE_TOPIC, resource_name=name, configuration_keys=keys)
            for name in names
        ]
    )


def step(broker: SimulatedBroker) -> bool:
    """Run one turn of the control loop; return whether there is more work."""
    for event in broker.core.wait(broker.core.clock_ns):
        broker.dispatcher.take(event)
    return broker.dispatcher.advance()


@pytest.mark.parametrize(
    "large", [deletion(MANY), description(["t"] + [f"t{n}" for n in range(MANY)])]
)
def test_a_long_request_is_cut_in_slices_between_which_others_are_answered(
    large: DeleteTopicsRequest | DescribeConfigsRequest,
) -> None:
    broker = SimulatedBroker(core=TickingCore())
    long = broker.send(large)
    assert step(broker)
    quick = broker.send(DescribeClusterRequest())
    turns = 0
    while broker.response(quick) is None:
        assert step(broker)
        turns += 1
    assert turns <= 2
    assert broker.response(long) is None
    broker.run()
    assert broker.response(long) is not None


@pytest.mark.parametrize("module", [create_topics, create_partitions])
def test_the_partitions_of_one_topic_are_planned_in_slices(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    made_at_once: list[int] = []

    class Counting(NewPartitions):
        def record(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> PartitionRecord:
            nonlocal made
            made += 1
            return super().record(topic_id, index, replicas)

    broker = SimulatedBroker()
    broker.ask(creation("small"))
    monkeypatch.setattr(module, "NewPartitions", Counting)
    context = broker.control.dispatcher._jobs._contexts.committed
    asked = LocalRequest(lambda _: Message(), 5)
    large = {
        create_topics: CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name="large", num_partitions=MANY, replication_factor=1
                )
            ]
        ),
        create_partitions: CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name="small", count=MANY + 1, assignments=None
                )
            ]
        ),
    }
    for _ in module.handle(context(asked), large[module]):
        made_at_once.append(made)
        made = 0
    made_at_once.append(made)
    assert sum(made_at_once) == MANY
    assert max(made_at_once) == 1


def partitions_at_once(broker: SimulatedBroker, request: Message) -> int:
    """Return the maximum number of partitions that one call of the core created or changed."""
    core = broker.core
    made, before = [], len(core.applied)
    sizes = {topic_id: len(topic.partitions) for topic_id, topic in core.topics.items()}
    broker.ask(request)
    for step in core.applied[before:]:
        named = sum(len(topic.partitions) or sizes[topic.topic_id] for topic in step.topics)
        # The core stops partitions of a deleted topic on other threads.
        made.append(named + sum(min(sizes[topic_id], PIECE_MAX) for topic_id in step.deleted))
    return max(made)


def test_no_call_of_the_core_grows_with_a_request() -> None:
    """A new topic of 10,000 partitions was created by one call; and one call changed every topic
    after a default changed, or 250 large topics.
    """
    broker = SimulatedBroker()
    large = creation(*(f"large{n}" for n in range(5)))
    for topic in large.topics:
        topic.num_partitions = PIECE_MAX * 2
    single = creation("single")
    single.topics[0].num_partitions = MANY
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="7")]
    alter = IncrementalAlterConfigsRequest(
        resources=[
            of(resource_type=RESOURCE_TOPIC, resource_name=f"large{n}", configs=configs)
            for n in range(5)
        ]
    )
    defaults = [
        IncrementalAlterConfigsRequest.AlterableConfig(name="log.retention.ms", value="9999")
    ]
    alter_defaults = IncrementalAlterConfigsRequest(
        resources=[of(resource_type=RESOURCE_BROKER, resource_name="", configs=defaults)]
    )
    delete = deletion_of("large0")
    delete.topics += [deletion_of(f"large{n}").topics[0] for n in range(1, 5)]
    assert partitions_at_once(broker, single) == PIECE_MAX
    alter_single = IncrementalAlterConfigsRequest(
        resources=[of(resource_type=RESOURCE_TOPIC, resource_name="single", configs=configs)]
    )
    assert partitions_at_once(broker, alter_single) == PIECE_MAX
    for request in (deletion_of("single"), large, alter, alter_defaults, delete):
        assert partitions_at_once(broker, request) <= PIECE_MAX * 2


def test_a_large_topic_is_seen_whole_or_not_at_all() -> None:
    broker = SimulatedBroker(core=TickingCore())
    request = creation("large")
    request.topics[0].num_partitions = MANY
    asked = broker.send(request)
    seen = set()
    while broker.response(asked) is None:
        step(broker)
        served = (topic for topic in broker.core.topics.values() if topic.name == "large")
        seen.add(sum(len(topic.partitions) for topic in served))
        known = broker.image.topics.by_name.get("large")
        seen.add(0 if known is None else len(known.partitions))
    assert seen == {0, MANY}
    assert broker.core.unfinished == {}


def turns_until_created(readers: int) -> int:
    """Return the number of turns for CreateTopics while ``readers`` clients have long requests."""
    broker = SimulatedBroker(core=TickingCore())
    broker.ask(creation(*(f"t{n}" for n in range(300))))
    for _ in range(readers):
        broker.send(DescribeLogDirsRequest(topics=None))
    step(broker)
    quick, turns = broker.send(creation("quick")), 0
    while broker.response(quick) is None:
        assert step(broker)
        turns += 1
    return turns


def test_number_of_waiting_readers_does_not_delay_the_creation_of_a_topic() -> None:
    assert turns_until_created(150) <= turns_until_created(1) + 2


def test_a_short_request_waits_for_the_first_slices_of_others_only() -> None:
    broker = SimulatedBroker(core=TickingCore())
    broker.ask(creation(*(f"t{n}" for n in range(300))))
    names = [f"t{n}" for n in range(300)]
    long = [broker.send(description(names)) for _ in range(20)]
    for _ in range(20):
        step(broker)
    quick, turns = broker.send(DescribeClusterRequest()), 0
    while broker.response(quick) is None:
        assert step(broker)
        turns += 1
    assert turns <= 2
    broker.run()
    assert all(broker.response(request) is not None for request in long)


def test_long_requests_advance_however_many_short_ones_come() -> None:
    broker = SimulatedBroker(core=TickingCore())
    long = broker.send(description(["t"] + [f"t{n}" for n in range(MANY)]))
    turns = 0
    while broker.response(long) is None:
        for _ in range(10):
            broker.send(DescribeClusterRequest())
        step(broker)
        turns += 1
    assert turns <= MANY * 4


def test_a_turn_ends_however_many_requests_arrive_at_once() -> None:
    """Each of 256 events could start a request and work on it for 10 ms before any proposal."""
    core = TickingCore()
    broker = SimulatedBroker(core=core)
    broker.ask(creation(*(f"t{n}" for n in range(300))))
    for _ in range(256):
        broker.send(DescribeLogDirsRequest(topics=None))
    before_ns = core.clock_ns
    step(broker)
    assert core.clock_ns - before_ns <= 3 * TIME_SLICE_NS


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_stop_does_not_wait_for_the_requests_in_the_queue(turns: int) -> None:
    """At most the current turn is finished, and all waiting callers continue."""
    core = TickingCore()
    broker = SimulatedBroker(core=core)
    broker.ask(creation(*(f"t{n}" for n in range(300))))
    control = broker.control
    loop = ControlLoop(cast("Core", core), control.dispatcher, control.timers, "test")
    for _ in range(200):
        broker.send(DescribeLogDirsRequest(topics=None))
        broker.send(deletion(MANY))
    for _ in range(turns):
        loop.turn()
    before_ns = core.clock_ns
    loop._stopping = True
    loop.turn()
    loop._drain()
    assert core.clock_ns - before_ns <= 3 * TIME_SLICE_NS
    assert broker.dispatcher.idle


def test_requests_of_a_closed_connection_are_dropped_in_each_state() -> None:
    core = TickingCore()
    broker = SimulatedBroker(core=core)
    broker.ask(creation(*(f"t{n}" for n in range(300))))
    asked = [broker.send(DescribeLogDirsRequest(topics=None)) for _ in range(50)]
    asked += [broker.send(deletion(MANY)) for _ in range(50)]
    step(broker)
    for request in asked:
        core.push(Cancelled(request))
    before_ns = core.clock_ns
    broker.run()
    looks_each = 4
    assert core.clock_ns - before_ns <= len(asked) * looks_each * LOOK_NS
    assert core.replies.keys().isdisjoint(asked)


def test_a_cancelled_request_is_not_worked_on() -> None:
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    first = broker.send(creation("first"))
    broker.run()
    cancelled, kept = broker.send(creation("cancelled")), broker.send(creation("kept"))
    broker.core.push(Cancelled(cancelled))
    broker.run()
    for _ in range(2):
        broker.core.complete_append()
        broker.run()
    assert broker.response(first) is not None
    assert broker.response(kept) is not None
    assert set(broker.image.topics.by_name) == {"first", "kept"}


def test_deleting_many_topics_costs_the_same_for_each() -> None:
    """The cost was quadratic: 16,000 names took 21 s. The test counts steps of a virtual clock."""
    broker = SimulatedBroker(core=TickingCore())
    names = [f"t{n}" for n in range(200)]
    broker.ask(creation(*names))
    response = broker.ask(deletion(200))
    assert isinstance(response, DeleteTopicsResponse)
    assert [result.error_code for result in response.responses] == [0] * 200
    twice = DeleteTopicsRequest(topics=deletion(100).topics * 2)
    response = broker.ask(twice)
    assert isinstance(response, DeleteTopicsResponse)
    assert [result.error_code for result in response.responses] == [42] * 100


def test_a_resource_that_is_described_many_times_is_answered_once() -> None:
    broker = SimulatedBroker()
    broker.ask(creation("orders"))
    response = broker.ask(description(["orders"] * 12_000))
    assert isinstance(response, DescribeConfigsResponse)
    assert [result.resource_name for result in response.results] == ["orders"]
    keys = [["retention.ms"], ["segment.ms", "retention.ms"]]
    asked = [description(["orders"], names).resources[0] for names in keys]
    response = broker.ask(DescribeConfigsRequest(resources=asked))
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results
    assert {config.name for config in result.configs} == {"retention.ms", "segment.ms"}


def test_topics_without_settings_are_described_like_others() -> None:
    broker = SimulatedBroker()
    broker.ask(creation("plain", "altered"))
    alter = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=RESOURCE_TOPIC,
        resource_name="altered",
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="7")],
    )
    broker.ask(IncrementalAlterConfigsRequest(resources=[alter]))
    response = broker.ask(description(["plain", "altered"]))
    assert isinstance(response, DescribeConfigsResponse)
    plain, altered = ({c.name: c.value for c in result.configs} for result in response.results)
    assert altered == {**plain, "retention.ms": "7"}


def test_more_resources_than_a_request_may_need_records_are_refused_at_once() -> None:
    broker = SimulatedBroker()
    alter = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [alter(resource_type=RESOURCE_TOPIC, resource_name=f"t{n}") for n in range(10_001)]
    response = broker.ask(IncrementalAlterConfigsRequest(resources=resources))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert {result.error_code for result in response.responses} == {44}


def test_missing_topics_cost_a_bounded_number_of_topics_and_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = SimulatedBroker()
    with caplog.at_level(logging.INFO):
        broker.core.push(TopicsMissing([f"t{n}" for n in range(100_000)], ""))
        broker.core.push(TopicsMissing([f"{'x' * 250}{n}" for n in range(100_000)], ""))
        broker.run()
    assert len(broker.image.topics.by_name) == 1000
    assert len(caplog.records) == 2
    assert max(len(record.getMessage()) for record in caplog.records) < 5000
