"""A topic on three nodes: all of them have the acknowledged records, which outlive each node."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core.cli.client import wire
from pykafka_core.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from tests.cluster.clients import consume, create_replicated, leaders_of, produce
from tests.cluster.nodes import Nodes, has_isr, nodes
from tests.support.patience import PATIENCE_S, eventually

ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


@pytest.mark.cluster
def test_records_survive_each_node_in_turn(cluster: Nodes) -> None:
    create_replicated(cluster.bootstrap, "orders")
    produced: list[str] = []
    for node in ALL:
        values = [f"{node}-{number}" for number in range(30)]
        produce(cluster.bootstrap, "orders", values)
        produced += values
        cluster.stop(node)
        others = [other for other in ALL if other != node]
        eventually(partial(has_isr, cluster, others))
        assert set(leaders_of(cluster.bootstrap, "orders")) <= set(others)
        values = [f"without {node}-{number}" for number in range(30)]
        produce(cluster.bootstrap, "orders", values)
        produced += values
        cluster.start(node)
        eventually(partial(has_isr, cluster, ALL))
    assert consume(cluster.bootstrap, "orders", len(produced)) == sorted(produced)
    logs = [cluster.logs(node, "orders") for node in ALL]
    assert logs[0] == logs[1] == logs[2]


def test_each_replica_describes_its_producers(cluster: Nodes) -> None:
    """As in Apache Kafka: finding a hanging transaction needs the state of every replica."""
    create_replicated(cluster.bootstrap, "orders", partitions=1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    producer.produce("orders", b"one")
    assert producer.flush(PATIENCE_S) == 0
    topic = DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[0])
    request = DescribeProducersRequest(topics=[topic])

    def told(node: int) -> list[int]:
        host, _, port = cluster.bootstrap_of([node]).rpartition(":")
        with wire.Connection(host, int(port)) as connection:
            response = connection.ask(61, 0, request, DescribeProducersResponse)
        (partition,) = response.topics[0].partitions
        assert partition.error_code == 0, partition.error_message
        return [producer.producer_id for producer in partition.active_producers]

    def tells(node: int) -> bool:
        return told(node) == expected

    (leader,) = leaders_of(cluster.bootstrap, "orders")
    expected = told(leader)
    assert len(expected) == 1
    for node in ALL:
        eventually(partial(tells, node))
