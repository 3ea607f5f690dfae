"""What a node says that cannot be one of several, and that it changes nothing."""

from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterError

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
