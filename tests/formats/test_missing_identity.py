"""Data without a meta.properties stops the start: a new identity would hide the loss."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.format import format_cluster, format_directory
from pykafka_core.broker.storage.identity import Identity, IdentityError
from pykafka_core.errors import StorageError
from pykafka_core.types import id_bytes, id_text
from tests.cluster.clients import produce

OTHER = Identity("2EmZYW-FRB2ZlZqcy_R5Fw", 1, id_bytes("PiNoeOXmQxe1tAMLO2R12w"))


def _content(data: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in data.rglob("*")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    with Broker(data, durability="os") as broker:
        broker.create_topic("orders")
        produce(broker.bootstrap_servers, "orders", ["1"])
    return data


def _gone(file: Path) -> None:
    file.unlink()


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _zeroed(file: Path) -> None:
    file.write_bytes(bytes(92))


def _unreadable(file: Path) -> None:
    """Even the superuser cannot read it."""
    file.unlink()
    file.mkdir()


def _dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("damage", [_gone, _empty, _zeroed, _unreadable, _dangling])
def test_start_without_a_readable_meta_properties_is_rejected_and_changes_nothing(
    data: Path, damage: Callable[[Path], None]
) -> None:
    file = data / "meta.properties"
    damage(file)
    before = _content(data)
    for _ in range(2):
        with pytest.raises(StorageError) as error:
            Broker(data, durability="os")
        assert str(file) in str(error.value)
    assert _content(data) == before


def _without_partitions(data: Path) -> None:
    for name in DataDirectory(data).partitions():
        shutil.rmtree(data / name)


def _only_quorum_state(data: Path) -> None:
    _without_partitions(data)
    for file in (data / METADATA_DIRECTORY).iterdir():
        if file.name != "quorum-state":
            file.unlink()


def _only_partitions(data: Path) -> None:
    shutil.rmtree(data / METADATA_DIRECTORY)


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        (_without_partitions, METADATA_DIRECTORY),
        (_only_quorum_state, METADATA_DIRECTORY),
        (_only_partitions, "orders-0"),
    ],
)
def test_any_data_without_meta_properties_is_named(
    data: Path, loss: Callable[[Path], None], named: str
) -> None:
    (data / "meta.properties").unlink()
    loss(data)
    with pytest.raises(IdentityError, match=rf"is missing.*data: {named}; restore it"):
        Broker(data, durability="os")


def test_directory_starts_with_a_rewritten_meta_properties(data: Path) -> None:
    """The cluster id of a single broker is nowhere else; its partitions do not need it."""
    found = DataDirectory(data).identity()
    assert found is not None
    directory_id = id_text(found.directory_id or b"")
    (data / "meta.properties").write_text(
        f"version=1\ncluster.id={OTHER.cluster_id}\nnode.id=1\ndirectory.id={directory_id}\n"
    )
    with Broker(data, durability="os") as broker:
        assert (broker.cluster_id, broker.topics()) == (OTHER.cluster_id, {"orders": 1})
    assert DataDirectory(data).identity() == found._replace(cluster_id=OTHER.cluster_id)


@pytest.mark.parametrize("name", ["lost+found", "photos-2026", METADATA_DIRECTORY])
def test_directory_without_data_is_new(tmp_path: Path, name: str) -> None:
    """An interrupted first start leaves a metadata log without records."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    (tmp_path / ".lock").touch()
    with Broker(tmp_path, durability="os") as broker:
        assert broker.topics() == {}


def test_start_that_failed_before_its_identity_was_written_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(DataDirectory, "claim", full)
        with pytest.raises(StorageError, match="no space left"):
            Broker(tmp_path, durability="os")
    Broker(tmp_path, durability="os").close()


def test_data_without_meta_properties_can_be_formatted(data: Path) -> None:
    """As with ``kafka-storage format``: the caller gives the ids."""
    (data / "meta.properties").unlink()
    format_directory(data, OTHER)
    with Broker(data, durability="os") as broker:
        assert (broker.cluster_id, broker.topics()) == (OTHER.cluster_id, {"orders": 1})


def test_cluster_does_not_format_nodes_with_data_again(tmp_path: Path) -> None:
    """Without a meta.properties the nodes looked new, and got the ids of another cluster."""
    for node in range(2):
        with Broker(tmp_path / str(node), durability="os") as broker:
            broker.create_topic("orders")
        (tmp_path / str(node) / "meta.properties").unlink()
    with pytest.raises(IdentityError, match="is missing"):
        Cluster(2, data=tmp_path)


def test_cluster_with_an_interrupted_format_is_formatted_again(tmp_path: Path) -> None:
    """A node that has only the first voters looked like one with data."""
    format_cluster(tmp_path, dict.fromkeys(range(3), ("127.0.0.1", 1)))
    (tmp_path / "1" / "meta.properties").unlink()
    shutil.rmtree(tmp_path / "2")
    with pytest.raises(IdentityError, match="format was interrupted; format it again"):
        Broker(tmp_path / "1", durability="os")
    with Cluster(3, data=tmp_path) as cluster:
        cluster.create_topic("orders")
        assert len({broker.cluster_id for broker in cluster.brokers}) == 1


def test_interrupted_format_of_more_nodes_is_not_taken_over(tmp_path: Path) -> None:
    """The first start formatted the nodes and took records, and each later one was rejected."""
    format_cluster(tmp_path, dict.fromkeys(range(3), ("127.0.0.1", 1)))
    for file in tmp_path.glob("*/meta.properties"):
        file.unlink()
    before = _content(tmp_path)
    with pytest.raises(StorageError, match="another number of nodes than 2"):
        Cluster(2, data=tmp_path)
    assert _content(tmp_path) == before


def test_cluster_that_lost_a_started_node_is_not_formatted_again(tmp_path: Path) -> None:
    with Cluster(2, data=tmp_path):
        pass
    shutil.rmtree(tmp_path / "1")
    before = _content(tmp_path)
    with pytest.raises(StorageError, match="another number of nodes"):
        Cluster(2, data=tmp_path)
    with pytest.raises(StorageError, match="another number of nodes"):
        format_cluster(tmp_path, dict.fromkeys(range(2), ("127.0.0.1", 1)))
    assert _content(tmp_path) == before


def test_identity_of_a_started_node_without_its_logs_is_kept(tmp_path: Path) -> None:
    """Its logs may be on a disk that is not mounted."""
    with Cluster(2, data=tmp_path):
        pass
    shutil.rmtree(tmp_path / "0" / METADATA_DIRECTORY)
    shutil.rmtree(tmp_path / "1")
    before = _content(tmp_path)
    with pytest.raises(StorageError, match="another number of nodes"):
        Cluster(2, data=tmp_path)
    assert _content(tmp_path) == before


def test_repeated_format_keeps_no_voters_of_the_interrupted_one(tmp_path: Path) -> None:
    format_cluster(tmp_path, {0: ("127.0.0.1", 1)})
    (tmp_path / "0" / "meta.properties").unlink()
    format_directory(tmp_path / "0", OTHER)
    assert DataDirectory(tmp_path / "0").latest_snapshot_head() is None
