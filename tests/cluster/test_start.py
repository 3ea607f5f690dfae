"""What a node says that cannot be one of several, and that it changes nothing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterError
from tests.cluster.clients import PATIENCE_S, eventually
from tests.cluster.nodes import nodes, processes

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
        command = [sys.executable, "-m", "pykafka_core.cli", "serve", "--log-level", "error"]
        process = subprocess.Popen(
            [*command, "--config", str(cluster.properties(1)), "--data", str(cluster.data(1))],
            stdout=subprocess.PIPE,
        )
        try:
            eventually(lambda: cluster.is_listening(1))
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.communicate()
        assert not (cluster.data(1) / ".kafka_cleanshutdown").exists() or (
            b'"brokerEpoch":-1' in (cluster.data(1) / ".kafka_cleanshutdown").read_bytes()
        )
