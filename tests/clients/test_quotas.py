"""A client above its byte rate is throttled, and no other one; quotas survive a restart."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, ThrottleEvent, TopicPartition

from pykafka_core.protocol.messages import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

WINDOWS = {"quota.window.num": "2"}
RATE = 100_000
"""Also the possible burst: the bytes of all windows but one."""
RECORD = b"x" * 30_000
COUNT = 6
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"


def limit(bootstrap: str, client_id: str, key: str) -> None:
    request = AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[request.OpData(key=key, value=float(RATE))],
    )
    with Connection(bootstrap.split(",")[0]) as connection:
        response = connection.ask(49, 1, request(entries=[entry]))
    assert [entry.error_code for entry in response.entries] == [0]


class Client:
    """Settings of a client, and its throttle times."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        self.throttled_s: list[float] = []
        self.settings = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "throttle_cb": self._note,
        }

    def _note(self, event: ThrottleEvent) -> None:
        if event.throttle_time > 0:
            self.throttled_s.append(event.throttle_time)

    def produce(self, topic: str) -> float:
        """Return the duration in seconds."""
        producer = Producer(self.settings | {"batch.num.messages": 1})
        producer.list_topics(topic, timeout=PATIENCE_S)
        begun = time.monotonic()
        for _ in range(COUNT):
            producer.produce(topic, RECORD, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        return time.monotonic() - begun

    def consume(self, topic: str) -> float:
        """Return the duration in seconds."""
        consumer = Consumer(self.settings)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        begun = time.monotonic()
        for _ in range(COUNT):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
        consumer.close()
        return time.monotonic() - begun


@pytest.fixture(scope="module")
def bootstrap(serve: Serve) -> Iterator[str]:
    with serve(config=WINDOWS) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(("verb", "key"), [("produce", PRODUCER), ("consume", CONSUMER)])
def test_only_the_client_over_its_rate_is_throttled(bootstrap: str, verb: str, key: str) -> None:
    limit(bootstrap, f"slow-{key}", key)
    slow, other = Client(bootstrap, f"slow-{key}"), Client(bootstrap, f"other-{key}")
    other.produce(key)
    elapsed_s = getattr(slow, verb)(key)
    assert slow.throttled_s
    assert elapsed_s >= 0.5
    getattr(other, verb)(key)
    assert other.throttled_s == []


def test_limit_holds_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path, config=WINDOWS) as broker:
        limit(broker.bootstrap_servers, "slow", PRODUCER)
    with serve(tmp_path, config=WINDOWS) as broker:
        with Connection(broker.bootstrap_servers.split(",")[0]) as connection:
            response = connection.ask(48, 1, DescribeClientQuotasRequest())
        [entry] = response.entries
        assert [(value.key, value.value) for value in entry.values] == [(PRODUCER, RATE)]
        slow = Client(broker.bootstrap_servers, "slow")
        slow.produce("orders")
        assert slow.throttled_s
        assert broker.statistics()["clients_throttled"] > 0
