"""docs/reference/metrics.md: the metrics of a broker that has a topic and a group."""

import re
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition

from pykafka_core import Broker

from .tables import table

_INTRODUCTION = """# Metrics

The metrics of `serve --metrics HOST:PORT` at `/metrics`, and of `Broker.metrics()`, in Prometheus' text format.
`docs/guides/operations/monitor.md` describes the port. Written by `python -m tools.reference`; do not edit.

"""
_HEAD = re.compile(r"# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n\S+?(?:\{(.*)\})? \S+\n")
_LABEL = re.compile(r'(\w+)="')
_TIMEOUT_S = 10


def render() -> str:
    """Return the page."""
    return _INTRODUCTION + table(["Metric", "Type", "Labels", "Description"], _rows(_metrics()))


def _rows(text: str) -> Iterator[list[str]]:
    for name, description, kind, labels in sorted(_HEAD.findall(text)):
        names = ", ".join(f"`{label}`" for label in _LABEL.findall(labels))
        yield [f"`{name}`", kind, names, description]


def _metrics() -> str:
    """Return metrics with a series for each label: a metric without series has no lines."""
    with Broker() as broker:
        broker.create_topic("orders")
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        producer = Producer(servers)
        producer.produce("orders", b"order")
        if producer.flush(_TIMEOUT_S):
            raise TimeoutError("the broker did not acknowledge a record")
        consumer = Consumer(servers | {"group.id": "shipping"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        return broker.metrics()
