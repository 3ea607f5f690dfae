"""A small service: takes orders, and adds up what each customer spent."""

import json
from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition


def place_order(producer: Producer, topic: str, customer: str, cents: int) -> None:
    """Send one order; its key keeps a customer's orders in their order."""
    producer.produce(topic, key=customer, value=json.dumps({"cents": cents}))


def spendings(consumer: Consumer, topic: str) -> Counter[str]:
    """Read all orders of a topic of one partition, and return each customer's sum in cents."""
    partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
    consumer.assign([partition])
    _, end = consumer.get_watermark_offsets(partition, timeout=30)
    totals: Counter[str] = Counter()
    seen = 0
    while seen < end:
        for message in consumer.consume(end - seen, timeout=10):
            if message.error():
                raise RuntimeError(message.error().str())
            totals[message.key().decode()] += json.loads(message.value())["cents"]
            seen += 1
    return totals
