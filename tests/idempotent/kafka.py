"""Clients for the consumer's tests, against a real broker."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from pykafka_core.idempotent import Batch, IdempotentConsumer
from pykafka_core.protocol.messages import MetadataRequest
from tests.support.patience import PATIENCE_S, eventually
from tests.support.wire import Connection

METADATA, METADATA_VERSION = 3, 12
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200}


def consumer_of(bootstrap: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            **QUIET,
            **settings,
        }
    )


def admin_of(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def make_topic(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = admin_of(bootstrap)  # it must exist until its futures complete
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(PATIENCE_S)
    wait_until_known(bootstrap, topic, partitions)


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = admin_of(bootstrap)
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    wait_until_known(bootstrap, topic, 0)


def add_partitions(bootstrap: str, topic: str, partitions: int) -> None:
    """Add partitions to a topic, up to this number."""
    admin = admin_of(bootstrap)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE_S)
    wait_until_known(bootstrap, topic, partitions)


def wait_until_known(bootstrap: str, topic: str, partitions: int) -> None:
    """Wait until the metadata of each node has the topic, because clients may use any node."""
    for address in bootstrap.split(","):
        with Connection(address) as node:
            eventually(partial(knows, node, topic, partitions))


def knows(node: Connection, topic: str, partitions: int) -> bool:
    """Return whether a node's metadata has this number of partitions; 0 means no such topic."""
    response = node.ask(METADATA, METADATA_VERSION, MetadataRequest(topics=None))
    return sum(len(one.partitions) for one in response.topics if one.name == topic) == partitions


def produce(bootstrap: str, topic: str, values: Sequence[str], *, partition: int = 0) -> None:
    """Produce values; each value is also the record's id, in the header ``id``."""
    failed: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for value in values:
        producer.produce(
            topic,
            value,
            partition=partition,
            headers=[("id", value.encode())],
            on_delivery=delivered,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def drain(consumer: IdempotentConsumer, polled: int) -> Batch:
    """Process exactly ``polled`` records; return the sums of all batches."""
    total = Batch()
    while total.polled < polled:
        total = _sum(total, consumer.process_batch(0.5))
    return _sum(total, consumer.process_batch(0.1))


def _sum(one: Batch, other: Batch) -> Batch:
    return Batch(*map(sum, zip(one, other, strict=True)))
