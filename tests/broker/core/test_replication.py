"""Two cores with images from the test: each fetches the partitions that the other one leads
(contract/replication.md#16, #23).
"""

from collections.abc import Iterator

import pytest

from pykafka_core import _core
from tests.support.patience import PATIENCE_NS

TOPIC = b"t" * 16
PARTITION = (TOPIC, 0)
LISTENER = "REPLICATION"
NODES = (1, 2)


class Cluster:
    """Two nodes with the same image of one partition."""

    def __init__(self) -> None:
        self.cores = {node: new_core(node) for node in NODES}
        self.ports = {
            node: core.listen(LISTENER, "127.0.0.1:0") for node, core in self.cores.items()
        }
        self.leader_epoch = -1
        self.tokens = 0
        self.lead(1)
        for core in self.cores.values():
            core.serve()

    def lead(self, leader: int) -> None:
        self.leader_epoch += 1
        partition = _core.PartitionImage(
            index=0,
            leader=leader,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.leader_epoch,
            replicas=NODES,
            isr=NODES,
        )
        delta = _core.ImageDelta(
            metadata_offset=self.leader_epoch,
            brokers=[
                _core.BrokerEndpoint(
                    node_id=node,
                    listener=LISTENER,
                    host="127.0.0.1",
                    port=port,
                    rack=None,
                    broker_epoch=5,
                )
                for node, port in self.ports.items()
            ],
            broker_settings={"inter.broker.listener.name": LISTENER},
            topics=[_core.TopicImage(name="t", topic_id=TOPIC, partitions=[partition])],
        )
        for core in self.cores.values():
            core.apply(delta)

    def append(self, leader: int, value: bytes) -> int:
        """Append a record; return its offset once all in-sync replicas have it."""
        self.tokens += 1
        core = self.cores[leader]
        core.append(self.tokens, PARTITION, self.leader_epoch, [(None, value)])
        deadline_ns = core.now_ns() + PATIENCE_NS
        while events := core.wait(deadline_ns):
            for event in events:
                if isinstance(event, _core.Appended) and event.token == self.tokens:
                    assert event.error_code == 0
                    return event.offset
        raise AssertionError("not in time")

    def stop(self) -> None:
        for core in self.cores.values():
            core.stop(0)


def new_core(node: int) -> _core.Core:
    options = _core.CoreOptions(
        data_dir=None, node_id=node, cluster_id="a-cluster", durability="memory"
    )
    return _core.Core(options)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


def test_acknowledged_records_survive_any_leader_change(cluster: Cluster) -> None:
    expected = b""
    for number in range(6):
        leader = NODES[number % 2]
        assert cluster.append(leader, b"%d" % number) == number
        core = cluster.cores[leader]
        log = core.read(PARTITION, 0, 1 << 20, "log_end")
        assert log.startswith(expected)
        expected = bytes(log)
        cluster.lead(NODES[(number + 1) % 2])
