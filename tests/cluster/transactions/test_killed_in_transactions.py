"""Nodes are killed while transactions end: each transaction is complete or absent in the end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC
from tests.cluster.clients import (
    create,
    create_replicated,
    isr_of,
    leaders_of,
    produce,
    read_by_group,
)
from tests.cluster.nodes import Processes, processes
from tests.cluster.transactions.transactions import (
    committed_offsets,
    coordinator_of,
    read_committed,
    send_offsets,
    transactional_producer,
    write,
)
from tests.support.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.cluster

ALL = [1, 2, 3]
TRANSACTIONS = 20


class OneCopyOfTransactions(Processes):
    """Decisions are only on their coordinator's disk, so that no other node has to agree."""

    def config(self, node_id: int) -> dict[str, object]:
        alone = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}
        return super().config(node_id) | alone


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


@contextmanager
def paused(cluster: Processes, node_id: int) -> Iterator[None]:
    """Pause a node: it accepts connections and does not respond. It may be killed then."""
    process = cluster.up[node_id]
    process.send_signal(signal.SIGSTOP)
    yield
    if node_id in cluster.up:
        process.send_signal(signal.SIGCONT)


def others(node_id: int) -> list[int]:
    return [other for other in ALL if other != node_id]


def test_next_leader_gets_the_marker_that_a_killed_one_had_not_written(tmp_path: Path) -> None:
    with processes(tmp_path, kind=OneCopyOfTransactions) as cluster:
        cluster.start(*ALL)
        bootstrap = cluster.bootstrap
        create_replicated(bootstrap, "payments", partitions=3)
        producer = transactional_producer(bootstrap, "transfers")
        coordinator = coordinator_of(bootstrap, TRANSACTION_TOPIC, "transfers")
        victim = others(coordinator)[0]
        assert victim in leaders_of(bootstrap, "payments")
        producer.begin_transaction()
        write(producer, "payments", ["a", "b", "c"])
        with paused(cluster, victim):
            producer.commit_transaction(PATIENCE_S)
            cluster.kill(victim)
        assert read_committed(cluster.bootstrap, "payments") == ["a", "b", "c"]


def test_next_coordinator_completes_a_transaction_decided_by_a_killed_one(
    cluster: Processes,
) -> None:
    """A partition's leader is paused, so that the transaction cannot complete before the kill."""
    bootstrap = cluster.bootstrap
    producer = transactional_producer(bootstrap, "transfers")
    coordinator = coordinator_of(bootstrap, TRANSACTION_TOPIC, "transfers")
    away, witness = others(coordinator)
    create(bootstrap, "payments", away, witness)
    eventually(lambda: leaders_of(bootstrap, "payments") == [away, witness])
    producer.begin_transaction()
    write(producer, "payments", ["a", "b"])
    with paused(cluster, away):
        producer.commit_transaction(PATIENCE_S)
        cluster.kill(coordinator)
    assert read_committed(cluster.bootstrap, "payments") == ["a", "b"]
    again = transactional_producer(cluster.bootstrap, "transfers")
    assert coordinator_of(cluster.bootstrap, TRANSACTION_TOPIC, "transfers") != coordinator
    again.begin_transaction()
    write(again, "payments", ["c", "d"])
    again.abort_transaction(PATIENCE_S)
    assert read_committed(cluster.bootstrap, "payments") == ["a", "b"]


def transfer(producer: Producer, amount: int) -> None:
    """Transfer from one account to another, again until it is committed."""
    while not _is_transferred(producer, amount):
        producer.abort_transaction(PATIENCE_S)


def _is_transferred(producer: Producer, amount: int) -> bool:
    producer.begin_transaction()
    try:
        write(producer, "accounts", [str(amount), str(-amount), "0"])
        producer.commit_transaction(PATIENCE_S)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        return False
    return True


@pytest.mark.parametrize("role", ["leader", "coordinator"])
def test_sums_are_exact_when_a_node_is_killed_in_the_middle(cluster: Processes, role: str) -> None:
    create_replicated(cluster.bootstrap, "accounts", partitions=3)
    everywhere = cluster.bootstrap
    producer = transactional_producer(everywhere, "transfers")
    coordinator = coordinator_of(everywhere, TRANSACTION_TOPIC, "transfers")
    for amount in range(1, TRANSACTIONS + 1):
        if amount == TRANSACTIONS // 2:
            leaders = leaders_of(everywhere, "accounts")
            of_others = [leader for leader in leaders if leader != coordinator]
            cluster.kill(coordinator if role == "coordinator" else of_others[0])
        transfer(producer, amount)
    values = sorted(int(value) for value in read_committed(cluster.bootstrap, "accounts"))
    amounts = list(range(1, TRANSACTIONS + 1))
    assert values == sorted([*amounts, *(-amount for amount in amounts), *([0] * TRANSACTIONS)])


def test_group_and_its_transactional_offsets_continue_without_their_coordinator(
    cluster: Processes,
) -> None:
    bootstrap = cluster.bootstrap
    create_replicated(bootstrap, "orders", partitions=3)
    produce(bootstrap, "orders", ["a", "b", "c"])
    assert len(read_by_group(bootstrap, "workers", "orders", 3)) == 3
    producer = transactional_producer(bootstrap, "transfers")
    eventually(lambda: isr_of(bootstrap, GROUP_TOPIC) == [ALL] * 50)
    producer.begin_transaction()
    send_offsets(producer, bootstrap, "workers", "orders", {0: 1, 1: 1, 2: 0})
    producer.commit_transaction(PATIENCE_S)
    coordinator = coordinator_of(bootstrap, GROUP_TOPIC, "workers")
    cluster.kill(coordinator)
    assert committed_offsets(cluster.bootstrap, "workers", "orders", 3) == {0: 1, 1: 1, 2: 0}
    # librdkafka 2 asks a group's cached coordinator forever if Metadata no longer lists that node.
    producer = transactional_producer(cluster.bootstrap, "transfers")
    producer.begin_transaction()
    send_offsets(producer, cluster.bootstrap, "workers", "orders", {0: 0, 1: 0})
    producer.commit_transaction(PATIENCE_S)
    assert committed_offsets(cluster.bootstrap, "workers", "orders", 3) == {0: 0, 1: 0, 2: 0}
    assert sorted(read_by_group(cluster.bootstrap, "workers", "orders", 3)) == [b"a", b"b", b"c"]
