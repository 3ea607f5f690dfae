"""Foreign clients' transactions: only committed records are read, an older producer is fenced."""

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.support.patience import PATIENCE_S


def transactional(bootstrap: str, name: str, **settings: object) -> Producer:
    given = {"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0}
    producer = Producer(given | settings)
    producer.init_transactions(PATIENCE_S)
    return producer


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Return the values of partition 0 at this isolation level, up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
        values.append(message.value() or b"")
    consumer.close()
    return values


def write(producer: Producer, topic: str, value: bytes) -> None:
    producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.interval
def test_only_committed_records_are_read(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    bootstrap, topic = kafka_bootstrap_servers, kafka_topic
    producer = transactional(bootstrap, topic)
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        write(producer, topic, value)
        (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_S)
    producer.begin_transaction()
    write(producer, topic, b"open")
    assert read(bootstrap, topic) == [b"a", b"c"]
    assert read(bootstrap, topic, "read_uncommitted") == [b"a", b"b", b"c", b"open"]
    producer.commit_transaction(PATIENCE_S)
    assert read(bootstrap, topic) == [b"a", b"c", b"open"]


def test_the_older_of_two_producers_is_fenced(
    kafka_bootstrap_servers: str, kafka_topic: str
) -> None:
    bootstrap, topic = kafka_bootstrap_servers, kafka_topic
    older = transactional(bootstrap, topic)
    older.begin_transaction()
    write(older, topic, b"lost")
    newer = transactional(bootstrap, topic)
    newer.begin_transaction()
    write(newer, topic, b"kept")
    newer.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException) as caught:
        older.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert read(bootstrap, topic) == [b"kept"]


def test_an_abandoned_transaction_is_aborted_after_its_timeout(
    kafka_bootstrap_servers: str, kafka_topic: str
) -> None:
    bootstrap, topic = kafka_bootstrap_servers, kafka_topic
    abandoned = transactional(bootstrap, topic, **{"transaction.timeout.ms": 1000})
    abandoned.begin_transaction()
    write(abandoned, topic, b"lost")
    plain = Producer({"bootstrap.servers": bootstrap})
    write(plain, topic, b"behind")
    deadline = time.monotonic() + PATIENCE_S
    while read(bootstrap, topic) != [b"behind"]:
        assert time.monotonic() < deadline, "the last stable offset does not move"


def test_read_offsets_are_committed_with_written_records(
    kafka_bootstrap_servers: str, kafka_topic: str
) -> None:
    bootstrap, topic = kafka_bootstrap_servers, kafka_topic
    plain = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        write(plain, topic, b"%d" % number)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    for commits, begins_at in ((False, b"0"), (True, b"0"), (True, b"5")):
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == begins_at
        producer = transactional(bootstrap, topic)
        producer.begin_transaction()
        place = TopicPartition(topic, 0, (message.offset() or 0) + 5)
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([place], group, PATIENCE_S)
        (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_S)
        consumer.close()
