"""A program that embeds a broker and does not handle Ctrl-C: `interrupted_child.py WAY END DATA`.

It prints a line when it is busy. END is ``with``, or ``exit`` if the interpreter's exit closes the
broker.
"""

import itertools
import sys
from collections.abc import Callable

from confluent_kafka import Producer

from pykafka_core import Broker
from tests.support.patience import PATIENCE_S, POLL_S

ENOUGH = 20
"""Number of completed steps when it prints that it is busy."""


def producer_of(broker: Broker) -> Producer:
    # Without log lines about the stopped broker. Without callbacks, because the client would drop a
    # KeyboardInterrupt in a callback.
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def produce_and_wait(broker: Broker) -> None:
    """Produce records one by one, each acknowledged."""
    broker.create_topic("orders", partitions=3)
    producer = producer_of(broker)
    for number in itertools.count():
        producer.produce("orders", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        say_busy_at(number)


def produce_ahead(broker: Broker) -> None:
    """Produce as many records as the client's queue accepts."""
    broker.create_topic("orders", partitions=3)
    producer = producer_of(broker)
    for number in itertools.count():
        try:
            producer.produce("orders", b"%d" % number)
        except BufferError:
            producer.poll(POLL_S)
        if number == ENOUGH:
            assert producer.flush(PATIENCE_S) == 0
        say_busy_at(number)


def create_topics(broker: Broker) -> None:
    """Create topics, which waits for the control thread."""
    for number in itertools.count():
        broker.create_topic(f"orders-{number}")
        say_busy_at(number)


def say_busy_at(number: int) -> None:
    if number == ENOUGH:
        print("busy", flush=True)


WAYS: dict[str, Callable[[Broker], None]] = {
    "produce and wait": produce_and_wait,
    "produce ahead": produce_ahead,
    "create topics": create_topics,
}

if __name__ == "__main__":
    way, end, data = sys.argv[1:]
    if end == "with":
        with Broker(data) as broker:
            WAYS[way](broker)
    else:
        WAYS[way](Broker(data))
