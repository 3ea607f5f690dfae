"""Idle clients that hold all connections of a leader do not keep its followers out.

The nodes have one listener, which they share with clients, and the addresses of clients.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Cluster
from tests.support.patience import PATIENCE_S, eventually

NODES, TOPIC, CONNECTIONS_MAX = (0, 1, 2), "orders", 20

pytestmark = pytest.mark.cluster


@contextmanager
def idle_clients(cluster: Cluster, node: int) -> Iterator[None]:
    """Open twice as many idle connections as a node accepts."""
    broker = cluster.brokers[node]
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with ExitStack() as stack:
        for _ in range(2 * CONNECTIONS_MAX):
            stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
        eventually(lambda: broker.statistics()["connections_open"] >= CONNECTIONS_MAX)
        yield


def test_a_follower_fetches_again_while_idle_clients_hold_all_connections(tmp_path: Path) -> None:
    with Cluster(3, data=tmp_path, config={"max.connections": CONNECTIONS_MAX}) as cluster:
        cluster.create_topic(TOPIC, 1)
        leader = cluster.wait_leader(TOPIC)
        cluster.wait_isr(TOPIC)
        follower = next(node for node in NODES if node != leader)
        cluster.kill(follower)
        cluster.wait_isr(TOPIC, isr=len(NODES) - 1)
        with idle_clients(cluster, leader):
            cluster.start(follower)
            cluster.wait_isr(TOPIC, timeout=PATIENCE_S)
            producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
            producer.produce(TOPIC, b"order 1")
            assert producer.flush(PATIENCE_S) == 0
