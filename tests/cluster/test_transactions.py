"""Transactions whose partitions, group and coordinator are on different nodes: all or nothing, whoever is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clients import create, leaders_of, produce
from tests.cluster.nodes import Nodes, nodes
from tests.cluster.transactions import (
    committed_offsets,
    read_committed,
    send_offsets,
    transactional_producer,
)
from tests.support.patience import PATIENCE_S

ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


@pytest.mark.parametrize("number", range(3))
def test_partitions_of_all_nodes_and_a_groups_offsets_are_one_transaction(
    cluster: Nodes, number: int
) -> None:
    bootstrap = cluster.bootstrap
    create(bootstrap, "orders", *ALL)
    create(bootstrap, "payments", *ALL)
    produce(bootstrap, "orders", ["a", "b", "c"])
    producer = transactional_producer(bootstrap, f"transfers-{number}")
    offsets = {0: 1, 1: 1, 2: 1}
    for values, commit in ((["x", "y", "z"], False), (["1", "2", "3"], True)):
        producer.begin_transaction()
        for partition, value in enumerate(values):
            producer.produce("payments", value, partition=partition)
        send_offsets(producer, bootstrap, "readers", "orders", offsets)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
            assert committed_offsets(bootstrap, "readers", "orders", 3) == {}
    assert read_committed(bootstrap, "payments") == ["1", "2", "3"]
    assert committed_offsets(bootstrap, "readers", "orders", 3) == offsets
    assert set(leaders_of(bootstrap, "__transaction_state")) == set(ALL)
