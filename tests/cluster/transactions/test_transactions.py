"""Transactions across nodes are complete or absent, whichever node is killed.

Partitions, group and coordinator are on different nodes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clients import create, leaders_of, produce
from tests.cluster.nodes import Nodes, nodes
from tests.cluster.transactions.transactions import (
    committed_offsets,
    coordinator_of,
    read_committed,
    send_offsets,
    transactional_producer,
    write,
)
from tests.support.cli import run
from tests.support.patience import PATIENCE_S, eventually

ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


@pytest.mark.parametrize("number", range(3))
def test_partitions_of_all_nodes_and_offsets_of_a_group_are_one_transaction(
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


@pytest.mark.cluster
def test_a_transaction_whose_coordinator_is_down_is_not_aborted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the command wrote a marker, and readers did not get the committed records."""
    topic = "__transaction_state"
    with nodes(tmp_path) as cluster:
        cluster.settings = {
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
        }
        cluster.start(*ALL)
        producer = transactional_producer(cluster.bootstrap, "healthy")
        down = coordinator_of(cluster.bootstrap, topic, "healthy")
        create(cluster.bootstrap, "payments", next(node for node in ALL if node != down))
        producer.begin_transaction()
        write(producer, "payments", ["1"])
        cluster.stop(down)
        eventually(lambda: leaders_of(cluster.bootstrap, topic) == [-1])
        for command in (["abort", "payments:0", "--yes"], ["list"]):
            assert run("transactions", *command, "-b", cluster.bootstrap) == 1
            assert f"{topic}:0: it has no leader" in capsys.readouterr().err
        cluster.start(down)
        producer.commit_transaction(PATIENCE_S)
        assert read_committed(cluster.bootstrap, "payments") == ["1"]
