"""Kafka's `kafka-reassign-partitions --throttle` (KIP-73) and our tool set the same throttles."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Cluster
from pykafka_core.cli import main
from tests.cluster.clients import consume, isr_of
from tests.cluster.replicas.throttles import (
    BATCHES,
    ONE_BATCH,
    copied,
    create_filled,
    records,
    throttles,
)
from tests.support.java import java
from tests.support.patience import eventually

pytestmark = pytest.mark.jvm

NOTHING: dict[str, str] = {}


class Reassignment:
    """A topic whose replicas move from nodes 0 and 1 to 0 and 2, and the file for the tool."""

    def __init__(self, cluster: Cluster, folder: Path, topic: str) -> None:
        self.topic = topic
        self._cluster = cluster
        self._file = folder / f"{topic}.json"
        wanted = {"topic": topic, "partition": 0, "replicas": [0, 2]}
        self._file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        create_filled(cluster, topic, [0, 1])

    def theirs(self, *arguments: str) -> str:
        return java(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", self._cluster.bootstrap_servers),
            *("--reassignment-json-file", str(self._file)),
            *arguments,
        )

    def ours(self, *arguments: str) -> None:
        at = "-b", self._cluster.bootstrap_servers
        with pytest.raises(SystemExit) as caught:
            main(["topics", "reassign", *arguments, *at])
        assert caught.value.code == 0

    def move(self, throttle: str) -> None:
        self.ours("--plan", str(self._file), "--throttle", throttle, "--no-wait")

    def throttles(self) -> dict[str, str]:
        return throttles(self._cluster, self.topic)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def cluster(data: Path) -> Iterator[Cluster]:
    with Cluster(3, data=data, config=ONE_BATCH) as cluster:
        yield cluster
        cluster.kill(0, 1, 2)  # concurrently


@pytest.mark.one_broker("starts three of its own")
def test_tool_of_kafka_throttles_a_move_and_removes_the_throttle_afterwards(
    cluster: Cluster, data: Path, tmp_path: Path
) -> None:
    slow = Reassignment(cluster, tmp_path, "slow")
    executed = slow.theirs("--execute", "--throttle", "0")
    assert "The inter-broker throttle limit was set to 0 B/s" in executed
    eventually(lambda: len(slow.throttles()) == 8)
    by_theirs = slow.throttles()
    # The same amount is copied unthrottled while this move waits.
    free = Reassignment(cluster, tmp_path, "free")
    free.ours("free", "--to", "0,2")
    assert copied(data, 2, "free") == copied(data, 0, "free")
    assert copied(data, 2, "slow") < copied(data, 0, "slow") / 2
    assert "is still in progress" in slow.theirs("--verify")
    assert slow.throttles() == by_theirs
    slow.move("100000000")
    servers = cluster.bootstrap_servers
    eventually(lambda: isr_of(servers, "slow") == [[0, 2]])
    assert "is completed" in slow.theirs("--verify")
    eventually(lambda: slow.throttles() == NOTHING)
    assert consume(servers, "slow", BATCHES) == records()
    twin = Reassignment(cluster, tmp_path, "twin")
    twin.move("0")
    eventually(lambda: twin.throttles() == by_theirs)
