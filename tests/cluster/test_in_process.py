"""`Cluster`: nodes of one process, and faults of them."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_core import Broker, Cluster
from pykafka_core.broker.storage.reserve import Need, Reserve
from pykafka_core.cli.client import wire
from pykafka_core.errors import (
    ClosedError,
    ClusterError,
    ConfigurationError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from tests.cluster.clients import consume, produce, read_by_group
from tests.support.patience import PATIENCE_S, eventually, exactly

ALL = (0, 1, 2)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 1)
        cluster.wait_isr("orders")
        yield cluster


STARTING_AT_EXIT = """
import sys, threading, time
from pykafka_core import Cluster

cluster = Cluster(3, config={"initial.broker.registration.timeout.ms": 3_600_000})
cluster.kill(0, 1, 2)
threading.Thread(target=cluster.start, args=(0,), daemon=sys.argv[1] == "daemon").start()
while not cluster._starting:
    time.sleep(0.001)
"""


@pytest.mark.parametrize("kind", ["daemon", "thread"])
def test_start_in_another_thread_does_not_block_the_exit(kind: str) -> None:
    run_alone(STARTING_AT_EXIT, kind)


PIPES_OF_A_CLOSED_NODE = """
import os
from pathlib import Path
from pykafka_core import Cluster

def pipes():
    places = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    found = (os.readlink(place) for place in places if place.is_symlink())
    return {one for one in found if one.startswith("pipe:")}

before = pipes()
with Cluster(1) as cluster:
    (node,) = cluster.brokers
assert node.closed
assert pipes() <= before, pipes() - before
"""


def test_a_closed_node_has_no_descriptors() -> None:
    # In a separate process, because clients of other tests may open pipes in this one.
    run_alone(PIPES_OF_A_CLOSED_NODE)


def run_alone(script: str, *arguments: str) -> None:
    """Run a script in a separate process; it must succeed."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        command, timeout=PATIENCE_S, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def logs(cluster: Cluster, topic: str = "orders") -> list[bytes]:
    """Return the first segment of a partition on each node, without preallocated zeros."""
    found = []
    for broker in cluster.brokers:
        assert broker.data_dir is not None
        found.append((broker.data_dir / f"{topic}-0" / f"{0:020}.log").read_bytes().rstrip(b"\0"))
    return found


def test_node_ids_are_the_indexes_in_brokers(cluster: Cluster) -> None:
    assert tuple(broker.node_id for broker in cluster.brokers) == ALL
    assert cluster.leader("orders") in ALL
    assert cluster.isr("orders") == ALL
    assert cluster.controller() in ALL
    addresses = cluster.bootstrap_servers.split(",")
    assert addresses == [broker.bootstrap_servers for broker in cluster.brokers]
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics()
    assert sorted(metadata.brokers) == list(ALL)


@pytest.mark.cluster
def test_acknowledged_records_survive_the_kill_of_each_leader(cluster: Cluster) -> None:
    produced: list[str] = []
    for number in ALL:
        values = [f"{number}-{place}" for place in range(20)]
        produce(cluster.bootstrap_servers, "orders", values)
        produced += values
        leader = cluster.wait_leader("orders")
        cluster.kill(leader)
        assert cluster.brokers[leader].closed
        with pytest.raises(ClosedError):
            cluster.brokers[leader].topics()
        assert cluster.wait_leader("orders", other_than=leader) != leader
        produce(cluster.bootstrap_servers, "orders", [f"without {leader}"])
        produced.append(f"without {leader}")
        cluster.start(leader)
        cluster.wait_isr("orders")
    assert consume(cluster.bootstrap_servers, "orders", len(produced)) == sorted(produced)
    first, *others = logs(cluster)
    assert others == [first, first]


def test_a_killed_node_leaves_no_marker_and_its_directory_unlocked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = cluster.brokers[1].data_dir
    assert data is not None
    cluster.kill(1)
    assert not (data / ".kafka_cleanshutdown").exists()
    cluster.start(1)
    cluster.stop(1)
    assert (data / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("is_watched", [True, False])
def test_killed_leader_sends_nothing(is_watched: bool) -> None:
    """Its closed port shows the end of its process; otherwise its session has to expire."""
    config = {
        "internal.gone.broker.fencing.enable": is_watched,
        "broker.session.timeout.ms": 60_000 if is_watched else 1_000,
    }
    with Cluster(3, config=config) as cluster:
        cluster.create_topic("orders", 1)
        leader = next(node for node in ALL if node != cluster.controller())
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        moved = NewTopic("moved", 1, replica_assignment=[[leader, *(set(ALL) - {leader})]])
        admin.create_topics([moved])["moved"].result(PATIENCE_S)
        eventually(lambda: cluster.leader("moved") == leader)
        begun = time.monotonic()
        cluster.kill(leader)
        cluster.wait_leader("moved", other_than=leader)
        assert is_watched or time.monotonic() - begun > 0.5


def test_stopped_leader_transfers_its_leadership_before_it_stops(cluster: Cluster) -> None:
    leader = cluster.wait_leader("orders")
    cluster.stop(leader)
    assert cluster.leader("orders") not in (None, leader)
    assert leader not in cluster.wait_isr("orders", 0, 2)


@pytest.mark.cluster
def test_nodes_that_are_all_killed_at_once_recover_the_acknowledged_records(
    cluster: Cluster,
) -> None:
    values = [str(number) for number in range(30)]
    produce(cluster.bootstrap_servers, "orders", values)
    cluster.kill(*ALL)
    cluster.start(*ALL)
    cluster.wait_isr("orders", 0, ALL)
    assert consume(cluster.bootstrap_servers, "orders", 30) == sorted(values)


@pytest.mark.cluster
def test_paused_leader_does_not_reply_and_catches_up_after_resume(cluster: Cluster) -> None:
    leader = cluster.wait_leader("orders")
    cluster.pause(leader)
    address = cluster.bootstrap_servers.split(",")[leader]
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": address}).list_topics(
            timeout=exactly(0.2, "a paused node does not answer")
        )
    cluster.wait_leader("orders", other_than=leader)
    produce(cluster.bootstrap_servers, "orders", ["meanwhile"])
    cluster.resume(leader)
    cluster.wait_isr("orders")
    assert consume(address, "orders", 1) == ["meanwhile"]
    eventually(lambda: logs(cluster)[0] == logs(cluster)[1] == logs(cluster)[2])


def test_paused_controller_is_replaced_and_follows_after_resume(cluster: Cluster) -> None:
    controller = cluster.controller()
    cluster.pause(controller)
    assert cluster.controller() != controller
    cluster.create_topic("meanwhile", 1)
    cluster.resume(controller)
    eventually(lambda: "meanwhile" in cluster.brokers[controller].topics())
    cluster.wait_isr("meanwhile", timeout=PATIENCE_S)


def test_a_paused_node_can_be_killed(cluster: Cluster) -> None:
    cluster.pause(2)
    with pytest.raises(RuntimeError, match="paused"):
        cluster.stop(2)
    cluster.kill(2)
    cluster.start(2)
    assert cluster.wait_isr("orders") == ALL


@pytest.mark.cluster
def test_isolated_leader_acknowledges_no_records_that_it_would_lose(cluster: Cluster) -> None:
    """A client that reaches only this leader loses no acknowledged record at the healing."""
    produce(cluster.bootstrap_servers, "orders", ["before"])
    leader = cluster.wait_leader("orders")
    address = cluster.bootstrap_servers.split(",")[leader]
    cluster.isolate(leader)
    alone = Producer(
        {"bootstrap.servers": address, "acks": "all", "message.timeout.ms": 2_000, "retries": 0}
    )
    told: list[object] = []
    alone.produce("orders", b"to nobody", on_delivery=lambda error, _: told.append(error))
    cluster.wait_leader("orders", other_than=leader)
    alone.flush(PATIENCE_S)
    assert [error is not None for error in told] == [True]
    cluster.isolate(leader, clients=True)  # because its Metadata responses are outdated
    produce(cluster.bootstrap_servers, "orders", ["after"])
    cluster.heal()
    cluster.wait_isr("orders")
    assert consume(cluster.bootstrap_servers, "orders", 2) == ["after", "before"]
    eventually(lambda: logs(cluster)[0] == logs(cluster)[1] == logs(cluster)[2])


@pytest.mark.cluster
def test_isolated_follower_leaves_the_isr_and_rejoins(cluster: Cluster) -> None:
    follower = next(node for node in ALL if node != cluster.wait_leader("orders"))
    cluster.isolate(follower, clients=True)
    assert follower not in cluster.wait_isr("orders", 0, 2)
    with pytest.raises(RuntimeError, match="heal"):
        _restart(cluster, follower)
    cluster.heal()
    cluster.start(follower)
    assert cluster.wait_isr("orders", 0, 3) == ALL


def _restart(cluster: Cluster, node: int) -> None:
    cluster.kill(node)
    cluster.start(node)


def test_a_node_whose_records_were_wiped_fetches_them_again(cluster: Cluster) -> None:
    values = [str(number) for number in range(30)]
    produce(cluster.bootstrap_servers, "orders", values)
    cluster.kill(1)
    cluster.wipe(1)
    cluster.start(1)
    cluster.wait_isr("orders")
    first, *others = logs(cluster)
    assert others == [first, first]
    assert b"29" in first


@pytest.mark.cluster
def test_groups_continue_without_the_node_of_their_coordinator(cluster: Cluster) -> None:
    produce(cluster.bootstrap_servers, "orders", ["a", "b"])
    assert len(read_by_group(cluster.bootstrap_servers, "readers", "orders", 2)) == 2
    for node in ALL:
        cluster.kill(node)
        produce(cluster.bootstrap_servers, "orders", [f"without {node}"])
        assert read_by_group(cluster.bootstrap_servers, "readers", "orders", 1) == [
            f"without {node}".encode()
        ]
        cluster.start(node)
        cluster.wait_isr("orders")


def test_invalid_calls_are_rejected(cluster: Cluster) -> None:
    with pytest.raises(IndexError, match="node 3"):
        cluster.kill(3)
    with pytest.raises(RuntimeError, match="up"):
        cluster.start(1)
    with pytest.raises(RuntimeError, match="up"):
        cluster.wipe(1)
    cluster.kill(1)
    for act in (cluster.kill, cluster.stop, cluster.pause, cluster.resume, cluster.isolate):
        with pytest.raises(RuntimeError, match="down"):
            act(1)
    with pytest.raises(UnknownTopicOrPartitionError):
        cluster.leader("orders", 1)
    with pytest.raises(TimeoutError, match="ISR"):
        cluster.wait_isr("orders", 0, [5], timeout=exactly(0.01, "that ISR never comes"))
    with pytest.raises(ValueError, match="1 to 7"):
        Cluster(8)
    with pytest.raises(ConfigurationError, match=r"no\.such"):
        Cluster(2, config={"no.such.setting": 1, "node.id": "x"})


@pytest.mark.cluster
def test_a_directory_keeps_a_cluster(tmp_path: Path) -> None:
    with Cluster(3, data=tmp_path) as cluster:
        cluster.create_topic("orders", 1)
        produce(cluster.bootstrap_servers, "orders", ["kept"])
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["0", "1", "2"]
    with pytest.raises(StorageError, match="another number"):
        Cluster(2, data=tmp_path)
    with Cluster(3, data=tmp_path) as cluster:
        assert consume(cluster.bootstrap_servers, "orders", 1) == ["kept"]


def test_node_with_a_lost_disk_does_not_start_its_own_cluster(tmp_path: Path) -> None:
    with Cluster(3, data=tmp_path) as cluster:
        cluster.kill(1)
        shutil.rmtree(tmp_path / "1")
        with pytest.raises(ClusterError, match="format"):
            cluster.start(1)


def test_relative_directory_is_resolved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Cluster(1, data="data") as cluster:
        monkeypatch.chdir(tmp_path / "elsewhere")
        cluster.stop(0)
        cluster.start(0)
        assert cluster.brokers[0].data_dir == tmp_path / "data" / "0"


def test_a_closed_cluster_starts_nothing() -> None:
    with Cluster(1) as cluster:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        cluster.start(0)


@pytest.mark.parametrize("killed", [ALL, (0,)], ids=["that waits for others", "that is let in"])
def test_a_cluster_is_closed_with_the_nodes_that_another_thread_starts(
    killed: tuple[int, ...],
) -> None:
    of_others = _control_threads()
    with Cluster(3) as cluster:
        folder = cluster.brokers[0].data_dir
        assert folder is not None
        cluster.kill(*killed)
        left = _control_threads()
        ended: list[BaseException | None] = []
        starter = threading.Thread(target=lambda: ended.append(_outcome(lambda: cluster.start(0))))
        starter.start()
        eventually(lambda: len(_control_threads()) > len(left) or not starter.is_alive())
        cluster.close()
        starter.join(0)
        assert not starter.is_alive()
    assert set(_control_threads()) <= set(of_others)
    assert not folder.parent.exists()
    if killed == ALL:
        (error,) = ended
        assert isinstance(error, RuntimeError)


def _control_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pykafka-core-control"]


def _outcome(act: Callable[[], object]) -> Exception | None:
    try:
        act()
    except Exception as error:
        return error
    return None


@pytest.mark.cluster
@pytest.mark.parametrize("is_controller", [False, True], ids=["a broker", "the controller"])
def test_node_that_is_killed_and_started_at_once_is_registered(is_controller: bool) -> None:
    """Its old process has not been checked yet, and its session has not expired."""
    config = {
        "broker.session.timeout.ms": 600_000,
        "initial.broker.registration.timeout.ms": 30_000,
    }
    with Cluster(3, config=config) as cluster:
        for _ in ALL:
            active = cluster.controller()
            node = active if is_controller else next(node for node in ALL if node != active)
            cluster.kill(node)
            cluster.start(node)


def test_nodes_that_are_all_killed_and_started_at_once_are_registered() -> None:
    config = {
        "broker.session.timeout.ms": 600_000,
        "initial.broker.registration.timeout.ms": 30_000,
    }
    with Cluster(3, config=config) as cluster:
        cluster.kill(*ALL)
        cluster.start(*ALL)


def test_temporary_directory_is_deleted_with_the_cluster() -> None:
    with Cluster(2) as cluster:
        data = cluster.brokers[0].data_dir
        assert data is not None
        assert data.exists()
    assert not data.parent.exists()
    cluster.close()


def test_one_node_is_a_valid_cluster() -> None:
    with Cluster(1) as cluster:
        cluster.create_topic("orders", 1)
        produce(cluster.bootstrap_servers, "orders", ["a"])
        assert (cluster.controller(), cluster.leader("orders"), cluster.isr("orders")) == (
            0,
            0,
            (0,),
        )
        cluster.kill(0)
        cluster.start(0)
        assert consume(cluster.bootstrap_servers, "orders", 1) == ["a"]


@pytest.mark.cluster
def test_cluster_with_a_node_that_cannot_start_fails_at_once(tmp_path: Path) -> None:
    with Cluster(3, data=tmp_path):
        pass
    with Broker(tmp_path / "other") as other:
        taken = other.bootstrap_servers.rpartition(":")[2]
        with pytest.raises((OSError, ClusterError), match=r"in use|listen"):
            Cluster(3, data=tmp_path, config={"listeners": f"PLAINTEXT://127.0.0.1:{taken}"})
    with Cluster(3, data=tmp_path) as cluster:
        assert cluster.controller() in ALL


def test_any_node_describes_the_quorum_as_its_leader_does(cluster: Cluster) -> None:
    for node in ALL:
        quorum = quorum_of(cluster.bootstrap_servers.split(",")[node])
        assert quorum.leader_id == cluster.controller()
        assert sorted(voter.replica_id for voter in quorum.current_voters) == list(ALL)
        ends = {voter.log_end_offset for voter in quorum.current_voters}
        assert max(ends) >= quorum.high_watermark > 0
    eventually(lambda: _lag_max(cluster) == 0)
    behind = next(node for node in ALL if node != cluster.controller())
    cluster.pause(behind)
    cluster.create_topic("more", 1, config={"min.insync.replicas": 1})
    assert _lag_max(cluster) > 0
    cluster.resume(behind)
    eventually(lambda: _lag_max(cluster) == 0)


def _lag_max(cluster: Cluster) -> int:
    quorum = quorum_of(cluster.bootstrap_servers.split(",")[cluster.controller()])
    ends = [voter.log_end_offset for voter in quorum.current_voters]
    return max(ends) - min(ends)


def quorum_of(bootstrap: str) -> DescribeQuorumResponse.PartitionData:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    with wire.cluster(bootstrap, "cannot describe the quorum") as found:
        response = found.any().ask(55, 2, request, DescribeQuorumResponse)
    return response.topics[0].partitions[0]


def test_two_replicas_acknowledge_or_neither_does() -> None:
    """Regression: ``min.insync.replicas=2`` of the nodes was overridden by a new cluster's 1."""
    with Cluster(3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        new = NewTopic("orders", 1, replica_assignment=[[0, 1]])
        admin.create_topics([new])["orders"].result(PATIENCE_S)
        produce(cluster.bootstrap_servers, "orders", ["both"])
        cluster.kill(1)
        cluster.wait_isr("orders", 0, [0])
        with pytest.raises(KafkaException, match="NOT_ENOUGH_REPLICAS"):
            produce_once(cluster.bootstrap_servers, "orders")
        assert consume(cluster.bootstrap_servers, "orders", 1) == ["both"]


def produce_once(bootstrap: str, topic: str) -> None:
    """Produce without retries; raise the error of a record that was not acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0})
    failed: list[KafkaException] = []
    producer.produce(
        topic,
        b"one",
        on_delivery=lambda error, _: failed.append(KafkaException(error)) if error else None,
    )
    assert producer.flush(PATIENCE_S) == 0
    for error in failed:
        raise error


class Refusals:
    """A stand-in for a full disk, which refuses metadata records.

    Attributes:
        times: When it refused them, in seconds.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.times: list[float] = []
        self.goes_on = True
        patch.setattr(Reserve, "is_kept_from", self._is_kept_from)

    def _is_kept_from(self, need: Need) -> bool:
        if self.goes_on:
            self.times.append(time.monotonic())
        return self.goes_on


def test_cluster_whose_first_records_are_rejected_starts_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals = Refusals(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(Cluster, 3)
        eventually(lambda: bool(refusals.times))
        refusals.goes_on = False
        with begun.result(PATIENCE_S) as cluster:
            assert cluster.controller() in ALL


@pytest.mark.cluster
def test_rejected_fencing_is_retried_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: it was requested again at once, which used all of a core."""
    settings = {"broker.session.timeout.ms": 1000, "internal.gone.broker.fencing.enable": False}
    with Cluster(3, config=settings) as cluster:
        cluster.create_topic("orders", 1)
        cluster.wait_isr("orders")
        refusals = Refusals(monkeypatch)
        gone = next(node for node in ALL if node != cluster.controller())
        cluster.kill(gone)
        eventually(lambda: len(refusals.times) > 1)
        assert refusals.times[1] - refusals.times[0] > 0.5
        refusals.goes_on = False
        eventually(lambda: gone not in cluster.isr("orders"))
