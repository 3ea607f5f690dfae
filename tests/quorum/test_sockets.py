"""Replicas of ours over real sockets: they elect, replicate and go on without one of them."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bench.peers.brokers import reserve_port
from pykafka_core.protocol.messages import NoOpRecord
from pykafka_core.quorum.envelope import Endpoint
from pykafka_core.quorum.values import ReplicaKey
from tests.quorum.live import LiveReplica

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = tuple(ReplicaKey(node, bytes(15) + bytes((node,))) for node in (1, 2, 3))


@pytest.fixture
def cluster() -> Iterator[dict[int, LiveReplica]]:
    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()).getsockname()[1] for _ in VOTERS]
        peers = {
            key.node_id: Endpoint("127.0.0.1", port)
            for key, port in zip(VOTERS, ports, strict=True)
        }
        yield {
            key.node_id: stack.enter_context(
                LiveReplica(key, VOTERS, CLUSTER_ID, peers, port=peers[key.node_id].port)
            )
            for key in VOTERS
        }


def leader_of(replicas: list[LiveReplica]) -> LiveReplica:
    """The one that has committed in its epoch."""
    first = replicas[0]

    def leads() -> list[LiveReplica]:
        return [one for one in replicas if one.replica.can_propose]

    first.wait_for(leads, "one leads")
    return leads()[0]


def agree(replicas: list[LiveReplica], least: int) -> None:
    for one in replicas:
        one.wait_until_committed(least)
    committed = [one.committed for one in replicas]
    shortest = min(committed, key=len)
    assert all(one.startswith(shortest) for one in committed)


def test_three_replicate_and_go_on_when_their_leader_dies(cluster: dict[int, LiveReplica]) -> None:
    first = leader_of(list(cluster.values()))
    for _ in range(10):
        first.propose([NoOpRecord(), NoOpRecord()])
    agree(list(cluster.values()), 20)
    before = first.committed
    first.stop()
    left = [one for one in cluster.values() if one is not first]
    second = leader_of(left)
    assert second.replica.leader_epoch > first.replica.leader_epoch
    second.propose([NoOpRecord()])
    agree(left, 22)
    assert all(one.committed.startswith(before) for one in left)
