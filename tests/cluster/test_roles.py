"""Nodes that are only controllers, and nodes that are only brokers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.cli.cluster.status import look
from pykafka_core.errors import ClusterError
from pykafka_core.protocol.messages import DescribeClusterRequest, DescribeClusterResponse
from tests.cluster.clients import consume, create, produce
from tests.cluster.roles import (
    BROKERS,
    CONTROLLERS,
    RoleNodes,
    quorum_of,
    role_nodes,
    role_processes,
)
from tests.support.patience import eventually
from tests.support.wire import Connection

DESCRIBE_CLUSTER, ENDPOINT_BROKERS, ENDPOINT_CONTROLLERS = 60, 1, 2
VALUES = sorted(f"value-{number}" for number in range(20))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RoleNodes]:
    with role_nodes(tmp_path) as made:
        made.start(*CONTROLLERS, *BROKERS)
        yield made


def describe(address: str, endpoint_type: int) -> DescribeClusterResponse:
    with Connection(address, 10) as connection:
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        response = connection.ask(DESCRIBE_CLUSTER, 1, request)
    assert isinstance(response, DescribeClusterResponse)
    return response


def test_controllers_decide_and_hold_no_partition(cluster: RoleNodes) -> None:
    create(cluster.bootstrap, "orders", *BROKERS)
    produce(cluster.bootstrap, "orders", VALUES)
    assert consume(cluster.bootstrap, "orders", len(VALUES)) == VALUES
    for node_id in CONTROLLERS:
        controller = cluster.up[node_id]
        eventually(lambda node=controller: "orders" in node.topics())  # type: ignore[misc]
        assert [path.name for path in cluster.data(node_id).glob("*-0")] == ["__cluster_metadata-0"]
        with pytest.raises(ClusterError, match="controller only"):
            controller.bootstrap_servers  # noqa: B018
    eventually(lambda: not look(cluster.bootstrap).problems)
    roles = [list(node.roles) for node in look(cluster.bootstrap).nodes]
    assert sorted(roles) == [["broker"]] * 2 + [["controller"]] * 2 + [["controller", "active"]]
    found = quorum_of(cluster.bootstrap)
    assert [one.node for one in found.voters] == [*CONTROLLERS]
    assert [one.node for one in found.replicas if one.status == "Observer"] == [*BROKERS]


def test_clients_with_controller_addresses_find_all_controllers(cluster: RoleNodes) -> None:
    def is_registered() -> bool:
        found = [describe(at, ENDPOINT_CONTROLLERS) for at in cluster.controllers.split(",")]
        named = [sorted(node.broker_id for node in response.brokers) for response in found]
        leaders = {response.controller_id for response in found}
        return named == [[*CONTROLLERS]] * 3 and leaders == {cluster.controller()}

    eventually(is_registered)
    first, *_ = cluster.controllers.split(",")
    at = {f"{node.host}:{node.port}" for node in describe(first, ENDPOINT_CONTROLLERS).brokers}
    assert at == set(cluster.controllers.split(","))
    assert describe(first, ENDPOINT_BROKERS).error_code == 114
    assert describe(cluster.bootstrap_of([4]), ENDPOINT_CONTROLLERS).error_code == 114


@pytest.mark.cluster
def test_killed_active_controller_is_replaced_and_rejoins(tmp_path: Path) -> None:
    with role_processes(tmp_path) as cluster:
        cluster.start(*CONTROLLERS, *BROKERS)
        create(cluster.bootstrap, "orders", *BROKERS)
        produce(cluster.bootstrap, "orders", VALUES)
        active = quorum_of(cluster.bootstrap).leader
        cluster.kill(active)
        create(cluster.bootstrap, f"without-{active}", *BROKERS)
        cluster.start(active)
        eventually(lambda: not look(cluster.bootstrap).problems)
        cluster.kill(*CONTROLLERS, *BROKERS)
        cluster.start(*CONTROLLERS, *BROKERS)
        assert consume(cluster.bootstrap, "orders", len(VALUES)) == VALUES


def test_directory_of_a_broker_is_not_that_of_a_controller_only(cluster: RoleNodes) -> None:
    """A controller gets no topics, so it would rename all partitions as those of deleted topics."""
    create(cluster.bootstrap, "orders", *BROKERS)
    produce(cluster.bootstrap, "orders", VALUES)
    last = BROKERS[-1]
    cluster.stop(last)
    roles = {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:0"}
    before = sorted(path.name for path in cluster.data(last).iterdir())
    with pytest.raises(ClusterError, match="holds 1 partitions of a broker, such as orders-1"):
        Broker(cluster.data(last), config=cluster.config(last) | roles)
    assert sorted(path.name for path in cluster.data(last).iterdir()) == before
    cluster.start(last)
    assert consume(cluster.bootstrap, "orders", len(VALUES)) == VALUES
