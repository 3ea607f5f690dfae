"""``topics reassign --throttle``: the throttle of copies, and its end as in Kafka's tool."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykafka_core import Cluster
from pykafka_core.types import RESOURCE_BROKER
from tests.cluster.clients import consume, replicas_of
from tests.cluster.replicas.throttles import (
    BATCHES,
    LISTS,
    ONE_BATCH,
    RATES,
    alter,
    copied,
    create_filled,
    records,
    throttles,
)
from tests.support.cli import run
from tests.support.patience import eventually, exactly

Capture = pytest.CaptureFixture[str]
LEADERS, FOLLOWERS = LISTS
CONFIG = {**ONE_BATCH, "auto.leader.rebalance.enable": False}
IDLE_MS = exactly(2000, "the move waits longer than this setting of its brokers")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def cluster(data: Path) -> Iterator[Cluster]:
    with Cluster(3, data=data, config=CONFIG) as cluster:
        yield cluster


class Moved:
    """A topic that the command line moves from nodes 0 and 1 to nodes 0 and 2."""

    def __init__(self, cluster: Cluster, capsys: Capture, name: str) -> None:
        self.cluster, self.capsys, self.name = cluster, capsys, name

    def reassign(self, *arguments: str) -> int:
        return run("topics", "reassign", *arguments, "-b", self.cluster.bootstrap_servers)

    def move(self, *arguments: str) -> int:
        return self.reassign(self.name, "--to", "0,2", *arguments)

    def adding(self) -> list[list[int]]:
        """Return the added replicas of the reassignments in progress."""
        self.capsys.readouterr()
        assert self.reassign(self.name, "--list", "--json") == 0
        return [one["adding"] for one in json.loads(self.capsys.readouterr().out)]

    def wait_throttles(self, expected: dict[str, str]) -> None:
        """Wait until the node that is read has these settings; another node may have set them."""
        eventually(lambda: throttles(self.cluster, self.name) == expected)


@pytest.fixture
def moved(cluster: Cluster, capsys: Capture, request: pytest.FixtureRequest) -> Iterator[Moved]:
    moved = Moved(cluster, capsys, request.node.name)
    create_filled(cluster, moved.name, [0, 1])
    yield moved
    assert moved.reassign(moved.name, "--cancel") == 0
    moved.wait_throttles({})


def at_all(rate: str) -> dict[str, str]:
    """Return the rate settings of all brokers."""
    return {f"{name}@{node}": rate for name in RATES for node in range(3)}


def of_move(rate: str) -> dict[str, str]:
    """Return the settings during a throttled move of `Moved`."""
    return {LEADERS: "0:0,0:1", FOLLOWERS: "0:2", **at_all(rate)}


def test_throttled_move_waits_while_another_one_completes(moved: Moved, data: Path) -> None:
    assert moved.move("--throttle", "0", "--no-wait") == 0
    assert f"topics reassign --verify {moved.name}" in moved.capsys.readouterr().err
    moved.wait_throttles(of_move("0"))
    create_filled(moved.cluster, "free", [0, 1])
    assert moved.reassign("free", "--to", "0,2") == 0
    assert copied(data, 2, "free") == copied(data, 0, "free")
    assert moved.adding() == [[2]]
    assert copied(data, 2, moved.name) < copied(data, 0, moved.name) / 2
    assert moved.reassign("--verify", moved.name) == 0
    moved.wait_throttles(of_move("0"))


def test_a_throttle_ends_with_the_wait_for_its_move(moved: Moved) -> None:
    assert moved.move("--throttle", "100000000") == 0
    assert "the throttle remains" not in moved.capsys.readouterr().err
    moved.wait_throttles({})
    assert moved.cluster.wait_isr(moved.name, 0, [0, 2]) == (0, 2)
    assert consume(moved.cluster.bootstrap_servers, moved.name, BATCHES) == records()


@pytest.mark.interval
def test_throttle_ends_after_a_wait_during_which_brokers_closed_connections(
    capsys: Capture,
) -> None:
    """The rates remained on every broker, without advice on how to remove them."""

    def go_on(moved: Moved) -> None:
        eventually(lambda: throttles(moved.cluster, moved.name) == of_move("0"))
        begun = time.monotonic()
        eventually(lambda: time.monotonic() > begun + 1.25 * IDLE_MS / 1000)
        for node in range(3):
            alter(moved.cluster, RESOURCE_BROKER, str(node), dict.fromkeys(RATES, "100000000"))

    config = CONFIG | {"connections.max.idle.ms": IDLE_MS}
    with Cluster(3, config=config) as cluster, ThreadPoolExecutor(1) as pool:
        moved = Moved(cluster, capsys, "orders")
        create_filled(cluster, moved.name, [0, 1])
        went_on = pool.submit(go_on, moved)
        assert moved.move("--throttle", "0") == 0
        went_on.result()
        moved.wait_throttles({})


def test_repeated_move_continues_at_the_new_rate(moved: Moved) -> None:
    """The replica that is being copied is already in the list of replicas, but is still throttled
    as a follower.
    """
    assert moved.move("--throttle", "0", "--no-wait") == 0
    assert moved.adding() == [[2]]
    assert moved.move("--throttle", "1", "--no-wait") == 0
    moved.wait_throttles(of_move("1"))
    assert moved.adding() == [[2]]
    assert moved.reassign(moved.name, "--to", "1,2", "--throttle", "100000000", "--no-wait") == 0
    moved.wait_throttles(of_move("100000000"))
    assert moved.cluster.wait_isr(moved.name, 0, [1, 2]) == (1, 2)
    eventually(lambda: moved.adding() == [])
    assert moved.reassign("--verify", moved.name) == 0
    moved.wait_throttles({})


def test_cancel_keeps_throttles_of_all_brokers_and_those_to_be_preserved(
    moved: Moved,
) -> None:
    by_hand = dict.fromkeys(RATES, "5")
    alter(moved.cluster, RESOURCE_BROKER, "", by_hand)
    try:
        assert moved.move("--throttle", "0", "--no-wait") == 0
        assert moved.reassign(moved.name, "--cancel", "--preserve-throttles") == 0
        moved.wait_throttles(of_move("0"))
        assert moved.reassign(moved.name, "--cancel") == 0
        moved.wait_throttles({f"{name}@": rate for name, rate in by_hand.items()})
    finally:
        alter(moved.cluster, RESOURCE_BROKER, "", dict.fromkeys(RATES))


def test_rejected_move_leaves_no_throttle(moved: Moved, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    for replicas, said in (([0, 2, 2], "cannot reassign"), ([0, 9], "no broker 9")):
        wanted = {"topic": moved.name, "partition": 0, "replicas": replicas}
        file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        assert moved.reassign("--plan", str(file), "--throttle", "0") == 1
        error = moved.capsys.readouterr().err
        assert said in error
        assert "the throttle remains" not in error
        moved.wait_throttles({})


def test_ctrl_c_reports_that_the_throttle_stays_and_how_to_remove_it(moved: Moved) -> None:
    def interrupt() -> None:
        servers = moved.cluster.bootstrap_servers
        eventually(lambda: replicas_of(servers, moved.name) == [[0, 1, 2]])
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert moved.move("--throttle", "0") == 130
    thread.join()
    said = moved.capsys.readouterr().err
    assert "the throttle remains" in said
    assert f"topics reassign --cancel {moved.name}" in said
    assert moved.adding() == [[2]]
    moved.wait_throttles(of_move("0"))


def test_other_partitions_of_a_topic_in_motion_stay_throttled(
    cluster: Cluster, capsys: Capture, tmp_path: Path
) -> None:
    """A topic has one list for all its partitions."""
    wide = Moved(cluster, capsys, "wide")
    create_filled(wide.cluster, wide.name, [0, 1], [0, 1])
    file = tmp_path / "plan.json"
    for partition in (0, 1, 1):
        wanted = {"topic": wide.name, "partition": partition, "replicas": [0, 2]}
        file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        assert wide.reassign("--plan", str(file), "--throttle", "0", "--no-wait") == 0
    assert wide.adding() == [[2], [2]]
    lists = {LEADERS: "0:0,0:1,1:0,1:1", FOLLOWERS: "0:2,1:2"}
    wide.wait_throttles(lists | at_all("0"))
    assert wide.reassign(wide.name, "--cancel") == 0
    wide.wait_throttles({})
