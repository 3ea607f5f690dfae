"""Our kernels and every client place keys equally; the default is murmur2 & 0x7fffffff."""

from collections.abc import Iterator

import pytest

from pykafka_core import kernels
from pykafka_core.kernels import Partitioner
from tests.support.brokers import Serve
from tests.support.java import java
from tests.support.patience import PATIENCE_S

PARTITIONS = 12
KEYS = [f"key-{n * 7919}-{'é' * (n % 5)}".encode() for n in range(500)]


@pytest.fixture(scope="module")
def bootstrap(serve: Serve) -> Iterator[str]:
    with serve() as broker:
        for name in ("java", "kafka-python", "confluent"):
            broker.create_topic(name, partitions=PARTITIONS)
        yield broker.bootstrap_servers


def expected() -> dict[bytes, int]:
    from pykafka_core._core import partition_for_key

    return {key: partition_for_key(key, PARTITIONS) for key in KEYS}


@pytest.mark.jvm
def test_java_partitions_keys_as_our_kernel_does(bootstrap: str) -> None:
    import base64

    lines = "\n".join(f"-\t-\t{base64.b64encode(key).decode()}\t-" for key in KEYS)
    placed = [
        int(line.split()[0])
        for line in java("Driver", "produce", bootstrap, "java", stdin=lines).splitlines()
    ]
    assert dict(zip(KEYS, placed, strict=True)) == expected()


def test_kafka_python_partitions_keys_as_our_kernel_does(bootstrap: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    sent = {key: producer.send("kafka-python", key=key, value=b"v") for key in KEYS}
    placed = {key: future.get(timeout=PATIENCE_S).partition for key, future in sent.items()}
    producer.close()
    assert placed == expected()


# `*_random` places null keys at random; `consistent_random`, the default, also empty ones.
@pytest.mark.parametrize(
    ("theirs", "ours", "keys"),
    [
        ("murmur2", "murmur2", [b"", *KEYS]),
        ("murmur2_random", "murmur2", [b"", *KEYS]),
        ("consistent", "crc32", [b"", *KEYS]),
        ("consistent_random", "crc32", KEYS),
        ("fnv1a", "fnv1a", [b"", *KEYS]),
        ("fnv1a_random", "fnv1a", [b"", *KEYS]),
    ],
)
def test_librdkafka_partitions_keys_as_our_kernel_does(
    bootstrap: str, theirs: str, ours: Partitioner, keys: list[bytes]
) -> None:
    from confluent_kafka import Producer

    placed: dict[bytes, int] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": theirs})
    for key in keys:
        producer.produce(
            "confluent",
            b"v",
            key,
            on_delivery=lambda _, sent: placed.__setitem__(sent.key(), sent.partition()),
        )
    assert producer.flush(PATIENCE_S) == 0
    found = kernels.partitions(keys, PARTITIONS, ours).to_pylist()
    assert placed == dict(zip(keys, found, strict=True))
