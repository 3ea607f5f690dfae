"""A program that embeds a broker, works with it and knows nothing of Ctrl-C: `interrupted_child.py WAY END DATA`.

It says so when it is busy. END is ``with``, or ``exit``: the interpreter's end closes the broker then.
"""

import itertools
import sys
from collections.abc import Callable

from confluent_kafka import Producer

from pykafka_core import Broker
from tests.support.patience import PATIENCE_S, POLL_S

ENOUGH = 20
"""What is done at least when it says that it is busy."""


def producer_of(broker: Broker) -> Producer:
    # It need not tell that the broker went away. No callbacks: Ctrl-C in one of them is lost on the client.
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def produce_and_wait(broker: Broker) -> None:
    """One record after the other, each acknowledged."""
    broker.create_topic("orders", partitions=3)
    producer = producer_of(broker)
    for number in itertools.count():
        producer.produce("orders", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        say_busy_at(number)


def produce_ahead(broker: Broker) -> None:
    """As much as the client's queue takes."""
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
    """Ask the control thread, and wait for it."""
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
