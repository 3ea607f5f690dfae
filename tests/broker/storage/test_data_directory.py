from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core._core import build_batch
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import Identity, StoredIdentity
from pykafka_core.broker.storage.partition_identity import PARTITION_METADATA, read_identity
from pykafka_core.errors import LocalError, StorageError
from pykafka_core.quorum.values import ElectionState, ReplicaKey
from pykafka_core.types import id_bytes

IDENTITY = Identity(
    cluster_id="2EmZYW-FRB2ZlZqcy_R5Fw", node_id=7, directory_id=id_bytes("PiNoeOXmQxe1tAMLO2R12w")
)
STORED = StoredIdentity(*IDENTITY)


def test_a_new_directory_has_no_identity(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    assert directory.identity() is None
    assert (directory.election().epoch, directory.latest_snapshot()) == (0, None)
    assert not (tmp_path / "data").exists()


def test_identity_can_be_read_back(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.create(IDENTITY)
    assert directory.identity() == STORED
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


def test_meta_properties_of_kafka_are_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Sat Nov 21 01:31:30 UTC 2026\nnode.id=7\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\n"
        "version=1\ncluster.id=2EmZYW-FRB2ZlZqcy_R5Fw\n"
    )
    assert DataDirectory(tmp_path).identity() == STORED


@pytest.mark.parametrize(
    "text",
    ["", "node.id=1\n", "cluster.id=x\nnode.id=one\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\n", "\0"],
)
def test_invalid_meta_properties_are_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(StorageError, match=r"meta\.properties"):
        DataDirectory(tmp_path).identity()


@pytest.mark.parametrize(
    "state",
    [
        '{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}',
        '{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}',
    ],
    ids=["version 1", "version 0"],
)
def test_epoch_in_a_quorum_state_of_kafka_is_read(tmp_path: Path, state: str) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    assert DataDirectory(tmp_path).election().epoch == 3


@pytest.mark.parametrize(
    "state",
    [
        "",
        "[]",
        "{}",
        '{"leaderEpoch": "x"}',
        '{"leaderEpoch": 3, "leaderId": -2}',
        '{"leaderEpoch": 3, "votedId": true}',
        '{"leaderEpoch": 3, "votedId": 1, "votedDirectoryId": "short"}',
        '{"leaderEpoch": 3, "votedId": 1, "votedDirectoryId": 7}',
        "[" * 100_000,
    ],
)
def test_a_damaged_quorum_state_is_an_error(tmp_path: Path, state: str) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    with pytest.raises(StorageError, match="quorum-state"):
        DataDirectory(tmp_path).election()


@pytest.mark.parametrize(
    "voters", ["7", '"x"', "[7]", '[{"voterId": "x"}]', "[{}]", '{"voterId": 1}', "true"]
)
def test_voters_of_a_damaged_quorum_state_are_an_error(tmp_path: Path, voters: str) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    state = f'{{"leaderEpoch": 3, "currentVoters": {voters}}}'
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    with pytest.raises(StorageError, match="quorum-state"):
        DataDirectory(tmp_path).static_voters()


STATES = [
    ElectionState(12, 7),
    ElectionState(3),
    ElectionState(5, -1, ReplicaKey(2, bytes(range(16)))),
    ElectionState(5, 2, ReplicaKey(2, bytes(range(16)))),
]


@pytest.mark.parametrize("state", STATES)
def test_election_can_be_read_back(tmp_path: Path, state: ElectionState) -> None:
    DataDirectory(tmp_path).write_election(state)
    assert DataDirectory(tmp_path).election() == state


def test_quorum_state_is_written_as_in_kafka(tmp_path: Path) -> None:
    kafkas = (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    DataDirectory(tmp_path).write_election(ElectionState(1, 1))
    assert (tmp_path / "__cluster_metadata-0" / "quorum-state").read_bytes() == kafkas


def test_newest_snapshot_is_used(tmp_path: Path) -> None:
    metadata = tmp_path / "__cluster_metadata-0"
    metadata.mkdir()
    for name in (
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000120-0000000003.checkpoint",
        "00000000000000000999-0000000003.checkpoint.part",
        "leader-epoch-checkpoint",
        "bootstrap.checkpoint",
    ):
        (metadata / name).write_bytes(name.encode())
    name = "00000000000000000120-0000000003.checkpoint"
    newest = DataDirectory(tmp_path).latest_snapshot()
    assert newest == (120, metadata / name, name.encode())


def test_epochs_never_go_back_after_the_loss_of_any_file(tmp_path: Path) -> None:
    """After the loss of quorum-state, the epoch started again with 1, below that of the batches."""
    directory, metadata = DataDirectory(tmp_path), tmp_path / "__cluster_metadata-0"
    assert directory.last_epoch() == 0
    directory.write_election(ElectionState(4, 1))
    assert directory.last_epoch() == 4
    (metadata / "00000000000000000120-0000000005.checkpoint").write_bytes(b"")
    assert directory.last_epoch() == 5
    checkpoint = metadata / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n1 0\n6 17\n")
    assert directory.last_epoch() == 6
    batches = [build_batch([(None, b"x")], base_offset=n, leader_epoch=5 + n) for n in range(3)]
    (metadata / "00000000000000000000.log").write_bytes(b"".join(batches))
    checkpoint.unlink()
    assert directory.last_epoch() == 7
    (metadata / "00000000000000000000.log").write_bytes(b"".join(batches)[:-1] + bytes(100))
    assert directory.last_epoch() == 7, "a header that stands counts"
    (metadata / "00000000000000000000.log").write_bytes(bytes(1000))
    assert directory.last_epoch() == 5


def test_lost_quorum_state_does_not_lower_the_epoch(tmp_path: Path) -> None:
    for _ in range(3):
        Broker(tmp_path, durability="os").close()
    metadata = tmp_path / "__cluster_metadata-0"
    (metadata / "quorum-state").unlink()
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("orders")
        assert DataDirectory(tmp_path).election().epoch == 4
    (metadata / "quorum-state").unlink()
    (metadata / "leader-epoch-checkpoint").unlink()
    with Broker(tmp_path, durability="os") as broker:
        assert broker.topics() == {"orders": 1}
        assert DataDirectory(tmp_path).election().epoch == 5


@pytest.mark.parametrize("is_clean", [True, False])
def test_unusable_metadata_log_is_one_error_with_advice(tmp_path: Path, is_clean: bool) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("orders")
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    log.write_bytes(b"\xff" * log.stat().st_size)
    if not is_clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    with pytest.raises(LocalError, match=r"restore|repair"):
        Broker(tmp_path, durability="os")


OLDER = "#\nnode.id=7\nversion=1\ncluster.id=2EmZYW-FRB2ZlZqcy_R5Fw\n"
"""The file as written by Kafka 3.3 to 3.6: directories had no ids before KIP-858."""
ZOOKEEPER = "version=0\nbroker.id=7\ncluster.id=2EmZYW-FRB2ZlZqcy_R5Fw\n"


def test_directory_without_an_id_gets_one_at_its_first_start(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("orders")
    file = tmp_path / "meta.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("directory.id")]
    file.write_text("\n".join(kept) + "\n")
    with Broker(tmp_path) as broker:
        assert "orders" in broker.topics()
    given = file.read_text()
    assert "directory.id=" in given
    with Broker(tmp_path):
        assert file.read_text() == given


def test_reading_the_identity_assigns_no_id(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(OLDER)
    found = DataDirectory(tmp_path).identity()
    assert found == StoredIdentity("2EmZYW-FRB2ZlZqcy_R5Fw", 7, None)
    assert (tmp_path / "meta.properties").read_text() == OLDER


def test_a_directory_of_zookeeper_mode_is_named(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(ZOOKEEPER)
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(StorageError, match=r"ZooKeeper mode.*migrate"):
        Broker(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"meta.properties", "orders-0"}


def test_version_0_with_a_metadata_log_is_a_kraft_directory(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(ZOOKEEPER)
    (tmp_path / "__cluster_metadata-0").mkdir()
    found = DataDirectory(tmp_path).identity()
    assert found == StoredIdentity("2EmZYW-FRB2ZlZqcy_R5Fw", 7, None)


def test_a_directory_of_a_newer_kafka_is_named(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(OLDER.replace("version=1", "version=2"))
    with pytest.raises(StorageError, match=r"newer Kafka: version is '2'.*start the version"):
        Broker(tmp_path)


@pytest.mark.parametrize(
    ("line", "partition"), [(b"partition: 7", 7), (b"partition: 7x", None), (b"", None)]
)
def test_partition_metadata_with_an_invalid_partition_is_damaged(
    tmp_path: Path, line: bytes, partition: int | None
) -> None:
    lines = b"version: 0", b"topic_id: AAAAAAAAAAAAAAAAAAAAAQ", line
    (tmp_path / PARTITION_METADATA).write_bytes(b"\n".join(lines))
    identity = read_identity(tmp_path)
    assert (identity is None) == (line == b"partition: 7x")
    assert identity is None or identity == (bytes(15) + b"\x01", partition)
