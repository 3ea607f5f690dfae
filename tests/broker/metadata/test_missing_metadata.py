"""A missing, emptied or zeroed metadata log stops the start: an empty cluster would lose every
topic.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.broker.start.lost_metadata import MetadataLog, find_lost
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import IdentityError
from pykafka_core.cli.files.repair import stored_metadata
from pykafka_core.errors import MetadataError, StorageError
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.replay import Replay
from tests.cluster.clients import produce
from tests.support.patience import PATIENCE_S

METADATA = "__cluster_metadata-0"
KAFKAS = Path(__file__).parents[2] / "formats" / "golden"
CHILD = """
import sys
from pykafka_core import Broker
broker = Broker(sys.argv[1])
broker.create_topic("orders")
print("made", flush=True)
sys.stdin.read()
"""


def _log(data: Path) -> Path:
    return data / METADATA / f"{0:020}.log"


def _directory_gone(data: Path) -> None:
    shutil.rmtree(data / METADATA)


def _log_gone(data: Path) -> None:
    _log(data).unlink()


def _log_empty(data: Path) -> None:
    _log(data).write_bytes(b"")


def _log_zeroed(data: Path) -> None:
    _log(data).write_bytes(bytes(_log(data).stat().st_size))


def _stored_image(data: Path) -> MetadataImage:
    with stored_metadata(data) as (image, _):
        return image


def _close(data: Path) -> None:
    with Broker(data) as broker:
        broker.create_topic("orders")


def _kill(data: Path) -> None:
    """Start a broker, and kill it with SIGKILL once the checkpoints of the start exist."""
    command = [sys.executable, "-c", CHILD, str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"made\n"
        deadline = time.monotonic() + PATIENCE_S
        checkpoint = data / "recovery-point-offset-checkpoint"
        while not (checkpoint.exists() and "__cluster_metadata 0 " in checkpoint.read_text()):
            assert time.monotonic() < deadline, "no checkpoint was written"
        child.kill()


@pytest.mark.parametrize("end", [_close, _kill])
@pytest.mark.parametrize("damage", [_directory_gone, _log_gone, _log_empty, _log_zeroed])
def test_start_without_the_metadata_log_is_rejected_every_time(
    tmp_path: Path, end: Callable[[Path], None], damage: Callable[[Path], None]
) -> None:
    data = tmp_path / "data"
    end(data)
    damage(data)
    for _ in range(2):
        with pytest.raises(StorageError, match="metadata log"):
            Broker(data)


@pytest.fixture(params=["clean", "killed"])
def kafkas(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory of Apache Kafka, whose recovery points have no row for the metadata log."""
    data = tmp_path / "data"
    shutil.copytree(KAFKAS / request.param / "data", data, copy_function=shutil.copyfile)
    for directory in (data, *(path for path in data.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    return data


def _fill(data: Path) -> None:
    with Broker(data) as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"order 1")
        assert producer.flush(PATIENCE_S) == 0


def _names(data: Path) -> set[str]:
    return {path.name for path in data.iterdir() if path.is_dir() and path.name != METADATA}


@pytest.mark.parametrize("damage", [_directory_gone, _log_gone, _log_empty, _log_zeroed])
def test_kafka_directory_without_its_metadata_log_is_rejected_and_loses_no_partition(
    kafkas: Path, damage: Callable[[Path], None]
) -> None:
    damage(kafkas)
    names, identity = _names(kafkas), (kafkas / "meta.properties").read_bytes()
    for _ in range(2):
        with pytest.raises(
            MetadataError, match=rf"{kafkas} holds {len(names)} partitions"
        ) as error:
            Broker(kafkas)
        assert f"move their directories out of {kafkas}" in str(error.value)
    assert _names(kafkas) == names
    assert (kafkas / "meta.properties").read_bytes() == identity


def test_a_start_succeeds_after_the_metadata_log_was_restored(kafkas: Path) -> None:
    log = _log(kafkas)
    kept = log.read_bytes()
    log.write_bytes(b"")
    with pytest.raises(MetadataError):
        Broker(kafkas)
    log.write_bytes(kept)
    with Broker(kafkas) as broker:
        assert "grouped" in broker.topics() or "bad-crc-early" in broker.topics()
    assert not [name for name in _names(kafkas) if name.endswith("-stray")]


def test_metadata_of_another_cluster_is_rejected(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    _fill(one)
    _close(other)
    shutil.rmtree(one / METADATA)
    for checkpoint in one.glob("re*-offset-checkpoint"):
        checkpoint.unlink()
    shutil.copytree(other / METADATA, one / METADATA)
    with pytest.raises(MetadataError, match="such as orders-0"):
        Broker(one)


def test_partitions_without_an_identity_start_no_new_cluster(kafkas: Path) -> None:
    (kafkas / "meta.properties").unlink()
    shutil.rmtree(kafkas / METADATA)
    with pytest.raises(IdentityError, match=r"meta\.properties is missing"):
        Broker(kafkas)
    assert not (kafkas / "meta.properties").exists()


@pytest.mark.parametrize("has_identity", [True, False])
def test_the_directory_of_a_deleted_topic_is_set_aside(tmp_path: Path, has_identity: bool) -> None:
    """A power cut may undo the renaming of the directory; the metadata log contains the topic."""
    data, kept = tmp_path / "data", tmp_path / "kept"
    _fill(data)
    shutil.copytree(data / "orders-0", kept)
    with Broker(data) as broker:
        broker.delete_topic("orders")
    shutil.copytree(kept, data / "orders-0")
    if not has_identity:
        (data / "orders-0" / "partition.metadata").unlink()
    Broker(data).close()
    assert [name for name in _names(data) if name.startswith("orders-0.") and "-stray" in name]


@pytest.mark.parametrize("unread", ["first", "second"])
def test_a_partition_that_cannot_be_read_does_not_prevent_the_start(
    tmp_path: Path, unread: str
) -> None:
    """It did so if its name was sorted before the names of all readable partitions."""
    with Broker(tmp_path) as broker:
        for name in ("first", "second"):
            broker.create_topic(name)
            produce(broker.bootstrap_servers, name, ["1"])
    _make_unreadable(tmp_path / f"{unread}-0")
    with Broker(tmp_path) as broker:
        assert set(broker.topics()) == {"first", "second"}
        (read,) = {"first", "second"} - {unread}
        produce(broker.bootstrap_servers, read, ["2"])


def test_partitions_that_cannot_be_read_are_compared_by_name(tmp_path: Path) -> None:
    _fill(tmp_path)
    _make_unreadable(tmp_path / "orders-0")
    with Broker(tmp_path) as broker:
        assert set(broker.topics()) == {"orders"}
    assert find_lost(DataDirectory(tmp_path), Replay().image(), MetadataLog(0, ())) is not None


def _make_unreadable(partition: Path) -> None:
    """Simulate an I/O error: even the superuser cannot read the topic id."""
    (partition / "partition.metadata").unlink()
    (partition / "partition.metadata").mkdir()


def test_log_without_its_start_proves_nothing_to_a_registered_directory(
    tmp_path: Path,
) -> None:
    """A node that was offline while its topics were deleted could not start again."""
    one, other = tmp_path / "one", tmp_path / "other"
    _close(other)
    _fill(one)
    shutil.move(one / "orders-0", tmp_path)
    with Broker(one) as broker:
        broker.delete_topic("orders")
    shutil.move(tmp_path / "orders-0", one)
    directory, image = DataDirectory(one), _stored_image(one)
    assert find_lost(directory, image, MetadataLog(1, ())) is None
    assert find_lost(directory, image, MetadataLog(0, ())) is not None
    assert find_lost(directory, _stored_image(other), MetadataLog(1, ())) is not None


def test_folder_without_a_log_is_not_a_partition(tmp_path: Path) -> None:
    (tmp_path / "notes-2026").mkdir()
    Broker(tmp_path).close()
