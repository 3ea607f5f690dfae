"""One cluster of three nodes, each broker and controller; it continues without one of them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pykafka_core import Broker
from tests.cluster.clients import consume, create, create_replicated, leaders_of, produce
from tests.cluster.nodes import Nodes, nodes
from tests.support.patience import eventually


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        yield cluster


def test_each_node_leads_partitions_and_forwards_requests_for_the_controller(
    cluster: Nodes,
) -> None:
    for node_id, broker in cluster.up.items():
        create(broker.bootstrap_servers, f"orders-{node_id}", 1, 2, 3)
    for node_id, broker in cluster.up.items():
        topic = f"orders-{node_id}"
        eventually(partial(_has, broker, topic))
        assert leaders_of(broker.bootstrap_servers, topic) == [1, 2, 3]
        produce(broker.bootstrap_servers, topic, [str(number) for number in range(30)])
        assert len(consume(cluster.bootstrap, topic, 30)) == 30


def _has(broker: Broker, topic: str) -> bool:
    return topic in broker.topics()


def test_another_node_decides_when_the_active_controller_stops(cluster: Nodes) -> None:
    create(cluster.bootstrap, "before", 1, 2, 3)
    controller = cluster.controller()
    cluster.stop(controller)
    survivors = list(cluster.up)
    create(cluster.bootstrap, "after", *survivors)
    produce(cluster.bootstrap, "after", ["a", "b", "c"])
    expected = [-1 if node == controller else node for node in (1, 2, 3)]
    eventually(lambda: leaders_of(cluster.bootstrap, "before") == expected)
    cluster.start(controller)
    eventually(lambda: leaders_of(cluster.bootstrap, "before") == [1, 2, 3])
    assert len(consume(cluster.bootstrap, "after", 3)) == 3


@pytest.mark.cluster
def test_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with nodes(tmp_path) as cluster:
        cluster.settings["replica.selector.class"] = selector
        cluster.start(1, 2, 3)
        create_replicated(cluster.bootstrap, "orders", partitions=1)
        (leader,) = leaders_of(cluster.bootstrap, "orders")
        near = leader % 3 + 1
        values = [f"{number:4}" + "x" * 996 for number in range(1000)]
        produce(cluster.bootstrap, "orders", values)
        before = _bytes_sent(cluster)
        assert consume(cluster.bootstrap, "orders", 1000, rack=f"rack{near}") == values
        sent = {node: total - before[node] for node, total in _bytes_sent(cluster).items()}
        assert sent[near] > 1_000_000


def _bytes_sent(cluster: Nodes) -> dict[int, int]:
    return {node: int(broker.statistics()["bytes_sent"]) for node, broker in cluster.up.items()}


@pytest.mark.cluster
def test_all_nodes_restart_with_their_metadata_and_records(cluster: Nodes) -> None:
    create(cluster.bootstrap, "orders", 1, 2, 3)
    values = [str(number) for number in range(9)]
    produce(cluster.bootstrap, "orders", values)
    cluster.stop(1, 2, 3)
    cluster.start(1, 2, 3)
    assert consume(cluster.bootstrap, "orders", 9) == values


@pytest.mark.cluster
def test_preferred_leader_leads_again_without_a_request(tmp_path: Path) -> None:
    with nodes(tmp_path) as cluster:
        cluster.settings["leader.imbalance.check.interval.seconds"] = 1
        cluster.start(1, 2, 3)
        create_replicated(cluster.bootstrap, "orders")
        preferred = leaders_of(cluster.bootstrap, "orders")
        assert sorted(preferred) == [1, 2, 3]
        cluster.stop(2)
        eventually(lambda: 2 not in leaders_of(cluster.bootstrap, "orders"))
        cluster.start(2)
        eventually(lambda: leaders_of(cluster.bootstrap, "orders") == preferred)
