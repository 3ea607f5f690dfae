"""A node that cannot join reports why, and changes nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.broker.runtime.quorum.cluster_id_mismatch import OtherClusters
from pykafka_core.broker.start.joining import Latch
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.errors import ClusterError, MetadataError, StartGivenUpError
from pykafka_core.quorum.values import OffsetAndEpoch
from pykafka_core.quorum.wire.envelope import Endpoint
from tests.cluster.nodes import Nodes, Processes, nodes, processes
from tests.support.patience import PATIENCE_MS, PATIENCE_S, eventually
from tests.support.processes.nodes import serve_command

CONTROLLERS = "127.0.0.1:19093,127.0.0.1:19094"
SEVERAL: dict[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": CONTROLLERS,
}
BROKER_ONLY: dict[str, object] = {
    "process.roles": "broker",
    "node.id": 2,
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:19093",
}
BECOMES_BROKER_ONLY: dict[str, object] = {
    "process.roles": "broker",
    "controller.quorum.voters": "2@a:1",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}


@pytest.mark.parametrize("config", [SEVERAL, BROKER_ONLY], ids=["controller", "broker only"])
def test_unformatted_directory_does_not_become_its_own_cluster(
    tmp_path: Path, config: dict[str, object]
) -> None:
    data = tmp_path / "data"
    with pytest.raises(ClusterError, match="format"):
        Broker(data, config=config)
    assert not list(data.glob("*.properties"))


@pytest.mark.parametrize("config", [SEVERAL, BROKER_ONLY], ids=["controller", "broker only"])
def test_node_of_a_larger_cluster_cannot_be_in_memory(config: dict[str, object]) -> None:
    with pytest.raises(ClusterError, match="memory"):
        Broker(config=config)


def test_directory_of_a_controller_is_not_opened_as_that_of_a_broker_only(tmp_path: Path) -> None:
    """Otherwise it would write its own epochs into the log that it shares with the others."""
    with nodes(tmp_path) as cluster:
        before = {file: file.read_bytes() for file in cluster.data(1).rglob("*") if file.is_file()}
        with pytest.raises(ClusterError, match=r"controller\.listener\.names"):
            Broker(cluster.data(1))
        after = {file: file.read_bytes() for file in cluster.data(1).rglob("*") if file.is_file()}
        assert after == before


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name is SSL.* PLAINTEXT"),
        ({"listeners": "CONTROLLER://127.0.0.1:0"}, "listeners contains no listener for brokers"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, "controller.listener.names is CONTROLLER"),
        (BECOMES_BROKER_ONLY, "node 1 is a voter"),
        ({"process.roles": "broker"}, "CONTROLLER in listeners"),
        ({"controller.quorum.voters": "1@a:1,1@b:1"}, "name each controller once"),
    ],
    ids=[
        "inter-broker listener",
        "no listener",
        "no listener of controllers",
        "broker only",
        "broker only with a listener of controllers",
        "voters",
    ],
)
def test_settings_that_prevent_a_node_from_joining_are_rejected_at_once(
    tmp_path: Path, wrong: dict[str, object], problem: str
) -> None:
    with nodes(tmp_path) as cluster, pytest.raises(ClusterError, match=problem):
        Broker(cluster.data(1), config=cluster.config(1) | wrong)


@pytest.mark.cluster
def test_node_of_another_cluster_fails_to_start_without_effect_on_the_others(
    tmp_path: Path,
) -> None:
    """Its controllers do not respond; otherwise it would retry until the start times out."""
    with nodes(tmp_path) as cluster:
        cluster.settings["initial.broker.registration.timeout.ms"] = 2 * PATIENCE_MS
        cluster.start(1, 2, 3)
        cluster.stop(3)
        properties = cluster.data(3) / "meta.properties"
        known = properties.read_text()
        other = re.sub("cluster.id=.*", f"cluster.id={'x' * 21}A", known)
        properties.write_text(other)
        with pytest.raises(ClusterError, match=r"INCONSISTENT_CLUSTER_ID.*cluster x"):
            cluster.start(3)
        cluster.stop(1)
        cluster.start(1)
        properties.write_text(known)
        cluster.start(3)


def test_one_foreign_node_among_others_fails_no_start() -> None:
    first, second, third = (Endpoint("127.0.0.1", port) for port in (1, 2, 3))
    refused: list[str] = []
    heard = OtherClusters("own", lambda: {first, second}, refused.append)
    heard.is_other(first)
    heard.is_other(first)
    assert not refused
    heard.is_other(third)
    assert not refused, "nobody who counts"
    heard.is_other(second)
    assert len(refused) == 1
    known = OtherClusters("own", lambda: {first}, refused.append)
    known.is_own()
    known.is_other(first)
    assert len(refused) == 1


def test_start_of_a_node_can_be_cancelled_by_its_caller(tmp_path: Path) -> None:
    give_up = Latch()
    with nodes(tmp_path) as cluster, _meanwhile(cluster, give_up.set):
        threads = set(threading.enumerate())
        with pytest.raises(StartGivenUpError):
            Broker(cluster.data(1), config=cluster.config(1), give_up=give_up)
        assert set(threading.enumerate()) <= threads
        assert not cluster.is_listening(1)
        cluster.start(1, 2, 3)


def test_ctrl_c_ends_the_start_of_a_node_and_leaves_no_threads(tmp_path: Path) -> None:
    with nodes(tmp_path) as cluster:
        with (
            _meanwhile(cluster, lambda: os.kill(os.getpid(), signal.SIGINT)),
            pytest.raises(KeyboardInterrupt),
        ):
            Broker(cluster.data(1), config=cluster.config(1))
        assert not cluster.is_listening(1)
        cluster.start(1, 2, 3)


@contextmanager
def _meanwhile(cluster: Nodes, act: Callable[[], object]) -> Iterator[None]:
    """Call a function once node 1 waits for the others."""

    def watch() -> None:
        eventually(lambda: cluster.is_listening(1))
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_node_that_waits_for_the_others(
    tmp_path: Path, number: signal.Signals
) -> None:
    with processes(tmp_path) as cluster:
        with _joining(cluster, 1) as process:
            eventually(lambda: cluster.is_listening(1))
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_S)
        assert _stopped_in(cluster, 1) == -1


@pytest.mark.cluster
def test_marker_of_a_clean_stop_does_not_apply_to_an_earlier_process(tmp_path: Path) -> None:
    """That process was killed, and may have lost records: the controller must ignore the marker."""
    with processes(tmp_path) as cluster:
        cluster.settings["broker.session.timeout.ms"] = 60_000
        cluster.settings["internal.gone.broker.fencing.enable"] = "false"
        cluster.start(1, 2, 3)
        cluster.kill(3)
        with _joining(cluster, 3) as process:
            assert process.stderr is not None
            waiting = (b"DUPLICATE_BROKER_REGISTRATION" in line for line in process.stderr)
            assert any(waiting), "it waits for the session of the process that was killed"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
        assert _stopped_in(cluster, 3) == -1


@contextmanager
def _joining(cluster: Processes, node_id: int) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has not joined."""
    files = cluster.properties(node_id), cluster.data(node_id)
    process = subprocess.Popen(
        serve_command(*files, "--log-level", "warning"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _stopped_in(cluster: Processes, node_id: int) -> int:
    """Return the broker epoch of a node's clean stop; -1 without one."""
    marker = cluster.data(node_id) / ".kafka_cleanshutdown"
    return int(json.loads(marker.read_text())["brokerEpoch"]) if marker.exists() else -1


@pytest.mark.parametrize("newest", [0, 10_000], ids=["as formatted", "newer than the log"])
def test_damaged_newest_snapshot_is_named_and_nothing_is_replaced_by_it(
    tmp_path: Path, newest: int
) -> None:
    with nodes(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        cluster.stop(1)
        data = DataDirectory(cluster.data(1))
        (first,) = data.snapshots()
        whole = first.path.read_bytes()
        file = data.snapshot_path(OffsetAndEpoch(newest, 9 if newest else 0))
        before = {
            path: path.read_bytes() for path in cluster.data(1).glob("__cluster_metadata-0/*.log")
        }
        assert any(before.values())
        for damaged in _damaged(whole):
            file.write_bytes(damaged)
            with pytest.raises(MetadataError, match=re.escape(str(file))):
                Broker(cluster.data(1), config=cluster.config(1))
            assert {path: path.read_bytes() for path in before} == before


def test_node_with_partitions_unknown_to_its_cluster_does_not_join(tmp_path: Path) -> None:
    with nodes(tmp_path) as cluster:
        cluster.start(1, 2)
        data = cluster.data(3)
        (data / "orders-0").mkdir(parents=True)
        (data / "orders-0" / "partition.metadata").write_text(
            "version: 0\ntopic_id: PiNoeOXmQxe1tAMLO2R12w\n"
        )
        for _ in range(2):
            with pytest.raises(ClusterError, match=f"{data} holds 1 partitions, such as orders-0"):
                cluster.start(3)
        assert (data / "orders-0").is_dir()
        shutil.rmtree(data / "orders-0")
        cluster.start(3)


def test_node_that_lost_the_metadata_of_its_cluster_does_not_start_it_again(
    tmp_path: Path,
) -> None:
    """It is the only voter. The checkpoints that list the metadata log are lost, too."""
    with nodes(tmp_path, 1) as cluster:
        cluster.start(1)
        cluster.up[1].create_topic("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"order 1")
        assert producer.flush(PATIENCE_S) == 0
        cluster.stop(1)
        (log,) = cluster.data(1).glob("__cluster_metadata-0/*.log")
        kept = log.read_bytes()
        log.write_bytes(b"")
        for checkpoint in cluster.data(1).glob("re*-offset-checkpoint"):
            checkpoint.unlink()
        for _ in range(2):
            with pytest.raises(ClusterError, match="holds 1 partitions, such as orders-0"):
                cluster.start(1)
        log.write_bytes(kept)
        cluster.start(1)
        assert cluster.up[1].topics() == {"orders": 1}


def _damaged(whole: bytes) -> Iterator[bytes]:
    """Yield an empty and a cut file, and three files with a wrong byte in different batches.

    These are the first batch, the one with the voters, and the last one.
    """
    yield b""
    yield whole[: len(whole) // 2]
    for at in (30, len(whole) // 2, len(whole) - 3):
        yield whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
