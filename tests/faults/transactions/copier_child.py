"""A process that copies one topic to another in transactions with librdkafka, until it is killed.

Usage: copier_child.py BOOTSTRAP INPUT OUTPUT TRANSACTIONAL_ID TIMEOUT_MS. The group is named after
the input topic.
"""

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.patience import PATIENCE_S, POLL_S

TRANSACTION_SIZE = 20
QUICK = {
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.max.ms": 200,
    "log_level": 0,
    # Without it, a transaction may wait forever for a dropped coordinator: librdkafka issue 5511.
    "metadata.recovery.strategy": "none",
}


def consumer_of(bootstrap: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 2000,
            "heartbeat.interval.ms": 300,
            **QUICK,
        }
    )
    consumer.subscribe([topic])
    return consumer


def producer_of(bootstrap: str, transactional_id: str, timeout_ms: int) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            **QUICK,
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def copy(consumer: Consumer, producer: Producer, records: list[Any], output: str) -> None:
    """Copy in one transaction; raise if it failed or its outcome is unknown."""
    producer.begin_transaction()
    for record in records:
        producer.produce(output, record.value(), record.key(), partition=record.partition())
        producer.poll(0)
    places = consumer.position(consumer.assignment())
    known = [place for place in places if place.offset >= 0]
    producer.send_offsets_to_transaction(known, consumer.consumer_group_metadata(), PATIENCE_S)
    producer.commit_transaction(PATIENCE_S)


def go_back(consumer: Consumer) -> None:
    """Seek to the committed offsets: the records read since then were not copied."""
    for place in consumer.committed(consumer.assignment(), PATIENCE_S):
        consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


def main(bootstrap: str, source: str, output: str, transactional_id: str, timeout_ms: str) -> None:
    producer = producer_of(bootstrap, transactional_id, int(timeout_ms))
    consumer = consumer_of(bootstrap, source)
    while True:
        records = [one for one in consumer.consume(TRANSACTION_SIZE, POLL_S) if one.error() is None]
        if not records:
            continue
        try:
            copy(consumer, producer, records, output)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(PATIENCE_S)
            go_back(consumer)


if __name__ == "__main__":
    main(*sys.argv[1:])
