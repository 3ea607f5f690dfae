"""``controller.quorum.voters``: the settings name the voters, until they are put into the log."""

import json
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.cli.client import wire
from pykafka_core.cli.cluster import features, quorum
from pykafka_core.cli.cluster.features import Way
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import ClusterError
from pykafka_core.types import ZERO_ID, id_text
from tests.cluster.clients import consume, create, create_replicated, produce
from tests.cluster.nodes import has_isr
from tests.cluster.roles import quorum_of
from tests.cluster.voters.static import StaticVoters, static_voters
from tests.support.patience import eventually

VALUES = sorted(f"value-{number}" for number in range(30))


@pytest.mark.cluster
def test_three_static_voters_survive_each_active_controller(tmp_path: Path) -> None:
    with static_voters(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        create_replicated(cluster.bootstrap, "orders")
        produce(cluster.bootstrap, "orders", VALUES)
        active = quorum_of(cluster.bootstrap).leader
        cluster.kill(active)
        create_once_led(cluster, f"without-{active}")
        cluster.start(active)
        eventually(lambda: has_isr(cluster, [1, 2, 3]))
        cluster.kill(1, 2, 3)
        states = [state_of(cluster, node_id) for node_id in (1, 2, 3)]
        assert all(state["data_version"] == 0 for state in states)
        voters = [{"voterId": node_id} for node_id in (1, 2, 3)]
        assert all(state["currentVoters"] == voters for state in states)
        cluster.start(1, 2, 3)
        assert consume(cluster.bootstrap, "orders", len(VALUES)) == VALUES


def create_once_led(cluster: StaticVoters, name: str) -> None:
    """Create a topic after the election of another leader."""
    eventually(lambda: quorum_of(cluster.bootstrap).leader in cluster.up)
    create(cluster.bootstrap, name, min(cluster.up))


def state_of(cluster: StaticVoters, node_id: int) -> dict[str, object]:
    file = cluster.data(node_id) / "__cluster_metadata-0" / "quorum-state"
    state: dict[str, object] = json.loads(file.read_text())
    return state


@pytest.mark.cluster
def test_static_voters_are_not_changed_and_are_in_no_record(tmp_path: Path) -> None:
    with static_voters(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        found = quorum_of(cluster.bootstrap)
        assert [one.node for one in found.voters] == [1, 2, 3]
        with pytest.raises(CliError, match="UNSUPPORTED_VERSION"):
            quorum.remove(cluster.bootstrap, f"3:{id_text(ZERO_ID)}", as_json=True, dry_run=False)
        voter = f"4@127.0.0.1:1:{id_text(bytes(range(16)))}"
        with pytest.raises(CliError, match="UNSUPPORTED_VERSION"):
            quorum.add(cluster.bootstrap, voter, listener="CONTROLLER", as_json=True, dry_run=False)
        with pytest.raises(CliError, match="are static"):
            quorum.remove(cluster.bootstrap, "3", as_json=True, dry_run=True)
        with pytest.raises(CliError, match="are static"):
            quorum.add(cluster.bootstrap, voter, listener="CONTROLLER", as_json=True, dry_run=True)
        # Alone it would lead a second quorum, while the other two continue the first one.
        cluster.kill(1, 2, 3)
        config = cluster.config(found.leader)
        own = str(config["controller.quorum.voters"]).split(",")[found.leader - 1]
        for named in ("", own):
            with pytest.raises(ClusterError, match="1, 2, 3, and they never change"):
                Broker(
                    cluster.data(found.leader), config=config | {"controller.quorum.voters": named}
                )
        for node_id in (1, 2, 3):
            with pytest.raises(ClusterError, match="one of several controllers"):
                Broker(cluster.data(node_id), config={"node.id": node_id})


@pytest.mark.cluster
def test_static_voters_can_be_moved_into_the_log_and_then_changed(tmp_path: Path) -> None:
    with static_voters(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        create(cluster.bootstrap, "orders", 3, 3)
        eventually(lambda: upgrades(cluster))
        eventually(lambda: {offered(cluster, node) for node in (1, 2, 3)} == {1})
        found = quorum_of(cluster.bootstrap)
        assert sorted(one.node for one in found.voters) == [1, 2, 3]
        assert all(one.listeners for one in found.voters)
        assert id_text(ZERO_ID) not in {one.directory for one in found.voters}
        cluster.kill(found.leader)
        create_once_led(cluster, "while-one-is-away")
        cluster.start(found.leader)
        cluster.kill(1, 2, 3)
        cluster.use_voters({})
        cluster.start(1, 2, 3)
        assert {offered(cluster, node) for node in (1, 2, 3)} == {1}
        quorum.remove(cluster.bootstrap, "3", as_json=True, dry_run=False)
        assert [one.node for one in quorum_of(cluster.bootstrap).voters] == [1, 2]


def upgrades(cluster: StaticVoters) -> bool:
    """Return whether the version was raised; each voter must have described itself first."""
    try:
        features.change(
            cluster.bootstrap, ["kraft.version=1"], Way.UPGRADE, as_json=True, dry_run=False
        )
    except CliError as error:
        if "not all of the voters" not in str(error):
            raise
        return False
    return True


def offered(cluster: StaticVoters, node_id: int) -> int:
    """Return ``kraft.version`` in a node's ApiVersions response."""
    with wire.cluster(cluster.bootstrap_of([node_id]), "cannot ask") as found:
        _, levels = features.look(found.any())
    return next(one.finalized for one in levels if one.name == "kraft.version")


def test_single_node_without_its_metadata_does_not_start_a_cluster_of_static_voters(
    tmp_path: Path,
) -> None:
    """Otherwise the two others, whose logs are empty, would elect one of themselves."""
    with static_voters(tmp_path) as cluster:
        with Broker(cluster.data(1), config={"node.id": 1}) as alone:
            alone.create_topic("orders")
        config = cluster.config(1)
        with pytest.raises(ClusterError, match="quorum add"):
            Broker(cluster.data(1), config=config)
        listeners = str(config["listeners"]).split(",")[0]
        others = ",".join(str(config["controller.quorum.voters"]).split(",")[1:])
        broker_only = {
            "process.roles": "broker",
            "listeners": listeners,
            "controller.quorum.voters": others,
        }
        with pytest.raises(ClusterError, match="quorum add"):
            Broker(cluster.data(1), config=config | broker_only)
        with Broker(cluster.data(1), config={"node.id": 1}) as alone:
            assert alone.topics() == {"orders": 1}


def test_invalid_static_voters_are_rejected_at_once(tmp_path: Path) -> None:
    with static_voters(tmp_path) as cluster:
        config = cluster.config(1)
        voters = str(config["controller.quorum.voters"])
        with pytest.raises(ClusterError, match="format"):
            Broker(tmp_path / "new", config=config)
        assert not (tmp_path / "new").exists()
        alone = {"controller.quorum.voters": voters.split(",")[0]}
        with pytest.raises(ClusterError, match="format"):
            Broker(tmp_path / "new", config=config | alone)
        twice = {"controller.quorum.voters": f"{voters},{voters.split(',')[0]}"}
        with pytest.raises(ClusterError, match="once"):
            Broker(cluster.data(1), config=config | twice)
        many = ",".join(f"{node}@127.0.0.1:{node}" for node in range(1, 9))
        with pytest.raises(ClusterError, match="at most 7"):
            Broker(cluster.data(1), config=config | {"controller.quorum.voters": many})
