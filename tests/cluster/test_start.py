"""What a node says that cannot be one of several, and that it changes nothing."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterError
from tests.cluster.clients import PATIENCE_S, eventually
from tests.cluster.nodes import Processes, nodes, processes

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


@pytest.mark.parametrize("config", [SEVERAL, BROKER_ONLY], ids=["controller", "broker only"])
def test_a_directory_that_is_not_formatted_becomes_no_cluster_of_its_own(
    tmp_path: Path, config: dict[str, object]
) -> None:
    data = tmp_path / "data"
    with pytest.raises(ClusterError, match="format"):
        Broker(data, config=config)
    assert not list(data.glob("*.properties"))


@pytest.mark.parametrize("config", [SEVERAL, BROKER_ONLY], ids=["controller", "broker only"])
def test_a_node_of_several_is_not_in_memory(config: dict[str, object]) -> None:
    with pytest.raises(ClusterError, match="memory"):
        Broker(config=config)


def test_a_controllers_directory_is_not_opened_as_that_of_a_broker_alone(tmp_path: Path) -> None:
    """It would have written its own epochs into the log that the others know."""
    with nodes(tmp_path) as cluster:
        before = {file: file.read_bytes() for file in cluster.data(1).rglob("*") if file.is_file()}
        with pytest.raises(ClusterError, match=r"controller\.listener\.names"):
            Broker(cluster.data(1))
        after = {file: file.read_bytes() for file in cluster.data(1).rglob("*") if file.is_file()}
        assert after == before


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


def test_the_marker_of_a_clean_stop_does_not_speak_for_an_earlier_process(tmp_path: Path) -> None:
    """That one was killed, and what it had not written may be lost: the controller must not take it for in sync."""
    with processes(tmp_path) as cluster:
        cluster.settings["broker.session.timeout.ms"] = 60_000
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
    """A node that has not joined."""
    command = [sys.executable, "-m", "pykafka_core.cli", "serve", "--log-level", "warning"]
    properties, data = cluster.properties(node_id), cluster.data(node_id)
    process = subprocess.Popen(
        [*command, "--config", str(properties), "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _stopped_in(cluster: Processes, node_id: int) -> int:
    """The broker epoch in which a node says that it stopped cleanly; -1 for none."""
    marker = cluster.data(node_id) / ".kafka_cleanshutdown"
    return int(json.loads(marker.read_text())["brokerEpoch"]) if marker.exists() else -1
