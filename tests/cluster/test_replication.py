"""A topic on three nodes: what is acknowledged is on all of them, and outlives each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.clients import (
    consume,
    create_replicated,
    eventually,
    leaders_of,
    produce,
)
from tests.cluster.nodes import Nodes, has_isr, nodes

ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


def test_records_outlive_each_node_in_turn(cluster: Nodes) -> None:
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
