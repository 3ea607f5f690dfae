"""kill -9 while a group consumes: commits survive, and the group continues without losing a record.

`TORTURE_ROUNDS` sets the rounds (`make torture`: 50).
"""

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.patience import PATIENCE_S, POLL_S
from tests.support.processes.server import serving

pytestmark = pytest.mark.kill

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "3"))
PARTITIONS = 3
RECORDS_A_ROUND = 60
QUICK = {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200, "log_level": 0}


def write(bootstrap: str, topic: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUICK})
    for number in range(first, first + RECORDS_A_ROUND):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def consume_and_commit(consumer: Consumer, seen: set[int], count: int) -> None:
    """Consume until ``count`` records were seen; wait for the acknowledgement of each commit."""
    deadline = time.monotonic() + PATIENCE_S
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records"
        record = consumer.poll(POLL_S)
        if record is not None and record.error() is None:
            seen.add(int(record.value()))
    consumer.commit(asynchronous=False)


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    asking = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUICK})
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    try:
        return [place.offset for place in asking.committed(places, PATIENCE_S)]
    finally:
        asking.close()


def test_commits_survive_kill_9_and_the_member_continues(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0") as server:
        settings = {"bootstrap.servers": server.address, **QUICK}
        admin, new = AdminClient(settings), NewTopic("orders", PARTITIONS, 1)
        admin.create_topics([new])["orders"].result(PATIENCE_S)
        grouped = {"group.id": "group", "enable.auto.commit": False, "session.timeout.ms": 6000}
        consumer = Consumer(settings | grouped | {"auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        seen: set[int] = set()
        for round_number in range(ROUNDS):
            write(server.address, "orders", round_number * RECORDS_A_ROUND)
            consume_and_commit(consumer, seen, (round_number + 1) * RECORDS_A_ROUND)
            before = committed(server.address, "group", "orders")
            assert sum(before) == len(seen)
            server.kill()
            server.start()
            assert committed(server.address, "group", "orders") == before
        consumer.close()
        assert seen == set(range(ROUNDS * RECORDS_A_ROUND))
