"""Our replicas on real sockets elect a leader, replicate, and continue if one of them stops."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pykafka_core.broker.runtime.quorum import raft_transport
from pykafka_core.metadata.records.codec import decode_batches, split_batches
from pykafka_core.protocol.messages import FeatureLevelRecord, Message, NoOpRecord
from pykafka_core.quorum.rpc import Body, Fetch, ReplyBody
from pykafka_core.quorum.values import QuorumConfig, ReplicaKey
from pykafka_core.quorum.wire.envelope import Endpoint
from pykafka_core.quorum.wire.replies import encode_reply
from tests.quorum.live import LiveReplica
from tests.support.processes.nodes import reserve_port

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = tuple(ReplicaKey(node, bytes(15) + bytes((node,))) for node in (1, 2, 3))


class Cluster:
    """Three replicas; each has its own folder, which it uses again after a restart."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        ports = [stack.enter_context(reserve_port()).getsockname()[1] for _ in VOTERS]
        self._peers = {
            key.node_id: Endpoint("127.0.0.1", port)
            for key, port in zip(VOTERS, ports, strict=True)
        }
        self.up: dict[int, LiveReplica] = {}
        stack.callback(lambda: self.stop(*self.up))

    def start(self, *node_ids: int, config: QuorumConfig = QuorumConfig()) -> None:  # noqa: B008
        for node_id in node_ids:
            key = next(voter for voter in VOTERS if voter.node_id == node_id)
            data, port = self._folder / str(node_id), self._peers[node_id].port
            one = LiveReplica(key, VOTERS, CLUSTER_ID, self._peers, data, port, config=config)
            self.up[node_id] = one.__enter__()

    def stop(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.up.pop(node_id).stop()

    def leader(self) -> int:
        """Wait for a replica that has committed in its epoch; return its node id."""

        def leads() -> list[int]:
            return [node_id for node_id, one in self.up.items() if one.leads]

        next(iter(self.up.values())).wait_for(leads, "one leads")
        return leads()[0]

    def agree(self, least: int) -> bytes:
        """Check that the running replicas have committed equal batches; return the shortest log."""
        for one in self.up.values():
            one.wait_until_committed(least)
        committed = [one.committed for one in self.up.values()]
        shortest = min(committed, key=len)
        assert all(one.startswith(shortest) for one in committed)
        return shortest


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def test_three_voters_replicate_and_continue_after_their_leader_stops(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    first = cluster.leader()
    for _ in range(10):
        cluster.up[first].propose([NoOpRecord(), NoOpRecord()])
    before = cluster.agree(20)
    epoch = cluster.up[first].replica.leader_epoch
    cluster.stop(first)
    second = cluster.up[cluster.leader()]
    assert second.replica.leader_epoch > epoch
    second.propose([NoOpRecord()])
    assert cluster.agree(22).startswith(before)


def test_follower_that_was_down_gets_the_committed_records(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    leader = cluster.leader()
    away = next(node_id for node_id in cluster.up if node_id != leader)
    cluster.stop(away)
    for _ in range(5):
        cluster.up[leader].propose([NoOpRecord()] * 3)
    cluster.up[leader].wait_until_committed(16)
    cluster.start(away)
    assert count(cluster.agree(16)) >= 15
    back = cluster.up[away]
    back.wait_for(lambda: sum(len(batch.records) for batch in back.published) >= 15, "all is told")


def test_leader_sends_no_more_than_requested_or_one_batch(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaders once sent up to 1 MiB for any Fetch (`controller.quorum.fetch.max.bytes`)."""
    cluster.start(1, 2, 3)
    leader = cluster.leader()
    away = next(node_id for node_id in cluster.up if node_id != leader)
    cluster.stop(away)
    for _ in range(5):
        cluster.up[leader].propose([NoOpRecord()])
    cluster.up[leader].wait_until_committed(6)
    sent: list[int] = []

    def counted(body: Body, reply: ReplyBody, at: Endpoint | None, records: bytes) -> Message:
        if isinstance(body, Fetch) and body.replica.node_id == away:
            sent.append(sum(1 for _ in split_batches(records)))
        return encode_reply(body, reply, at, records)

    monkeypatch.setattr(raft_transport, "encode_reply", counted)
    cluster.start(away, config=QuorumConfig(fetch_bytes_max=1))
    cluster.up[away].wait_until_committed(6)
    assert max(sent) == 1


def test_unreplicated_records_of_a_former_leader_are_dropped(cluster: Cluster) -> None:
    """contract/replication.md#K6."""
    cluster.start(1, 2, 3)
    first = cluster.leader()
    cluster.up[first].propose([NoOpRecord()])
    others = [node_id for node_id in cluster.up if node_id != first]
    committed = cluster.agree(2)
    cluster.stop(*others)
    alone = cluster.up[first]
    end = alone.replica.log_end_offset
    alone.propose([FeatureLevelRecord(name="nobody.has.this", feature_level=1)])
    alone.wait_for(lambda: alone.replica.log.synced_end > end, "its own log has it")
    cluster.stop(first)
    cluster.start(*others)
    second = cluster.up[cluster.leader()]
    second.propose([NoOpRecord()] * 4)
    cluster.agree(end + 4)
    cluster.start(first)
    after = cluster.agree(second.replica.high_watermark)
    assert after.startswith(committed)
    assert b"nobody.has.this" not in after


def test_all_voters_restart_with_their_committed_records(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    cluster.up[cluster.leader()].propose([NoOpRecord()] * 7)
    before = cluster.agree(8)
    epochs = {one.replica.leader_epoch for one in cluster.up.values()}
    cluster.stop(1, 2, 3)
    cluster.start(1, 2, 3)
    leader = cluster.up[cluster.leader()]
    assert leader.replica.leader_epoch > max(epochs)
    assert cluster.agree(9).startswith(before)


def count(batches: bytes) -> int:
    return len(decode_batches(batches).records)
