"""Metadata snapshots in a cluster: late nodes get one, because the log's beginning was deleted."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.types import random_id
from tests.cluster.clients import consume, create, leaders_of, produce
from tests.cluster.nodes import SESSION, Nodes, Processes, nodes, processes
from tests.support.java import java
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.nodes import serve_command

EACH_COMMIT = {
    "metadata.log.max.record.bytes.between.snapshots": 1,
    "metadata.max.retention.bytes": 0,
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
    """Create topics until no running node has the first records any more."""
    made = len(cluster.up[next(iter(cluster.up))].topics())
    for number in range(made, made + count):
        create(cluster.bootstrap, f"topic-{number}", *([next(iter(cluster.up))] * 2))
    eventually(lambda: all(log_start(broker) > 0 for broker in cluster.up.values()))


def topics_of(cluster: Nodes) -> list[set[str]]:
    return [set(broker.topics()) for broker in cluster.up.values()]


def agree(cluster: Nodes) -> None:
    """Wait until all running nodes have the same topics."""
    eventually(lambda: len({frozenset(topics) for topics in topics_of(cluster)}) == 1)


def snapshots(data: Path) -> list[tuple[int, int]]:
    return [(one.end_offset, one.leader_epoch) for one in DataDirectory(data).snapshots()]


@pytest.mark.cluster
def test_members_write_snapshots_and_restart_from_them(cluster: Nodes) -> None:
    drop_the_beginning(cluster)
    before = {f"topic-{number}" for number in range(5)}
    eventually(lambda: topics_of(cluster) == [before] * 3)
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


def test_node_that_was_down_gets_a_snapshot(cluster: Nodes) -> None:
    """Regression: its start was refused, because its new log does not show its deleted topics."""
    create(cluster.bootstrap, "orders", 1, 2, 3)
    produce(cluster.bootstrap, "orders", ["a", "b", "c"])
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
    (stray,) = cluster.data(away).glob("orders-*")
    assert stray.name.endswith("-stray")
    create(cluster.bootstrap, "later", away)
    produce(cluster.bootstrap, "later", ["a", "b"])
    assert consume(cluster.bootstrap, "later", 2) == ["a", "b"]


def join(cluster: Nodes, node: int, data: Path) -> Broker:
    """Return a broker without a vote; its disk is empty the first time."""
    if not data.exists():
        identity = DataDirectory(cluster.data(next(iter(cluster.up)))).identity()
        assert identity is not None
        format_directory(data, Identity(identity.cluster_id, node, random_id(os.urandom)))
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
        **SESSION,
        **EACH_COMMIT,
    }
    return Broker(data, config=config)


@pytest.mark.cluster
def test_node_with_an_empty_disk_joins_after_the_start_of_the_log_was_deleted(
    cluster: Nodes, tmp_path: Path
) -> None:
    create(cluster.bootstrap, "orders", 1, 2, 3)
    drop_the_beginning(cluster)
    late = tmp_path / "late"
    agree(cluster)
    with join(cluster, 4, late) as broker:
        assert set(broker.topics()) == set(cluster.up[1].topics())
        assert log_start(broker) > 0
        create(cluster.bootstrap, "on-four", 4)
        produce(broker.bootstrap_servers, "on-four", ["x"])
        assert consume(cluster.bootstrap, "on-four", 1) == ["x"]
        drop_the_beginning(cluster)
        eventually(lambda: set(broker.topics()) == set(cluster.up[1].topics()))
    with join(cluster, 4, late) as broker:
        eventually(lambda: set(broker.topics()) == set(cluster.up[1].topics()))
    content = DataDirectory(late).latest_snapshot()
    assert content is not None
    assert None not in QuorumRecords().after(content.bytes), "they come from the snapshot"


def seen(data: Path, suffixes: tuple[str, ...], known: set[str]) -> bool:
    """Return whether the metadata log has a new file."""
    found = os.listdir(data / METADATA_DIRECTORY)
    return any(name not in known for name in found if name.endswith(suffixes))


PART, WHOLE, DELETED = ".part", ".checkpoint", ".deleted"


@pytest.mark.cluster
@pytest.mark.parametrize("suffixes", [(PART, WHOLE), (WHOLE,), (DELETED,)], ids=lambda all: all[0])
def test_node_that_is_killed_while_it_installs_a_snapshot_recovers(
    tmp_path: Path, suffixes: tuple[str, ...]
) -> None:
    """Kill it at the first sight of a part, of the whole snapshot, and of deleted segments."""
    with processes(tmp_path) as cluster:
        cluster.settings = dict(EACH_COMMIT)
        cluster.start(*ALL)
        away = 3
        cluster.kill(away)
        data = cluster.data(away)
        create_topics(cluster, 8)
        known = {file.name for file in (data / METADATA_DIRECTORY).iterdir()}
        saved = tmp_path / "saved"
        shutil.copytree(data, saved)
        for _ in range(3):
            shutil.rmtree(data)
            shutil.copytree(saved, data)
            kill_once_seen(cluster, away, suffixes, known)
            cluster.start(away)
            topics = [f"topic-{number}" for number in range(8)]
            bootstrap = cluster.bootstrap_of([away])
            assert {name: leaders_of(bootstrap, name) for name in topics} == {
                name: [1, 1] for name in topics
            }
            cluster.kill(away)


def create_topics(cluster: Processes, count: int) -> None:
    for number in range(count):
        create(cluster.bootstrap, f"topic-{number}", 1, 1)


def kill_once_seen(
    cluster: Processes, node: int, suffixes: tuple[str, ...], known: set[str]
) -> None:
    command = serve_command(cluster.properties(node), cluster.data(node), "--log-level", "error")
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not seen(cluster.data(node), suffixes, known):  # some exist only briefly
            assert time.monotonic() < deadline, f"no new file {suffixes} beside {known}"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jvm
def test_tool_of_kafka_reads_a_snapshot_of_a_member(cluster: Nodes) -> None:
    drop_the_beginning(cluster)
    cluster.stop(*ALL)
    newest = DataDirectory(cluster.data(2)).snapshots()[-1]
    printed = java(
        "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(newest.path)
    )
    for record in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
        assert record in printed
    assert "isvalid: false" not in printed
    assert '"name":"topic-0"' in printed
    assert str(newest.path) in printed
