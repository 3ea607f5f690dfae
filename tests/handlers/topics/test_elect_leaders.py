"""ElectLeaders (KIP-183, KIP-460), with the error codes of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from tests.handlers.cluster_world import ClusterWorld
from tests.handlers.foreign_brokers import GONE, SELF, make_orders, orders, register_gone
from tests.support.simulated.broker import SimulatedBroker

PREFERRED, UNCLEAN = 0, 1
UNKNOWN, TIMED_OUT, INVALID, PREFERRED_NOT_AVAILABLE, ELIGIBLE_NOT_AVAILABLE, NOT_NEEDED = (
    3, 7, 42, 80, 83, 84,
)  # fmt: skip
Named = tuple[str, list[int]]


def ask(
    broker: SimulatedBroker,
    named: list[Named] | None,
    kind: int = PREFERRED,
    *,
    version: int = 2,
    timeout_ms: int = 1000,
) -> ElectLeadersResponse:
    partitions = None
    if named is not None:
        partitions = [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in named
        ]
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=partitions, timeout_ms=timeout_ms
    )
    response = broker.ask(request, version)
    assert isinstance(response, ElectLeadersResponse)
    return response


def codes(response: ElectLeadersResponse) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.topic, [(p.partition_id, p.error_code) for p in topic.partition_result])
        for topic in response.replica_election_results
    ]


def create(broker: SimulatedBroker) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=2, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]))


@pytest.mark.parametrize("version", range(3))
def test_a_led_partition_needs_no_election_in_every_version(
    broker: SimulatedBroker, version: int
) -> None:
    create(broker)
    for kind in (PREFERRED, UNCLEAN) if version else (PREFERRED,):
        response = ask(broker, [("orders", [0, 5, -1]), ("none", [0])], kind, version=version)
        assert response.error_code == 0
        assert codes(response) == [
            ("orders", [(0, NOT_NEEDED), (5, UNKNOWN), (-1, UNKNOWN)]),
            ("none", [(0, UNKNOWN)]),
        ]


def test_errors_are_worded_as_kafka_words_them(broker: SimulatedBroker) -> None:
    create(broker)
    response = ask(broker, [("orders", [0, 5]), ("none", [0])])
    assert [
        p.error_message for t in response.replica_election_results for p in t.partition_result
    ] == [
        "Leader election not needed for topic partition.",
        "No such partition as orders-5",
        "No such topic as none",
    ]


def test_null_elects_all_and_omits_partitions_that_need_no_election(
    broker: SimulatedBroker,
) -> None:
    create(broker)
    assert codes(ask(broker, None)) == [("orders", [])]


@pytest.mark.parametrize("kind", [-1, 2, 99])
def test_unknown_election_type_is_rejected_for_every_partition(
    broker: SimulatedBroker, kind: int
) -> None:
    response = ask(broker, [("orders", [0, 1])], kind)
    assert (response.error_code, codes(response)) == (
        INVALID,
        [("orders", [(0, INVALID), (1, INVALID)])],
    )
    assert ask(broker, None, kind).error_code == INVALID


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize("version", range(3))
def test_expired_timeout_elects_no_leader(
    broker: SimulatedBroker, timeout_ms: int, version: int
) -> None:
    response = ask(broker, [("orders", [0])], timeout_ms=timeout_ms, version=version)
    assert response.error_code == (TIMED_OUT if version else 0)
    assert codes(response) == [("orders", [(0, TIMED_OUT)])]


@pytest.mark.parametrize("kind", [PREFERRED, 99])
def test_request_without_partitions_succeeds(broker: SimulatedBroker, kind: int) -> None:
    response = ask(broker, [], kind, timeout_ms=0)
    assert (response.error_code, codes(response)) == (0, [])


def test_stopped_preferred_leader_is_not_available(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[SELF], leader=SELF)
    assert codes(ask(broker, [("orders", [0])])) == [("orders", [(0, PREFERRED_NOT_AVAILABLE)])]
    assert codes(ask(broker, None)) == [("orders", [(0, PREFERRED_NOT_AVAILABLE)])]
    assert orders(broker).leader == SELF


def test_the_preferred_leader_leads_when_it_is_in_sync(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[SELF, GONE], isr=[SELF, GONE], leader=GONE)
    assert codes(ask(broker, [("orders", [0, 0])])) == [("orders", [(0, 0), (0, 0)])]
    elected = orders(broker)
    assert (elected.leader, elected.leader_epoch, elected.isr) == (SELF, 5, (SELF, GONE))


def test_unclean_election_elects_an_out_of_sync_replica(
    broker: SimulatedBroker,
) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[GONE], leader=-1)
    assert codes(ask(broker, [("orders", [0])])) == [("orders", [(0, PREFERRED_NOT_AVAILABLE)])]
    assert codes(ask(broker, None, UNCLEAN)) == [("orders", [(0, 0)])]
    elected = orders(broker)
    assert (elected.leader, elected.isr, elected.recovering) == (SELF, (SELF,), True)


def test_partition_without_live_replicas_stays_leaderless(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE], isr=[GONE], leader=-1)
    response = ask(broker, [("orders", [0])], UNCLEAN)
    assert codes(response) == [("orders", [(0, ELIGIBLE_NOT_AVAILABLE)])]


def elect(world: ClusterWorld, kind: int) -> list[int]:
    """Elect leaders of all partitions of ``orders``; return the error codes in order."""
    indexes = list(world.image.topics.by_name["orders"].partitions)
    named = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=indexes)
    request = ElectLeadersRequest(election_type=kind, topic_partitions=[named], timeout_ms=1000)
    response = world.ask(request)
    assert isinstance(response, ElectLeadersResponse)
    return [p.error_code for t in response.replica_election_results for p in t.partition_result]


def test_preferred_leaders_are_elected_among_several_brokers() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [2, 1, 3], [3, 2, 1])
    world.heartbeat(world.processes[3], fence=True)
    world.heartbeat(world.processes[1], fence=True)
    world.heartbeat(world.processes[1])
    assert [world.partition(index).leader for index in range(3)] == [2, 2, 2]
    world.alter_isr(world.processes[2], [2, 1])
    assert elect(world, PREFERRED) == [0, NOT_NEEDED, PREFERRED_NOT_AVAILABLE]
    assert [world.partition(index).leader for index in range(3)] == [1, 2, 2]


def test_unclean_election_elects_a_live_replica_only_for_leaderless_partitions() -> None:
    world = ClusterWorld([1, 2, 3], min_isr=1)
    world.make_topic([1, 2, 3], [2, 3], [1])
    world.alter_isr(world.processes[1], [1])
    world.heartbeat(world.processes[1], fence=True)
    assert elect(world, PREFERRED) == [PREFERRED_NOT_AVAILABLE, NOT_NEEDED, PREFERRED_NOT_AVAILABLE]
    assert elect(world, UNCLEAN) == [0, NOT_NEEDED, ELIGIBLE_NOT_AVAILABLE]
    led = world.partition()
    assert (led.leader, led.isr, led.elr, led.recovering) == (2, (2,), (), True)


def test_rule_41_an_eligible_leader_that_is_alive_is_elected_cleanly_by_any_election() -> None:
    world = ClusterWorld([1, 2], min_isr=2)
    world.make_topic([1, 2])
    world.heartbeat(world.processes[2], fence=True)
    world.heartbeat(world.processes[1], fence=True)
    assert (world.partition().leader, world.partition().elr) == (-1, (2, 1))
    world.heartbeat(world.processes[2])
    led = world.partition()
    assert (led.leader, led.isr, led.elr, led.recovering) == (2, (2,), (1,), False)
