"""``status``: its output for a healthy cluster, and the problems that it reports."""

import json
import re
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.cli.client.describe_quorum import NO_RESPONSE, Described
from pykafka_core.cli.client.health import Observed
from pykafka_core.cli.client.status import assess
from pykafka_core.metadata.health import State, health_of, problems
from pykafka_core.protocol.messages import DescribeQuorumResponse, MetadataResponse
from tests.support.cli import run

Capture = pytest.CaptureFixture[str]


HEALTHY = Observed(health_of([]), [])


LED = Described(DescribeQuorumResponse.PartitionData(leader_id=7), 0)


def cluster() -> MetadataResponse:
    of = MetadataResponse
    partitions = [of.MetadataResponsePartition(partition_index=0, leader_id=1)]
    return of(
        cluster_id="c",
        controller_id=1,
        brokers=[of.MetadataResponseBroker(node_id=1, host="h", port=9092)],
        topics=[of.MetadataResponseTopic(name="t", partitions=partitions)],
    )


def test_a_broker_that_serves_is_healthy(capsys: Capture) -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        assert run("status", "--json", "-b", broker.bootstrap_servers) == 0
        said = json.loads(capsys.readouterr().out)
        assert run("status", "-b", broker.bootstrap_servers) == 0
        shown = re.sub(r"[^\w.:]+", " ", capsys.readouterr().out)
        address, cluster_id = broker.bootstrap_servers, broker.cluster_id
    assert (said["healthy"], said["problems"]) == (True, [])
    assert said["cluster_id"] == cluster_id
    assert said["brokers"] == [{"id": 1, "address": address}]
    assert (said["topics"], said["partitions"], said["groups"]) == (1, 3, {})
    assert "state healthy" in shown
    assert f"1 {address}" in shown


def test_groups_are_counted_by_state(capsys: Capture, tmp_path: Any) -> None:
    (tmp_path / "lines").write_text("a\n")
    with Broker() as broker:
        broker.create_topic("t")
        at = "-b", broker.bootstrap_servers
        assert run("produce", "t", str(tmp_path / "lines"), *at) == 0
        assert run("consume", "t", "--group", "g", "--max", "1", *at) == 0
        capsys.readouterr()
        assert run("status", "--json", *at) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == {"Empty": 1}


def test_metadata_is_requested_once() -> None:
    """Two clients requested it, and a topic created in between was only in one response."""
    with Broker() as broker:
        assert run("status", "-b", broker.bootstrap_servers) == 0
        assert broker.statistics()["requests_metadata"] == 1


def test_controller_is_the_leader_of_the_quorum_and_its_absence_is_a_problem() -> None:
    """A broker's Metadata response names a broker as the controller, even without a live
    controller.
    """
    assert assess(cluster(), LED, HEALTHY, {}, None).controller_id == 7
    found = assess(cluster(), NO_RESPONSE, HEALTHY, {}, None)
    assert found.controller_id is None
    assert found.problems == [
        "no controller answers (REQUEST_TIMED_OUT): topics cannot be created or changed"
    ]


def test_each_state_is_a_problem() -> None:
    observed = Observed(health_of((state, "t-0") for state in State), ["node 2 is silent"])
    found = assess(cluster(), LED, observed, {}, None)
    assert not found.healthy
    assert found.problems == [*problems(observed.health), "node 2 is silent"]
    assert len(found.problems) == len(State) + 1


def test_groups_that_cannot_be_listed_are_a_problem() -> None:
    found = assess(cluster(), LED, HEALTHY, None, "groups cannot be listed: why")
    assert found.problems == ["groups cannot be listed: why"]


def test_unreachable_cluster_is_code_1(capsys: Capture) -> None:
    assert run("status", "-b", "127.0.0.1:1") == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
