"""Each test has its own topic on a broker that started in milliseconds."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from orders import place_order, spendings


@pytest.fixture
def producer(kafka_bootstrap_servers: str) -> Producer:
    """A producer as the service would make it."""
    return Producer({"bootstrap.servers": kafka_bootstrap_servers})


@pytest.fixture
def consumer(kafka_bootstrap_servers: str) -> Iterator[Consumer]:
    """A consumer that assigns its partitions itself."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_bootstrap_servers,
            "group.id": "unused",  # demanded by the client, though nothing is committed
            "enable.auto.commit": False,
        }
    )
    yield consumer
    consumer.close()


def test_spendings_add_up(producer: Producer, consumer: Consumer, kafka_topic: str) -> None:
    """Orders of two customers are summed apart."""
    for customer, cents in [("ada", 500), ("bob", 250), ("ada", 20)]:
        place_order(producer, kafka_topic, customer, cents)
    assert producer.flush(30) == 0
    assert spendings(consumer, kafka_topic) == {"ada": 520, "bob": 250}


def test_a_topic_starts_empty(consumer: Consumer, kafka_topic: str) -> None:
    """The records of other tests are not here."""
    assert spendings(consumer, kafka_topic) == {}
