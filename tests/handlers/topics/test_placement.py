"""The placement of replicas of new partitions."""

from collections import Counter

import pytest

from pykafka_core.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError
from pykafka_core.handlers.topics.placement import NewPartitions, Placer, check_assignment
from pykafka_core.metadata.image.image import Broker, MetadataImage
from tests.metadata.partitions import TOPIC_ID, broker

COUNT = 360
DIRECTORIES = (b"a" * 16, b"b" * 16)


def placed(*brokers: Broker, factor: int = 3, count: int = COUNT) -> list[tuple[int, ...]]:
    placer = Placer(MetadataImage(brokers={found.node_id: found for found in brokers}))
    placer.check(factor)
    return [placer.replicas(TOPIC_ID, index, factor) for index in range(count)]


def in_racks(racks: str) -> list[Broker]:
    """Return brokers 0, 1, …, each in the rack with its letter."""
    return [broker(node, rack=rack) for node, rack in enumerate(racks)]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_leaders_are_spread_evenly_and_no_broker_has_two_replicas(count: int) -> None:
    chosen = placed(*(broker(node) for node in range(count)), factor=min(3, count))
    assert set(Counter(nodes[0] for nodes in chosen).values()) == {COUNT // count}
    assert all(len(set(nodes)) == len(nodes) for nodes in chosen)


@pytest.mark.parametrize("racks", ["", "abcabc", "abc"])
def test_leadership_of_a_failed_broker_is_spread_over_many(racks: str) -> None:
    chosen = placed(*in_racks(racks)) if racks else placed(*(broker(node) for node in range(4)))
    next_leaders = Counter(nodes[1] for nodes in chosen if nodes[0] == 0)
    assert len(next_leaders) >= len(set(racks) or range(4)) - 1
    assert max(next_leaders.values()) <= 2 * min(next_leaders.values())


def test_replicas_are_in_different_racks_as_long_as_there_are_enough() -> None:
    brokers = in_racks("aabbccab")
    for nodes in placed(*brokers):
        assert {brokers[node].rack for node in nodes} == {"a", "b", "c"}
    for nodes in placed(*in_racks("aabb")):
        assert {node // 2 for node in nodes} == {0, 1}


def test_fenced_broker_never_leads_and_is_chosen_last_in_its_rack() -> None:
    chosen = placed(broker(1), broker(2, fenced=True), broker(3), broker(4), factor=3)
    assert all(2 not in nodes for nodes in chosen)
    assert all(nodes[-1] == 2 for nodes in placed(broker(1), broker(2, fenced=True), factor=2))
    racks = [
        broker(1, rack="a"),
        broker(2, rack="b", fenced=True),
        broker(3, rack="b", fenced=True),
    ]
    assert {nodes[0] for nodes in placed(*racks, factor=2)} == {1}


def test_broker_that_shuts_down_gets_no_replicas() -> None:
    stopping = broker(3, in_controlled_shutdown=True)
    assert all(3 not in nodes for nodes in placed(broker(1), broker(2), stopping, factor=2))
    with pytest.raises(InvalidReplicationFactorError, match=r"only 2 broker\(s\) are registered"):
        placed(broker(1), broker(2), stopping, factor=3)


def test_broker_that_has_shut_down_gets_replicas_as_any_fenced_broker() -> None:
    stopped = broker(3, fenced=True, in_controlled_shutdown=True)
    chosen = placed(broker(1), broker(2), stopped, factor=3)
    assert {(set(nodes) == {1, 2, 3}, nodes[-1]) for nodes in chosen} == {(True, 3)}


def test_cordoned_broker_gets_no_replicas() -> None:
    in_part = broker(2)._replace(directories=DIRECTORIES, cordoned=DIRECTORIES[:1])
    as_a_whole = broker(3)._replace(directories=DIRECTORIES, cordoned=DIRECTORIES[::-1])
    assert all(3 not in nodes for nodes in placed(broker(1), in_part, as_a_whole, factor=2))
    image = MetadataImage(brokers={2: in_part, 3: as_a_whole})
    check_assignment(image, [2], None)
    with pytest.raises(InvalidReplicaAssignmentError, match="log directories are cordoned"):
        check_assignment(image, [2, 3], None)


def test_without_a_live_broker_nothing_is_placed() -> None:
    with pytest.raises(InvalidReplicationFactorError, match="All brokers are currently fenced"):
        placed(broker(1, fenced=True), factor=1)


def test_topics_start_with_different_brokers() -> None:
    placer = Placer(MetadataImage(brokers={node: broker(node) for node in range(3)}))
    topics = [index.to_bytes(16, "big") for index in range(30)]
    firsts = Counter(placer.replicas(topic, 0, 1) for topic in topics)
    assert firsts == {(0,): 10, (1,): 10, (2,): 10}


def test_initial_isr_has_only_active_brokers() -> None:
    brokers = {
        1: broker(1, fenced=True),
        2: broker(2, in_controlled_shutdown=True),
        3: broker(3),
    }
    records = NewPartitions(MetadataImage(brokers=brokers))
    made = records.record(TOPIC_ID, 0, (1, 2, 3))
    assert (made.replicas, made.isr, made.leader) == ([1, 2, 3], [3], 3)
    with pytest.raises(InvalidReplicaAssignmentError):
        records.record(TOPIC_ID, 0, (1, 2))
