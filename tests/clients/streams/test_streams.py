"""Kafka Streams, exactly once, is killed and restarted: its results are those of the input.

`STREAMS_KILLS` sets the number of kills (`make streams`: 10).
"""

import os
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.streams.programs import Program, running
from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S, POLL_S

pytestmark = [pytest.mark.jvm, pytest.mark.kill]

KILLS = int(os.environ.get("STREAMS_KILLS", "1"))
PARTITIONS = 2
WORDS = [f"word{number}" for number in range(50)]
ORDERS = 300
QUICK = {"log_level": 0, "reconnect.backoff.max.ms": 200}


class Input(threading.Thread):
    """Produces lines, orders and payments, in pieces until its end."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="input")
        self.words: Counter[str] = Counter()
        self.orders: list[str] = []
        self.stopping = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUICK})
        self._random = random.Random(1)

    def run(self) -> None:
        while not self.stopping.wait(POLL_S):
            self._piece()
        assert self._producer.flush(PATIENCE_S) == 0

    def _piece(self) -> None:
        for _ in range(20):
            words = self._random.choices(WORDS, k=5)
            self.words.update(words)
            self._producer.produce("lines", " ".join(words).encode())
        order = str(len(self.orders))
        self.orders.append(order)
        for topic in self._random.sample(["orders", "payments"], 2):
            self._producer.produce(topic, f"{topic}-{order}".encode(), key=order.encode())
        self._producer.poll(0)


def committed(bootstrap: str, topic: str) -> list[tuple[str, str]]:
    """Return keys and values of all committed records, in the order of each partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "nobody", **QUICK}
    wanted = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({**settings, **wanted})
    partitions = [TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(at, PATIENCE_S)[1] for at in partitions]
    consumer.assign(partitions)
    found: list[tuple[str, str]] = []
    ended, deadline = set[int](), time.monotonic() + PATIENCE_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"{topic} cannot be read"
        for message in consumer.consume(1000, POLL_S):
            # The last committed record is followed by markers, then by the end or newer records.
            if message.error() is not None or message.offset() >= ends[message.partition()]:
                ended.add(message.partition())
            else:
                found.append((message.key().decode(), message.value().decode()))
    consumer.close()
    return found


def wait_for_results(bootstrap: str, program: Program, count: int) -> None:
    """Wait until so many counts are committed."""
    deadline = time.monotonic() + PATIENCE_S
    while len(committed(bootstrap, "counts")) < count:
        program.check()
        assert time.monotonic() < deadline, "Streams makes no progress"
        time.sleep(0.1)


def totals(rows: list[tuple[str, str]]) -> dict[str, int]:
    """Return the last count of each word; each count must be larger than the one before."""
    last: dict[str, int] = {}
    for word, count in rows:
        assert int(count) > last.get(word, 0), (word, count, last[word])
        last[word] = int(count)
    return last


def wait_until_all_is_there(bootstrap: str, program: Program, given: Input) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        counted = totals(committed(bootstrap, "counts"))
        paid = committed(bootstrap, "paid")
        if counted == given.words and len(paid) >= len(given.orders):
            return
        program.check()
        assert time.monotonic() < deadline, (given.words - Counter(counted), len(paid))
        time.sleep(0.2)


def test_streams_counts_and_joins_exactly_once_after_any_kill(serve: Serve, tmp_path: Path) -> None:
    quick = {"group.initial.rebalance.delay.ms": 0}
    with serve(tmp_path / "data", durability="os", config=quick) as broker:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUICK})
        topics = ["lines", "orders", "payments", "counts", "paid"]
        made = admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics])
        for future in made.values():
            future.result(PATIENCE_S)
        state, given = tmp_path / "state", Input(bootstrap)
        program = Program("Pipelines", bootstrap, str(state), log=tmp_path / "streams.log")
        with running(program):
            given.start()
            try:
                seen = 0
                for number in range(KILLS):
                    wait_for_results(bootstrap, program, seen + 100)
                    program.kill()
                    if number % 3 == 1:
                        shutil.rmtree(state)
                    seen = len(committed(bootstrap, "counts"))
                    program.start()
                wait_for_results(bootstrap, program, seen + 100)
            finally:
                given.stopping.set()
                given.join(PATIENCE_S)
            wait_until_all_is_there(bootstrap, program, given)
        assert totals(committed(bootstrap, "counts")) == given.words
        wanted = Counter((order, f"orders-{order}+payments-{order}") for order in given.orders)
        assert Counter(committed(bootstrap, "paid")) == wanted
