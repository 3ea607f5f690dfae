"""The kernel, Kafka's hash and Kafka's producer choose equal partitions for a million random keys.

There are 250,000 keys of each type. The producer sends its records to our broker. The number of
records in each partition must be the number that the kernel has calculated.
"""

import random
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from pykafka_core import kernels
from tests.support.brokers import Serve
from tests.support.java import java
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.jvm

KEYS_EACH = 250_000
PARTITIONS = 97


class Keys(NamedTuple):
    columns: list[Any]
    """One column of each type."""
    path: Path
    """A file with these keys in the driver's format."""

    def partitions(self, count: int) -> list[int]:
        columns = (kernels.partitions(column, count).to_pylist() for column in self.columns)
        return [partition for column in columns for partition in column]


def texts(source: random.Random) -> list[str]:
    """Return texts of 0 to 20 characters; each character has one to four bytes."""
    alphabet = "abcXYZ019-_.é߿ࠀ€😀\u0000"
    return ["".join(source.choices(alphabet, k=source.randrange(21))) for _ in range(KEYS_EACH)]


def lines(tag: bytes, keys: list[bytes]) -> bytes:
    return b"".join(tag + struct.pack(">i", len(key)) + key for key in keys)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    source = random.Random(7)
    strings = texts(source)
    binaries = [source.randbytes(source.randrange(64)) for _ in range(KEYS_EACH)]
    ints = [source.randrange(-(2**31), 2**31) for _ in range(KEYS_EACH)]
    longs = [source.randrange(-(2**63), 2**63) for _ in range(KEYS_EACH)]
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_bytes(
        lines(b"s", [text.encode() for text in strings])
        + lines(b"b", binaries)
        + b"".join(struct.pack(">ci", b"i", number) for number in ints)
        + b"".join(struct.pack(">cq", b"l", number) for number in longs)
    )
    columns = [
        pa.array(strings, pa.string()),
        pa.array(binaries, pa.binary()),
        pa.array(ints, pa.int32()),
        pa.array(longs, pa.int64()),
    ]
    return Keys(columns, path)


def read(path: Path) -> list[int]:
    data = path.read_bytes()
    return list(struct.unpack(f">{len(data) // 4}i", data))


@pytest.mark.parametrize("count", [1, PARTITIONS, 2**31 - 1])
def test_kernel_agrees_with_java_utils(keys: Keys, tmp_path: Path, count: int) -> None:
    java("Driver", "partitions", str(count), str(keys.path), str(tmp_path / "out"))
    assert read(tmp_path / "out") == keys.partitions(count)


@pytest.fixture
def bootstrap(serve: Serve) -> Iterator[str]:
    with serve() as broker:
        broker.create_topic("keyed", partitions=PARTITIONS)
        yield broker.bootstrap_servers


def test_java_producer_partitions_keys_as_the_kernel_does(
    keys: Keys, tmp_path: Path, bootstrap: str
) -> None:
    java("Driver", "place", bootstrap, "keyed", str(keys.path), str(tmp_path / "out"))
    wanted = keys.partitions(PARTITIONS)
    assert read(tmp_path / "out") == wanted
    assert stored(bootstrap) == Counter(wanted)


def stored(bootstrap: str) -> dict[int, int]:
    """Return the number of records in each partition on the broker."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    ends = {
        partition: consumer.get_watermark_offsets(
            TopicPartition("keyed", partition), timeout=PATIENCE_S
        )[1]
        for partition in range(PARTITIONS)
    }
    consumer.close()
    return ends
