"""``cluster status``: its output about nodes, the quorum and partitions."""

import json
import re
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.cli.client import wire
from pykafka_core.cli.client.describe_quorum import (
    DESCRIBE_QUORUM,
    Described,
    describe_quorum,
    described,
)
from pykafka_core.cli.client.health import Observed, observe
from pykafka_core.cli.cluster.status import ClusterStatus, assess, look, silent_ms
from pykafka_core.metadata.health import State, health_of
from pykafka_core.protocol import encode_response
from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ApiVersionsResponse,
    DescribeQuorumResponse,
    MetadataResponse,
)
from pykafka_core.types import METADATA_TOPIC
from tests.support.cli import run
from tests.support.patience import PATIENCE_S, eventually

Capture = pytest.CaptureFixture[str]


def test_a_cluster_is_shown_with_its_nodes_and_its_quorum(capsys: Capture) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 3)
        at = "-b", cluster.bootstrap_servers
        eventually(lambda: not look(cluster.bootstrap_servers).problems)
        assert run("cluster", "status", "--json", *at) == 0
        said = json.loads(capsys.readouterr().out)
        assert run("cluster", "status", *at) == 0
        shown = re.sub(r"[^\w.:]+", " ", capsys.readouterr().out)
        controller = cluster.controller()
    assert (said["controller"], said["partitions"], said["problems"]) == (controller, 3, [])
    assert said["quorum_epoch"] >= 1
    assert [node["node"] for node in said["nodes"]] == [0, 1, 2]
    for node in said["nodes"]:
        active = ["active"] if node["node"] == controller else []
        assert node["roles"] == ["broker", "controller", *active]
        assert (node["replicas"], node["out_of_sync"]) == (3, 0)
    assert sum(node["leads"] for node in said["nodes"]) == 3
    assert "state healthy" in shown
    assert f"node {controller} leads in epoch" in shown


def test_a_dead_node_is_down_and_its_partitions_lack_a_replica(capsys: Capture) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 1)
        dead = next(node for node in range(3) if node != cluster.controller())
        cluster.kill(dead)
        cluster.wait_isr("orders", 0, set(range(3)) - {dead})
        alive = cluster.bootstrap_servers.split(",")[cluster.controller()]
        eventually(lambda: bool(look(alive).health[State.UNDER_REPLICATED]))
        assert run("cluster", "status", "--json", "-b", cluster.bootstrap_servers) == 1
        told = capsys.readouterr()
        said = json.loads(told.out)
    assert said["under_replicated"] == ["orders-0"]
    assert said["offline"] == []
    assert said["nodes"][dead]["address"] is None
    assert said["nodes"][dead]["out_of_sync"] == 1
    assert f"down: node {dead}" in told.err


def test_a_partition_without_a_leader_is_offline(capsys: Capture) -> None:
    with Cluster(3, config={"default.replication.factor": 1}) as cluster:
        cluster.create_topic("orders", 3)
        dead = next(node for node in range(3) if node != cluster.controller())
        lost = [f"orders-{index}" for index in range(3) if cluster.leader("orders", index) == dead]
        cluster.kill(dead)
        alive = cluster.bootstrap_servers.split(",")[cluster.controller()]
        eventually(lambda: look(alive).health[State.OFFLINE] == lost)
    assert lost


def test_a_replica_that_a_reassignment_adds_is_not_missing() -> None:
    """`status` counted it, but the broker's own metrics did not."""
    with Cluster(3, config={"default.replication.factor": 1}) as cluster:
        cluster.create_topic("orders", 1)
        leader = cluster.wait_leader("orders", 0)
        added = next(one for one in range(3) if one not in (leader, cluster.controller()))
        cluster.kill(added)
        alive = cluster.bootstrap_servers.split(",")[leader]
        with wire.cluster(alive, "cannot reassign") as nodes:
            assign(nodes, "orders", [leader, added])
        eventually(lambda: replicas_of(alive) == {leader, added})
        with wire.cluster(alive, "cannot look") as nodes:
            assert observe(nodes).health[State.UNDER_REPLICATED] == []


def assign(nodes: wire.Cluster, topic: str, replicas: list[int]) -> None:
    """Start a reassignment of partition 0."""
    of = AlterPartitionReassignmentsRequest
    partition = of.ReassignablePartition(partition_index=0, replicas=replicas)
    request = of(topics=[of.ReassignableTopic(name=topic, partitions=[partition])])
    response = nodes.any().ask_newest(45, 1, request, AlterPartitionReassignmentsResponse)
    assert response.responses[0].partitions[0].error_code == 0


def replicas_of(bootstrap: str) -> set[int]:
    with wire.cluster(bootstrap, "cannot look") as nodes:
        return set(nodes.replicas(["orders"])["orders", 0])


@pytest.mark.parametrize(("last_fetch", "silent"), [(900, 100), (-1, None)])
def test_a_voter_that_never_fetched_from_its_leader_is_silent_for_an_unknown_time(
    last_fetch: int, silent: int | None
) -> None:
    """Apache Kafka's leader reports -1 for it."""
    voter = DescribeQuorumResponse.ReplicaState(replica_id=2, last_fetch_timestamp=last_fetch)
    assert silent_ms(voter, 1_000) == silent


def test_single_broker_is_a_quorum_of_one() -> None:
    with Broker() as broker:
        found = look(broker.bootstrap_servers)
    assert (found.controller, found.problems) == (1, [])
    assert list(found.nodes[0].roles) == ["broker", "controller", "active"]


def test_unreachable_bootstrap_server_is_an_error(capsys: Capture) -> None:
    assert run("cluster", "status", "-b", "127.0.0.1:1") == 1
    assert "no broker answers" in capsys.readouterr().err


def test_silent_controller_without_a_broker_is_down() -> None:
    def found(silent_ms: int) -> ClusterStatus:
        of = DescribeQuorumResponse
        voters = [
            of.ReplicaState(replica_id=node, log_end_offset=9, last_fetch_timestamp=time)
            for node, time in ((1, 100_000), (2, 100_000 - silent_ms))
        ]
        partition = of.PartitionData(
            leader_id=1, leader_epoch=1, high_watermark=9, current_voters=voters, observers=[]
        )
        nodes = [
            of.Node(node_id=node, listeners=[of.Listener(name="C", host="h", port=node)])
            for node in (1, 2)
        ]
        metadata = MetadataResponse(brokers=[], topics=[], cluster_id="c")
        observed = Observed(health_of([]), [])
        return assess(metadata, Described(partition, 0, tuple(nodes)), observed)

    well, ill = found(500), found(90_000)
    assert (well.problems, ill.problems) == ([], ["down: node 2"])
    assert [node.address for node in well.nodes] == ["h:1", "h:2"]


def respond_once(listener: socket.socket, version_max: int, quorum: DescribeQuorumResponse) -> None:
    """Respond once like an older Kafka, which closes the connection at an unknown version."""
    apis = [ApiVersionsResponse.ApiVersion(api_key=DESCRIBE_QUORUM, max_version=version_max)]
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as received:
        while size := received.read(4):
            request = received.read(int.from_bytes(size))
            api_key, version, number = struct.unpack_from(">hhi", request)
            if api_key == wire.API_VERSIONS:
                body = encode_response(ApiVersionsResponse(api_keys=apis), version)
                response = struct.pack(">i", number) + body
            elif version <= version_max:
                response = struct.pack(">ib", number, 0) + encode_response(quorum, version)
            else:
                return
            connection.sendall(struct.pack(">i", len(response)) + response)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_quorum_is_described_in_a_version_that_the_broker_supports(version: int) -> None:
    """A cluster of Kafka before 3.9 seemed to have no controller: its brokers closed the
    connection.
    """
    of = DescribeQuorumResponse
    voters = [of.ReplicaState(replica_id=node, log_end_offset=9) for node in (1, 2)]
    partition = of.PartitionData(
        leader_id=1, leader_epoch=1, high_watermark=9, current_voters=voters, observers=[]
    )
    topic = of.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        served = pool.submit(respond_once, listener, version, of(topics=[topic]))
        with wire.Connection(*listener.getsockname()) as connection:
            quorum = describe_quorum(connection)
        served.result(PATIENCE_S)
    metadata = MetadataResponse(brokers=[], topics=[], cluster_id="c")
    found = assess(metadata, quorum, Observed(health_of([]), []))
    assert (found.controller, found.problems) == (1, [])


def test_reply_that_names_no_leader_is_an_error() -> None:
    of = DescribeQuorumResponse
    nobody = of.PartitionData(leader_id=-1, current_voters=[], observers=[])
    topic = of.TopicData(topic_name="__cluster_metadata", partitions=[nobody])
    for response in (of(topics=[]), of(topics=[topic]), of(error_code=41, topics=[])):
        found = described(response)
        assert found.partition is None
        assert found.error_code
