"""Group consumers of librdkafka."""

import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.peers.work import Figures, confluent_produce, create_topic

if TYPE_CHECKING:
    from confluent_kafka import Consumer

PATIENCE_S = 60


def first_records(bootstrap: str, topic: str, count: int) -> Figures:
    """Seconds until a single consumer in a new group has its first record."""
    confluent_produce(bootstrap, topic, 100, 1)
    took = []
    for number in range(count):
        with ExitStack() as closing:
            consumer = _consumer(bootstrap, f"{topic}-{number}", closing)
            begun = time.perf_counter()
            consumer.subscribe([topic])
            record = None
            while record is None or record.error():
                record = consumer.poll(0.05)
            took.append(time.perf_counter() - begun)
    return {"until the first record p50 s": statistics.median(took)}


def stable(bootstrap: str, topic: str, members: int, count: int) -> Figures:
    """Seconds until as many members as partitions join a new group and each has its partition."""
    create_topic(bootstrap, topic, members)
    took = [
        _until_stable(bootstrap, topic, f"{topic}-{number}", members) for number in range(count)
    ]
    return {"until stable p50 s": statistics.median(took)}


def _until_stable(bootstrap: str, topic: str, group_id: str, members: int) -> float:
    with ExitStack() as closing:
        consumers = [_consumer(bootstrap, group_id, closing) for _ in range(members)]
        begun = time.perf_counter()
        for consumer in consumers:
            consumer.subscribe([topic])
        while any(len(consumer.assignment()) != 1 for consumer in consumers):
            assert time.perf_counter() - begun < PATIENCE_S, "the group does not become stable"
            for consumer in consumers:
                consumer.poll(0.0001)
        return time.perf_counter() - begun


def _consumer(bootstrap: str, group_id: str, closing: ExitStack) -> "Consumer":
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"group.id": group_id})
    closing.callback(consumer.close)
    return consumer
