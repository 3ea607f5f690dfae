"""The voters of the quorum change while it serves (KIP-853): it grows, voters go, and a lost disk comes back."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.cli.cluster import quorum
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import ClusterError
from tests.cluster.clients import consume, create, eventually, produce
from tests.cluster.growing import Growing, growing

VALUES = sorted(f"value-{number}" for number in range(20))


def test_a_broker_of_today_grows_to_three_and_outlives_its_first_node(tmp_path: Path) -> None:
    with growing(tmp_path) as cluster:
        with Broker(cluster.data(1), config={"node.id": 1}) as alone:
            create(alone.bootstrap_servers, "orders", 1)
            produce(alone.bootstrap_servers, "orders", VALUES)
        cluster.begin()
        assert cluster.voters() == [1]
        assert consume(cluster.bootstrap, "orders", len(VALUES)) == VALUES
        cluster.format(2, 3)
        cluster.start(2, 3)
        assert cluster.voters() == [1], "an observer has no vote"
        for node_id in (2, 3):
            cluster.add(node_id)
        assert cluster.voters() == [1, 2, 3]
        found = cluster.quorum()
        assert [one.status for one in found.replicas].count("Leader") == 1
        assert all(one.listeners for one in found.replicas)
        create(cluster.bootstrap, "payments", 2, 3)
        cluster.stop(1)
        assert cluster.controller() in (2, 3)
        create(cluster.bootstrap, "later", 2, 3)
        with pytest.raises(ClusterError, match=r"controller\.listener\.names"):
            Broker(cluster.data(1), config={"node.id": 1})
        cluster.start(1)
        assert cluster.voters() == [1, 2, 3]


@pytest.mark.parametrize("is_formatted", [True, False], ids=["formatted again", "empty"])
def test_a_disk_that_was_lost_begins_no_cluster_of_its_own(
    tmp_path: Path, is_formatted: bool
) -> None:
    """It would acknowledge what the cluster, whose voters go on without it, never hears of."""
    with growing(tmp_path) as cluster:
        cluster.begin()
        cluster.stop(1)
        known = DataDirectory(cluster.data(1)).identity()
        assert known is not None
        shutil.rmtree(cluster.data(1))
        if is_formatted:
            cluster.format(1, cluster_id=known.cluster_id)
        for _ in range(2):
            with pytest.raises(ClusterError, match=r"controller\.quorum\.bootstrap\.servers"):
                cluster.start(1)


def test_a_controller_at_every_address_has_to_say_at_which_it_is_reached(tmp_path: Path) -> None:
    with growing(tmp_path) as cluster:
        cluster.begin()
        cluster.format(2)
        cluster.settings["listeners"] = "PLAINTEXT://127.0.0.1:0,CONTROLLER://0.0.0.0:0"
        with pytest.raises(ClusterError, match=r"advertised\.listeners"):
            cluster.start(2)


def test_a_leader_that_is_removed_hands_over_and_follows(tmp_path: Path) -> None:
    with growing(tmp_path, 2) as cluster:
        cluster.begin()
        cluster.format(2)
        cluster.start(2)
        cluster.add(2)
        cluster.remove(1)
        eventually(lambda: cluster.controller() == 2)
        eventually(lambda: cluster.voters() == [2])
        eventually(lambda: [one.node for one in cluster.quorum().replicas] == [2, 1])
        create(cluster.bootstrap, "orders", 1, 2)
        cluster.add(1)
        assert cluster.voters() == [1, 2]


def test_a_lost_disk_comes_back_by_itself(tmp_path: Path) -> None:
    """KIP-1186: the voter with its node id and the directory that is lost is removed first."""
    with growing(tmp_path) as cluster:
        cluster.settings["controller.quorum.auto.join.enable"] = "true"
        cluster.begin()
        cluster.format(2, 3)
        cluster.start(2, 3)
        eventually(lambda: cluster.voters() == [1, 2, 3])
        before = directories(cluster)
        cluster.stop(3)
        shutil.rmtree(cluster.data(3))
        cluster.format(3)
        cluster.start(3)
        eventually(lambda: is_replaced(before, directories(cluster)))
        cluster.stop(1)
        assert cluster.controller() in (2, 3)


def directories(cluster: Growing) -> dict[int, str]:
    """Of the voters, by node id."""
    return {one.node: one.directory for one in cluster.quorum().voters}


def is_replaced(before: dict[int, str], now: dict[int, str]) -> bool:
    """Whether the third of three voters has another directory."""
    return now.keys() == {1, 2, 3} and now[3] != before[3]


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with growing(tmp_path, 1) as cluster:
        cluster.begin()
        with pytest.raises(CliError, match=r"INVALID_REQUEST.*the last voter"):
            quorum.remove(cluster.bootstrap, "1", as_json=True, dry_run=False)
        with pytest.raises(CliError, match="VOTER_NOT_FOUND"):
            quorum.remove(cluster.bootstrap, f"7:{'A' * 22}", as_json=True, dry_run=False)
        add = partial(quorum.add, cluster.bootstrap, as_json=True, dry_run=False)
        directory = f"{'B' * 21}A"
        with pytest.raises(CliError, match="DUPLICATE_VOTER"):
            add(f"1@h:1:{directory}", listener="CONTROLLER")
        with pytest.raises(CliError, match=r"INVALID_REQUEST.*no listener CONTROLLER"):
            add(f"2@h:1:{directory}", listener="OTHER")
        with pytest.raises(CliError, match=r"REQUEST_TIMED_OUT.*does not answer"):
            add(f"2@127.0.0.1:1:{directory}", listener="CONTROLLER")
        with Broker() as alone, pytest.raises(CliError, match="UNSUPPORTED_VERSION"):
            quorum.remove(alone.bootstrap_servers, "1", as_json=True, dry_run=False)
        assert cluster.voters() == [1]
