"""Clients for the consumer's tests, against a real broker."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_core.idempotent import Batch, IdempotentConsumer

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
    admin = admin_of(bootstrap)  # It must outlive its answers.
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(60)


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = admin_of(bootstrap)
    admin.delete_topics([topic])[topic].result(60)


def produce(bootstrap: str, topic: str, values: Sequence[str], *, partition: int = 0) -> None:
    """Each value is also the record's id, in the header ``id``."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for value in values:
        producer.produce(topic, value, partition=partition, headers=[("id", value.encode())])
    assert producer.flush(60) == 0


def drain(consumer: IdempotentConsumer, polled: int) -> Batch:
    """Process so many records, and then nothing more; the sums."""
    total = Batch()
    while total.polled < polled:
        total = _sum(total, consumer.process_batch(0.5))
    return _sum(total, consumer.process_batch(0.1))


def _sum(one: Batch, other: Batch) -> Batch:
    return Batch(*map(sum, zip(one, other, strict=True)))
