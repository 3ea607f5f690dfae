"""Snapshots of the metadata in a cluster: who comes late gets one, as the log has no beginning any more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.types import random_id
from tests.cluster.clients import consume, create, eventually, produce
from tests.cluster.nodes import Nodes, nodes

EACH_COMMIT = {
    "metadata.log.max.record.bytes.between.snapshots": 1,
    "metadata.max.retention.bytes": 0,
    "internal.metadata.log.segment.bytes": 1000,
    "log.retention.check.interval.ms": 50,
}
ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.settings = dict(EACH_COMMIT)
        cluster.start(*ALL)
        yield cluster


def log_start(broker: Broker) -> int:
    return broker._core.offsets((bytes(15) + b"\1", 0)).log_start_offset


def drop_the_beginning(cluster: Nodes, count: int = 5) -> None:
    """Make topics until no node that is up has the first records any more."""
    made = len(cluster.up[next(iter(cluster.up))].topics())
    for number in range(made, made + count):
        create(cluster.bootstrap, f"topic-{number}", *([next(iter(cluster.up))] * 2))
    eventually(lambda: all(log_start(broker) > 0 for broker in cluster.up.values()))


def topics_of(cluster: Nodes) -> list[set[str]]:
    return [set(broker.topics()) for broker in cluster.up.values()]


def agree(cluster: Nodes) -> None:
    """All that are up come to the same topics."""
    eventually(lambda: len({frozenset(topics) for topics in topics_of(cluster)}) == 1)


def snapshots(data: Path) -> list[tuple[int, int]]:
    return [(one.end_offset, one.leader_epoch) for one in DataDirectory(data).snapshots()]


def test_members_take_snapshots_and_come_back_by_them(cluster: Nodes) -> None:
    drop_the_beginning(cluster)
    before = set(cluster.up[1].topics())
    cluster.stop(*ALL)
    for node in ALL:
        (newest,) = snapshots(cluster.data(node))[-1:]
        assert newest[0] > 0
        content = DataDirectory(cluster.data(node)).latest_snapshot()
        assert content is not None
        assert None not in QuorumRecords().after(content.bytes), "kraft.version and voters"
    cluster.start(*ALL)
    assert topics_of(cluster) == [before] * 3
    create(cluster.bootstrap, "later", 1, 2, 3)
    agree(cluster)


def test_a_node_that_was_away_gets_a_snapshot(cluster: Nodes) -> None:
    create(cluster.bootstrap, "orders", 1, 2, 3)
    away = next(node for node in ALL if node != cluster.controller())
    cluster.stop(away)
    end = max(found[0] for found in snapshots(cluster.data(away)) or [(0, 0)])
    staying = next(iter(cluster.up))
    cluster.up[staying].delete_topic("orders")
    drop_the_beginning(cluster)
    eventually(lambda: all(log_start(broker) > end + 10 for broker in cluster.up.values()))
    cluster.start(away)
    agree(cluster)
    assert "orders" not in cluster.up[away].topics()
    assert log_start(cluster.up[away]) > end
    create(cluster.bootstrap, "later", away)
    produce(cluster.bootstrap, "later", ["a", "b"])
    assert consume(cluster.bootstrap, "later", 2) == ["a", "b"]


def join_with_an_empty_disk(cluster: Nodes, node: int, data: Path) -> Broker:
    identity = DataDirectory(cluster.data(next(iter(cluster.up)))).identity()
    assert identity is not None
    format_directory(data, Identity(identity.cluster_id, node, random_id(_random)))
    controllers = cluster.config(1)["controller.quorum.bootstrap.servers"]
    voters = ",".join(
        f"{one}@{at}" for one, at in zip(ALL, str(controllers).split(","), strict=True)
    )
    config = {
        "process.roles": "broker",
        "node.id": node,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": voters,
        "inter.broker.listener.name": "PLAINTEXT",
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 200,
        **EACH_COMMIT,
    }
    return Broker(data, config=config)


def _random(count: int) -> bytes:
    return bytes(range(count))


def test_a_node_with_an_empty_disk_joins_after_the_beginning_of_the_log_is_gone(
    cluster: Nodes, tmp_path: Path
) -> None:
    create(cluster.bootstrap, "orders", 1, 2, 3)
    drop_the_beginning(cluster)
    late = tmp_path / "late"
    with join_with_an_empty_disk(cluster, 4, late) as broker:
        assert set(broker.topics()) == set(cluster.up[1].topics())
        assert log_start(broker) > 0
        create(cluster.bootstrap, "on-four", 4)
        produce(broker.bootstrap_servers, "on-four", ["x"])
        assert consume(cluster.bootstrap, "on-four", 1) == ["x"]
        drop_the_beginning(cluster)
        eventually(lambda: set(broker.topics()) == set(cluster.up[1].topics()))
    with join_again(cluster, late) as broker:
        eventually(lambda: set(broker.topics()) == set(cluster.up[1].topics()))
    content = DataDirectory(late).latest_snapshot()
    assert content is not None
    assert None not in QuorumRecords().after(content.bytes), "they come from the snapshot"


def join_again(cluster: Nodes, data: Path) -> Broker:
    controllers = cluster.config(1)["controller.quorum.bootstrap.servers"]
    config = {
        "process.roles": "broker",
        "node.id": 4,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": controllers,
        "inter.broker.listener.name": "PLAINTEXT",
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 200,
    }
    return Broker(data, config=config)
