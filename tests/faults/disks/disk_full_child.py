"""The scenarios of `test_disk_full`, run on a small tmpfs.

Usage: ``disk_full_child.py SCENARIO DIRECTORY``. A scenario is a function of the mounted directory.
A filler file next to the data can take all the remaining space, to the last byte.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import CLEAN_SHUTDOWN
from pykafka_core.broker.storage.reserve import RESERVE_BYTES, RESERVE_FILE, Need
from pykafka_core.errors import KafkaStorageError, StorageError
from tests.support.patience import PATIENCE_S, POLL_S, eventually
from tests.support.processes.nodes import SERVE

SIZE = 24 << 20
STORAGE_ERROR = 56
# Compression must not save the space that the test wants to fill.
VALUE_BYTES = 100_000
TOPICS = 60
"""The records of so many topics need more than one page of the metadata log."""
AT_ONCE = {"file.delete.delay.ms": "0"}


class Sender:
    """Sends one record at a time, without retries, and stores the acknowledged ones."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "retries": 0, "linger.ms": 0, "log_level": 0}
        )
        self.acknowledged: dict[str, list[bytes]] = {}

    def send(self, topic: str, value: bytes, key: bytes | None = None) -> int:
        """Return the record's error code, 0 if it was acknowledged."""
        codes: list[int] = []
        self._producer.produce(
            topic,
            value,
            key,
            partition=0,
            on_delivery=lambda error, _: codes.append(error.code() if error else 0),
        )
        assert self._producer.flush(PATIENCE_S) == 0
        if codes == [0]:
            self.acknowledged.setdefault(topic, []).append(value)
        return codes[0]

    def send_until_full(self, topic: str) -> int:
        """Return the first error code."""
        for number in range(2 * SIZE // VALUE_BYTES):
            code = self.send(topic, f"{number:06}".encode() + bytes(VALUE_BYTES))
            if code != 0:
                return code
        raise AssertionError("the disk never was full")

    def send_until_accepted(self, topic: str, value: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (code := self.send(topic, value)) != 0:
            assert code == STORAGE_ERROR
            assert time.monotonic() < deadline, "space never returned"


def read(bootstrap: str, topic: str) -> list[bytes]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)[1]
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < end:
        assert time.monotonic() < deadline, f"{len(values)} of {end} records were read"
        values += [record.value() for record in consumer.consume(1000, timeout=POLL_S)]
    consumer.close()
    return values


class Disk:
    """The mounted directory, with the data in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self._filler = path / "filler"

    def fill(self) -> None:
        """Fill the disk; repeat, because a broker that rewrites a checkpoint frees some bytes."""

        def is_full() -> bool:
            with open(self._filler, "ab", buffering=0) as file:
                for size in (1 << 20, 4096, 1):
                    try:
                        while True:
                            file.write(bytes(size))
                    except OSError:
                        pass
            return self.free() == 0

        eventually(is_full, "the disk is full")

    def empty(self) -> None:
        self._filler.unlink()

    def free(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def broker(self) -> Broker:
        return Broker(self.data, durability="os", listeners="127.0.0.1:0")

    def reserve(self) -> int:
        return (self.data / RESERVE_FILE).stat().st_size

    def deleted(self) -> list[Path]:
        return list(self.data.glob("*-delete"))


def producers(path: Path) -> None:
    with Disk(path).broker() as broker:
        producers_resume(broker)


def producers_resume(broker: Broker) -> None:
    """A full disk fails only produce requests, and they succeed again when there is space."""
    for topic in ("ballast", "load", "other"):
        broker.create_topic(topic, config=AT_ONCE)
    sender = Sender(broker.bootstrap_servers)
    for topic in ("other", "load"):
        assert sender.send(topic, b"first") == 0
    assert sender.send_until_full("ballast") == STORAGE_ERROR
    assert sender.send_until_full("load") == STORAGE_ERROR

    # Reads, metadata, and appends to space that is already reserved still work.
    for topic in ("other", "load", "ballast"):
        assert read(broker.bootstrap_servers, topic) == sender.acknowledged[topic]
    assert sender.send("other", b"small") in (0, STORAGE_ERROR)
    assert set(broker.topics()) >= {"ballast", "load", "other"}

    broker.delete_topic("ballast")
    for topic in ("load", "other"):
        sender.send_until_accepted(topic, b"after")
    for topic in ("other", "load"):
        assert read(broker.bootstrap_servers, topic) == sender.acknowledged[topic]


def metadata(path: Path) -> None:
    """On a full disk topics are created and deleted, and a deletion frees its space."""
    disk = Disk(path)
    with disk.broker() as broker:
        for number in range(TOPICS):
            broker.create_topic(f"small-{number}")
        broker.create_topic("ballast", config=AT_ONCE)
        sender = Sender(broker.bootstrap_servers)
        for _ in range(40):
            assert sender.send("ballast", bytes(VALUE_BYTES)) == 0
        disk.fill()
        for number in range(TOPICS):
            broker.delete_topic(f"small-{number}")
            if number % 20 == 0:
                disk.fill()  # take the space that the reserve frees
        for number in range(TOPICS):
            broker.create_topic(f"late-{number}")
        assert 0 < disk.reserve() < RESERVE_BYTES
        broker.delete_topic("ballast")
        eventually(lambda: not disk.deleted(), "the files of the deleted topic are gone")
        eventually(lambda: disk.reserve() == RESERVE_BYTES, "the reserve is there again")
        sender.send_until_accepted("late-7", b"after")
        topics = broker.topics()
    assert topics == {f"late-{number}": 1 for number in range(TOPICS)}
    disk.fill()
    with disk.broker() as broker:
        assert broker.topics() == topics
        assert read(broker.bootstrap_servers, "late-7") == [b"after"]


TOPIC_BYTES_MIN = 256
"""Lower bound: the metadata records of a topic with ten partitions are larger."""


def created(broker: Broker, partitions: int) -> bool:
    """Create one more topic; return False if the disk is too full."""
    try:
        broker.create_topic(f"late-{len(broker.topics())}", partitions)
    except KafkaStorageError:
        return False
    return True


def growth(path: Path) -> None:
    """Created topics use no more than their share of the reserve.

    Topics can still be deleted, and a broker starts.
    """
    disk = Disk(path)
    with disk.broker() as broker:
        broker.create_topic("first", 10)
        disk.fill()
        # The number is bounded, because on a slow disk the many topics take minutes.
        refused = any(not created(broker, 10) for _ in range(RESERVE_BYTES // TOPIC_BYTES_MIN))
        assert refused, "topics are created without end"
        assert disk.reserve() == Need.GROWTH
        disk.fill()
        broker.delete_topic("first")
        topics = broker.topics()
    for _ in range(3):
        disk.fill()
        with disk.broker() as broker:
            assert broker.topics() == topics


def start(path: Path) -> None:
    """A broker starts on a full disk, after a stop and after a kill."""
    disk = Disk(path)
    with disk.broker() as broker:
        broker.create_topic("kept")
        assert Sender(broker.bootstrap_servers).send("kept", b"first") == 0
    disk.fill()
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.disks.disk_full_child", "killed", str(path)],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    disk.fill()
    with disk.broker() as broker:
        assert broker.topics() == {"before-kill": 1, "kept": 1}
        assert read(broker.bootstrap_servers, "kept") == [b"first"]


def killed(path: Path) -> None:
    """The middle of `start`: create a topic and die."""
    with Disk(path).broker() as broker:
        broker.create_topic("before-kill")
        os.kill(os.getpid(), signal.SIGKILL)


def removal(path: Path) -> None:
    """If space is short, a start removes deleted partitions before it writes anything."""
    disk = Disk(path)
    disk.broker().close()
    (disk.data / RESERVE_FILE).unlink()
    deleted = disk.data / f"ballast-0.{7:032x}-delete"
    deleted.mkdir()
    (deleted / f"{0:020}.log").write_bytes(bytes(4 << 20))
    for kept in ("a-delete", "b-0.7-delete", "__cluster_metadata-0.7"):
        (disk.data / kept).mkdir()
    outside = path / f"outside.{7:032x}-delete"
    outside.mkdir()
    (outside / "file").write_bytes(b"kept")
    (disk.data / outside.name).symlink_to(outside)
    disk.fill()
    with disk.broker():
        assert not deleted.exists()
        assert disk.reserve() == RESERVE_BYTES
        assert (outside / "file").read_bytes() == b"kept"


def no_reserve(path: Path) -> None:
    """Without the reserve, too, the error contains advice, and nothing is changed."""
    disk = Disk(path)
    disk.broker().close()
    (disk.data / RESERVE_FILE).unlink()
    (disk.data / CLEAN_SHUTDOWN).unlink()  # a start would remove it, which frees enough space
    disk.fill()
    for data in (disk.data, path / "new"):
        with pytest.raises(StorageError, match="free some space"):
            Broker(data)
        command = [*SERVE, "--data", str(data), "--listen", "127.0.0.1:0"]
        served = subprocess.run(command, capture_output=True, text=True, check=False)
        assert served.returncode == 1, served
        assert "free some space" in served.stderr
        assert "Traceback" not in served.stderr
    assert not list(disk.data.rglob("*.tmp"))
    disk.empty()
    disk.broker().close()


SCENARIOS = {
    f.__name__: f for f in (producers, metadata, growth, start, killed, removal, no_reserve)
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
