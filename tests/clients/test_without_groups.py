"""What clients do while there are no consumer groups: without one they read, with one they fail at once and say why."""

import asyncio
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

SESSION_TIMEOUT_MS = 300_000
"""How long librdkafka's commit would wait for a coordinator: longer than a test may take."""
POLL_S = 60.0


@pytest.fixture
def topic(kafka_topic: str, kafka_bootstrap_servers: str) -> str:
    producer = Producer({"bootstrap.servers": kafka_bootstrap_servers})
    producer.produce(kafka_topic, b"value")
    assert producer.flush(POLL_S) == 0
    return kafka_topic


@pytest.fixture
def consumer(kafka_bootstrap_servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka_bootstrap_servers,
            "group.id": "group",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "max.poll.interval.ms": SESSION_TIMEOUT_MS,
            "auto.offset.reset": "earliest",
        }
    )


def test_confluent_kafka_reads_what_it_assigns_and_closes_at_once(
    topic: str, consumer: Consumer
) -> None:
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(POLL_S)
    assert message is not None
    assert message.value() == b"value"
    started = time.monotonic()
    consumer.close()  # commits, which is refused
    assert time.monotonic() - started < SESSION_TIMEOUT_MS / 1000 / 10


def test_confluent_kafka_is_refused_a_commit_at_once(topic: str, consumer: Consumer) -> None:
    with pytest.raises(KafkaException) as caught:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    assert caught.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE
    consumer.close()


def test_confluent_kafka_is_refused_a_subscription_at_once(topic: str, consumer: Consumer) -> None:
    consumer.subscribe([topic])
    message = consumer.poll(POLL_S)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._UNSUPPORTED_FEATURE
    consumer.close()


@pytest.mark.parametrize("group", [None, "group"])
def test_kafka_python_reads_without_a_group_and_names_what_is_missing_with_one(
    topic: str, kafka_bootstrap_servers: str, group: str | None
) -> None:
    import kafka
    from kafka.errors import IncompatibleBrokerVersion

    client = kafka.KafkaConsumer(
        bootstrap_servers=kafka_bootstrap_servers, group_id=group, auto_offset_reset="earliest"
    )
    client.assign([kafka.TopicPartition(topic, 0)])
    if group is None:
        ((record,),) = client.poll(timeout_ms=POLL_S * 1000).values()
        assert record.value == b"value"
    else:
        with pytest.raises(IncompatibleBrokerVersion, match="OffsetFetch"):
            client.poll(timeout_ms=POLL_S * 1000)
    client.close(autocommit=False)


@pytest.mark.parametrize("group", [None, "group"])
def test_aiokafka_reads_without_a_group_and_names_what_is_missing_with_one(
    topic: str, kafka_bootstrap_servers: str, group: str | None
) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import IncompatibleBrokerVersion
    from aiokafka.structs import TopicPartition as Partition

    async def first_value() -> bytes:
        client = AIOKafkaConsumer(
            bootstrap_servers=kafka_bootstrap_servers, group_id=group, auto_offset_reset="earliest"
        )
        client.assign([Partition(topic, 0)])
        await client.start()
        try:
            record = await asyncio.wait_for(client.getone(), POLL_S)
            return bytes(record.value)
        finally:
            await client.stop()

    if group is None:
        assert asyncio.run(first_value()) == b"value"
    else:
        with pytest.raises(IncompatibleBrokerVersion, match="OffsetFetch"):
            asyncio.run(first_value())
