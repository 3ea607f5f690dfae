from pathlib import Path

import pytest

from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import StorageError
from pykafka_core.types import id_bytes

IDENTITY = Identity(
    cluster_id="2EmZYW-FRB2ZlZqcy_R5Fw", node_id=7, directory_id=id_bytes("PiNoeOXmQxe1tAMLO2R12w")
)


def test_a_new_directory_has_no_identity(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    assert directory.identity() is None
    assert (directory.quorum_epoch(), directory.latest_snapshot()) == (0, None)
    assert not (tmp_path / "data").exists()


def test_an_identity_is_read_back(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.create(IDENTITY)
    assert directory.identity() == IDENTITY
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


def test_what_kafka_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Sat Nov 21 01:31:30 UTC 2026\nnode.id=7\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\n"
        "version=1\ncluster.id=2EmZYW-FRB2ZlZqcy_R5Fw\n"
    )
    assert DataDirectory(tmp_path).identity() == IDENTITY


@pytest.mark.parametrize(
    "text",
    ["", "node.id=1\n", "cluster.id=x\nnode.id=one\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\n", "\0"],
)
def test_what_cannot_be_understood_is_an_error(tmp_path: Path, text: str) -> None:
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
def test_the_epoch_of_kafkas_quorum_state_is_read(tmp_path: Path, state: str) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    assert DataDirectory(tmp_path).quorum_epoch() == 3


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"leaderEpoch": "x"}'])
def test_a_damaged_quorum_state_is_an_error(tmp_path: Path, state: str) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    with pytest.raises(StorageError, match="quorum-state"):
        DataDirectory(tmp_path).quorum_epoch()


def test_an_epoch_is_read_back(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.write_quorum_state(7, 12)
    assert directory.quorum_epoch() == 12


def test_the_newest_snapshot_counts(tmp_path: Path) -> None:
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
