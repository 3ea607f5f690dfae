"""Throttled replication (KIP-73) when nodes die: the ISR is not throttled, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Cluster
from pykafka_core.cli import main
from pykafka_core.types import GROUP_TOPIC, RESOURCE_BROKER, RESOURCE_TOPIC, TRANSACTION_TOPIC
from tests.cluster.clients import consume, create_placed, isr_of, produce, read_by_group
from tests.cluster.replicas.throttles import (
    BATCHES,
    LISTS,
    ONE_BATCH,
    RATES,
    alter,
    copied,
    create_filled,
    records,
)
from tests.cluster.transactions.transactions import (
    committed_offsets,
    read_committed,
    send_offsets,
    transactional_producer,
    write,
)
from tests.support.patience import PATIENCE_S, eventually

ALL = dict.fromkeys(LISTS, "*")
NOTHING = dict.fromkeys(RATES, "0")
NO_LIMIT = dict.fromkeys(RATES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def cluster(data: Path) -> Iterator[Cluster]:
    config = {**ONE_BATCH, "auto.leader.rebalance.enable": False}
    with Cluster(3, data=data, config=config) as cluster:
        yield cluster
        cluster.kill(0, 1, 2)  # concurrently


def test_in_sync_replicas_stay_in_sync_and_acknowledge_when_throttled_to_nothing(
    cluster: Cluster,
) -> None:
    create_placed(cluster, "kept", [0, 1, 2])
    alter(cluster, RESOURCE_TOPIC, "kept", {"min.insync.replicas": "3", **ALL})
    alter(cluster, RESOURCE_BROKER, "", NOTHING)
    values = [str(number) for number in range(10)]
    servers = cluster.bootstrap_servers
    for value in values:
        produce(servers, "kept", [value])
    assert isr_of(servers, "kept") == [[0, 1, 2]]
    assert consume(servers, "kept", len(values)) == values


@pytest.mark.cluster
def test_groups_and_transactions_continue_when_their_topics_are_throttled_to_nothing(
    cluster: Cluster,
) -> None:
    servers = cluster.bootstrap_servers
    create_placed(cluster, "in", [0, 1, 2])
    produce(servers, "in", ["first"])
    assert read_by_group(servers, "readers", "in", 1) == [b"first"]
    transactional_producer(servers, "copier")
    for topic in (GROUP_TOPIC, TRANSACTION_TOPIC, "in"):
        alter(cluster, RESOURCE_TOPIC, topic, ALL)
    alter(cluster, RESOURCE_BROKER, "", NOTHING)
    for number in range(3):
        producer = transactional_producer(servers, "copier")
        producer.begin_transaction()
        write(producer, "in", [str(number)])
        send_offsets(producer, servers, "readers", "in", {0: number + 1})
        producer.commit_transaction(PATIENCE_S)
        assert committed_offsets(servers, "readers", "in", 1) == {0: number + 1}
    assert read_committed(servers, "in") == ["0", "1", "2", "first"]


@pytest.mark.cluster
def test_throttled_move_survives_the_kill_of_its_leader_and_of_its_follower(
    cluster: Cluster, data: Path
) -> None:
    create_filled(cluster, "moved", [0, 1])
    lists = {LISTS[0]: "0:0,0:1", LISTS[1]: "0:2"}
    alter(cluster, RESOURCE_TOPIC, "moved", lists)
    alter(cluster, RESOURCE_BROKER, "", NOTHING)
    whole, servers = copied(data, 0, "moved"), cluster.bootstrap_servers
    with pytest.raises(SystemExit) as caught:
        main(["topics", "reassign", "moved", "--to", "0,2", "--no-wait", "-b", servers])
    assert caught.value.code == 0
    eventually(lambda: copied(data, 2, "moved") > 0)
    cluster.kill(0)
    assert cluster.wait_leader("moved", other_than=0) == 1
    cluster.start(0)
    cluster.wait_isr("moved", 0, [0, 1])
    cluster.kill(2)
    cluster.start(2)
    produce(servers, "moved", ["last"])
    assert isr_of(servers, "moved") == [[0, 1]]
    assert copied(data, 2, "moved") < whole / 2
    alter(cluster, RESOURCE_BROKER, "", NO_LIMIT)
    eventually(lambda: isr_of(servers, "moved") == [[0, 2]])
    assert consume(servers, "moved", BATCHES + 1) == sorted([*records(), "last"])
