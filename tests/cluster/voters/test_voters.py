"""The voters change at run time (KIP-853): they are added, removed, and a lost disk is replaced."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.voters import VoterNode, quorum_records
from pykafka_core.cli.cluster import features, quorum
from pykafka_core.cli.cluster.features import Way
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import ClusterError
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.quorum.values import ReplicaKey
from tests.cluster.clients import consume, create, produce
from tests.cluster.voters.growing import Growing, growing
from tests.support.patience import PATIENCE_S, eventually

ADD = partial(quorum.add, listener="CONTROLLER")
VALUES = sorted(f"value-{number}" for number in range(20))


@pytest.fixture(scope="module")
def one_voter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a cluster of one node."""
    with growing(tmp_path_factory.mktemp("one"), 1) as cluster:
        cluster.begin()
        yield cluster.bootstrap


@pytest.mark.cluster
@pytest.mark.parametrize("is_raised", [False, True], ids=["kraft.version 0", "kraft.version 1"])
def test_single_broker_grows_to_three_and_survives_the_loss_of_its_first_node(
    tmp_path: Path, is_raised: bool
) -> None:
    with growing(tmp_path) as cluster:
        config = {"node.id": 1, "metadata.log.max.record.bytes.between.snapshots": 1}
        with Broker(cluster.data(1), config=config) as alone:
            if is_raised:
                raise_version(alone.bootstrap_servers)
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


def raise_version(bootstrap: str) -> None:
    features.change(bootstrap, ["kraft.version=1"], Way.UPGRADE, as_json=False, dry_run=False)


@pytest.mark.parametrize("is_formatted", [True, False], ids=["formatted again", "empty"])
def test_node_with_a_lost_disk_does_not_start_its_own_cluster(
    tmp_path: Path, is_formatted: bool
) -> None:
    """Otherwise it would acknowledge records that its cluster, which continues, never gets."""
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


@pytest.mark.cluster
def test_voter_added_with_a_foreign_address_corrects_it(
    tmp_path: Path,
) -> None:
    """Regression: the other cluster's response made the leader end itself at each start."""
    with growing(tmp_path / "here", 2) as cluster, growing(tmp_path / "there", 1) as other:
        other.begin()
        cluster.begin()
        cluster.format(2)
        cluster.start(2)
        eventually(lambda: any(one.node == 2 for one in cluster.quorum().replicas))
        wrong = f"2@127.0.0.1:{other.controller_port(1)}"
        ADD(cluster.bootstrap, wrong, as_json=True, dry_run=False)
        right = f"CONTROLLER://127.0.0.1:{cluster.controller_port(2)}"
        eventually(lambda: right in cluster.quorum().replicas[1].listeners)
        assert cluster.up[1].healthy
        cluster.stop(1)
        cluster.start(1)
        eventually(lambda: cluster.voters() == [1, 2])


@pytest.mark.cluster
def test_voters_find_each_other_after_one_moved_while_all_were_down(tmp_path: Path) -> None:
    """The log has its old address; it is elected, and reports the new one."""
    with growing(tmp_path, 3) as cluster:
        cluster.begin()
        cluster.format(2)
        cluster.start(2)
        cluster.add(2)
        eventually(lambda: cluster.quorum().max_follower_lag == 0)
        cluster.stop(1)
        cluster.stop(2)
        moved = cluster.controller_port(3)
        cluster.move_controller(2, moved)
        with ThreadPoolExecutor(2) as pool:
            for started in [pool.submit(cluster.start, node_id) for node_id in (1, 2)]:
                started.result(PATIENCE_S)
        at = f"CONTROLLER://127.0.0.1:{moved}"
        eventually(lambda: cluster.quorum().replicas[1].listeners == [at])


def test_controller_that_listens_on_every_address_must_advertise_one(tmp_path: Path) -> None:
    with growing(tmp_path) as cluster:
        cluster.begin()
        cluster.format(2)
        cluster.settings["listeners"] = "PLAINTEXT://127.0.0.1:0,CONTROLLER://0.0.0.0:0"
        with pytest.raises(ClusterError, match=r"advertised\.listeners"):
            cluster.start(2)


@pytest.mark.cluster
def test_removed_leader_transfers_its_leadership_and_follows(tmp_path: Path) -> None:
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


@pytest.mark.cluster
def test_node_with_a_lost_disk_rejoins_by_itself(tmp_path: Path) -> None:
    """KIP-1186: the voter with its node id and the lost directory is removed first."""
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
    """Return the directories of the voters, by node id."""
    return {one.node: one.directory for one in cluster.quorum().voters}


def is_replaced(before: dict[int, str], now: dict[int, str]) -> bool:
    """Return whether the third of three voters has another directory."""
    return now.keys() == {1, 2, 3} and now[3] != before[3]


def test_invalid_changes_of_the_voters_are_rejected(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("change", "voter", "why"),
    [
        (quorum.remove, "1", "the last voter"),
        (quorum.remove, f"7:{'A' * 22}", "not among the voters 1"),
        (quorum.remove, "4000000000", "not a node id"),
        (quorum.remove, f"1:{'B' * 22}", "B"),
        (ADD, f"1@h:1:{'B' * 21}A", "among the voters 1 already"),
        (ADD, f"2@h:1:{'B' * 21}A", "does not follow the quorum"),
        (ADD, f"4000000000@h:1:{'B' * 21}A", "not a node id"),
        (ADD, f"2@h:99999:{'B' * 21}A", "port 99999"),
        (ADD, "2@h:1", "is not known; the observers are"),
    ],
)
def test_dry_run_reports_a_rejection(
    one_voter: str, change: Callable[..., None], voter: str, why: str
) -> None:
    with pytest.raises(CliError, match=why):
        change(one_voter, voter, as_json=True, dry_run=True)


def test_dry_run_checks_that_a_majority_remains() -> None:
    def voter(node: int, silent_ms: int) -> quorum.Replica:
        return quorum.Replica(
            node=node,
            directory="d",
            status="Leader" if node == 1 else "Follower",
            log_end_offset=9,
            lag=0,
            last_fetch_ms=100_000 - silent_ms,
            last_caught_up_ms=100_000 - silent_ms,
            listeners=(),
        )

    def found(*silent_ms: int) -> quorum.Quorum:
        voters = [voter(node, silent) for node, silent in enumerate(silent_ms, 1)]
        return quorum.Quorum(
            leader=1, epoch=1, high_watermark=9, max_follower_lag=0, replicas=voters
        )

    quorum._check_removal(found(0, 100, 90_000), 3, "d")
    with pytest.raises(CliError, match="of the voters 1,3 only 1 would be running"):
        quorum._check_removal(found(0, 100, 90_000), 2, "d")


def test_removed_voter_can_become_a_broker_only(tmp_path: Path) -> None:
    """Its newest snapshot may still list it as a voter; its log is newer."""
    with growing(tmp_path, 2) as cluster:
        cluster.begin()
        cluster.format(2)
        cluster.start(2)
        cluster.add(2)
        cluster.stop(2)
        cluster.settings["process.roles"] = "broker"
        cluster.settings["listeners"] = "PLAINTEXT://127.0.0.1:0"
        with pytest.raises(ClusterError, match="node 2 is a voter"):
            cluster.start(2)
        cluster.settings.clear()
        cluster.start(2)
        cluster.remove(2)
        eventually(lambda: cluster.voters() == [1])
        membership = cluster.up[2]._started.control.dispatcher.membership
        assert membership is not None
        eventually(lambda: not membership._driver.quorum.is_voter)
        data = DataDirectory(cluster.data(2))
        cluster.stop(2)
        as_of_formatting(data, cluster)
        cluster.settings["process.roles"] = "broker"
        cluster.settings["listeners"] = "PLAINTEXT://127.0.0.1:0"
        cluster.start(2)
        create(cluster.bootstrap, "orders", 1, 2)


def as_of_formatting(data: DataDirectory, cluster: Growing) -> None:
    """Write a snapshot like that of `format --initial-controllers`, with this node as a voter."""
    identity = data.identity()
    assert identity is not None
    assert identity.directory_id is not None
    voters = [
        VoterNode(ReplicaKey(2, identity.directory_id), "127.0.0.1", cluster.controller_port(2))
    ]
    data.write_snapshot(0, 0, encode_snapshot((), 0, 0, quorum_records(voters, "CONTROLLER")))
