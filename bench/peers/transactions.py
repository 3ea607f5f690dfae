"""Consecutive transactions of one record each: by librdkafka, and by raw requests."""

import statistics
import time
from collections.abc import Sequence

from bench.peers.work import Figures, create_topic
from tests.faults.raw import NONE, find_coordinator
from tests.faults.writers import Transactions
from tests.support.wire import Connection

TRANSACTIONS = 1
"""Coordinator type of transactions."""
PRODUCE_VERSIONS = {1: 11, 2: 12}
"""By transaction version (KIP-890)."""
AGAIN = frozenset((48, 51))
"""INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS: the previous transaction's markers are pending."""


def by_requests(bootstrap: str, topic: str, version: int, count: int) -> Figures:
    """Start each transaction after the response to the last; retry requests that are too early."""
    create_topic(bootstrap, topic)
    with Connection(bootstrap) as connection:
        find_coordinator(connection, TRANSACTIONS, topic)
        producer, took = Transactions(connection, topic, version), []
        for _ in range(count):
            begun = time.perf_counter()
            _write(producer, connection)
            assert producer.end(connection, commits=True) == NONE
            took.append(time.perf_counter() - begun)
    return figures(took)


def by_librdkafka(bootstrap: str, topic: str, count: int) -> Figures:
    """Run transactions with librdkafka's producer, which adds partitions explicitly (version 1)."""
    from confluent_kafka import Producer

    create_topic(bootstrap, topic)
    settings = {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0}
    producer, took = Producer(settings), []
    producer.init_transactions(30)
    for _ in range(count):
        begun = time.perf_counter()
        producer.begin_transaction()
        producer.produce(topic, b"v" * 100)
        producer.commit_transaction(30)
        took.append(time.perf_counter() - begun)
    return figures(took)


def figures(took: Sequence[float]) -> Figures:
    """Return rate and latencies of transactions with these durations in seconds."""
    return {
        "transactions/s": len(took) / sum(took),
        "p50 s": statistics.median(took),
        "p99 s": sorted(took)[len(took) * 99 // 100],
    }


def _write(producer: Transactions, connection: Connection) -> None:
    if producer.version == 1:
        while (error := producer.name_the_partition(connection)) in AGAIN:
            pass
        assert error == NONE
    version = PRODUCE_VERSIONS[producer.version]
    while (error := producer.write(connection, 1, version).error_code) in AGAIN:
        pass
    assert error == NONE
