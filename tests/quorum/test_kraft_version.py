"""A single broker writes its voter to the log when ``kraft.version`` is raised from 0 to 1."""

from functools import partial
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.cli.client import wire
from pykafka_core.cli.cluster import features
from pykafka_core.cli.cluster.features import Way
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum.log.voters import decode_voters
from pykafka_core.quorum.values import ReplicaKey, Voter
from tests.support.java import java
from tests.support.patience import eventually

KRAFT = "kraft.version"
CHANGE = partial(features.change, as_json=False, dry_run=False)
EACH_COMMIT = {"metadata.log.max.record.bytes.between.snapshots": "1"}


def level(broker: Broker) -> int:
    with wire.cluster(broker.bootstrap_servers, "cannot ask") as cluster:
        _, found = features.look(cluster.any())
    return next(one.finalized for one in found if one.name == KRAFT)


def raised(broker: Broker) -> None:
    assert level(broker) == 0
    CHANGE(broker.bootstrap_servers, [f"{KRAFT}=1"], Way.UPGRADE)
    assert level(broker) == 1


def test_kraft_version_of_a_broker_in_memory_is_raised() -> None:
    with Broker() as broker:
        raised(broker)
        broker.create_topic("orders")
        assert level(broker) == 1


@pytest.mark.parametrize("snapshots", [{}, EACH_COMMIT], ids=["log", "snapshot"])
def test_kraft_version_survives_restarts(tmp_path: Path, snapshots: dict[str, str]) -> None:
    data = tmp_path / "data"
    with Broker(data, config=snapshots) as broker:
        broker.create_topic("before")
        raised(broker)
        broker.create_topic("after")
        if snapshots:
            eventually(lambda: QuorumRecords().after(newest(data)).voters is not None)
    if snapshots:
        records = QuorumRecords().after(newest(data))
        assert records.voters is not None
        found = DataDirectory(data).identity()
        assert found is not None
        identity = found.completed(lambda: b"")
        key = ReplicaKey(identity.node_id, identity.directory_id)
        assert decode_voters(records.voters) == (Voter(key, (), (0, 1)),)
    for _ in range(2):
        with Broker(data) as broker:
            assert level(broker) == 1
            assert sorted(broker.topics()) == ["after", "before"]


def newest(data: Path) -> bytes:
    found = DataDirectory(data).latest_snapshot()
    return b"" if found is None else found.bytes


@pytest.mark.jvm
def test_tool_of_kafka_reads_the_records(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data) as broker:
        raised(broker)
    log = data / "__cluster_metadata-0" / f"{0:020}.log"
    printed = java("kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log))
    assert '"kRaftVersion":1' in printed
    assert '"voterId"' in printed
    assert "isvalid: false" not in printed
