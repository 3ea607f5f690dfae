"""Consumer groups of foreign clients: members share a topic, commit, leave, return and resume."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S, POLL_MS, POLL_S, exactly

PARTITIONS = 6
RECORDS = 60
STRATEGIES = ("range", "roundrobin", "cooperative-sticky")

Seen = dict[tuple[int, int], bytes]
"""Values by partition and offset."""


@pytest.fixture
def topic(kafka_topic: str, kafka_bootstrap_servers: str) -> str:
    """A separate topic with records in each partition."""
    name = f"{kafka_topic}-grouped"
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(PATIENCE_S)
    write(kafka_bootstrap_servers, name, 0, RECORDS)
    return name


def write(bootstrap: str, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


@contextmanager
def confluent(bootstrap: str, topic: str, **settings: object) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def poll_until(
    consumers: list[Consumer], is_done: Callable[[Seen, list[int]], bool]
) -> tuple[Seen, list[int]]:
    """Poll consumers in turn; return the values, and the number of partitions of each."""
    seen: Seen = {}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for consumer in consumers:
            record = consumer.poll(POLL_S)
            if record is not None:
                assert record.error() is None, record.error()
                place = record.partition(), record.offset()
                assert place not in seen, "no record comes twice"
                seen[place] = record.value()
        shares = [len(consumer.assignment()) for consumer in consumers]
        if is_done(seen, shares):
            return seen, shares
    raise AssertionError(f"{len(seen)} records, partitions {shares}")


@pytest.mark.interval
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_librdkafka_members_share_the_partitions_and_take_over_from_one_that_leaves(
    topic: str, kafka_bootstrap_servers: str, strategy: str
) -> None:
    settings = {"partition.assignment.strategy": strategy, "session.timeout.ms": 6000}
    bootstrap = kafka_bootstrap_servers
    with confluent(bootstrap, topic, **settings) as first:
        with confluent(bootstrap, topic, **settings) as second:
            both = [first, second]
            deadline = time.monotonic() + PATIENCE_S
            while (shares := sorted(len(one.assignment()) for one in both)) != [3, 3]:
                assert time.monotonic() < deadline, f"the shares are {shares}, not [3, 3]"
                for one in both:
                    one.poll(POLL_S)
            owned = [{part.partition for part in one.assignment()} for one in both]
            assert owned[0] | owned[1] == set(range(PARTITIONS))
            assert not owned[0] & owned[1]
        poll_until_owned(first, PARTITIONS)


def poll_until_owned(consumer: Consumer, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(owned := consumer.assignment()) < count:
        assert time.monotonic() < deadline, f"{len(owned)} of {count} partitions are assigned"
        consumer.poll(POLL_S)


def test_librdkafka_continues_after_its_committed_offsets(
    topic: str, kafka_bootstrap_servers: str
) -> None:
    with confluent(kafka_bootstrap_servers, topic) as consumer:
        seen, _ = poll_until([consumer], lambda seen, _: len(seen) == RECORDS)
        assert sorted(map(int, seen.values())) == list(range(RECORDS))
        consumer.commit(asynchronous=False)
    write(kafka_bootstrap_servers, topic, RECORDS, 6)
    with confluent(kafka_bootstrap_servers, topic) as consumer:
        seen, _ = poll_until([consumer], lambda seen, _: len(seen) == 6)
        assert sorted(map(int, seen.values())) == list(range(RECORDS, RECORDS + 6))


def test_static_librdkafka_member_returns_without_a_rebalance(
    topic: str, kafka_bootstrap_servers: str
) -> None:
    # The first member may read before the second one has joined.
    named = {"group.id": "static", "session.timeout.ms": 30_000, "enable.auto.commit": True}
    bootstrap = kafka_bootstrap_servers
    with confluent(bootstrap, topic, **named, **{"group.instance.id": "stays"}) as stays:
        with confluent(bootstrap, topic, **named, **{"group.instance.id": "returns"}) as returns:
            poll_until([stays, returns], lambda seen, shares: shares == [3, 3])
            before = sorted(part.partition for part in stays.assignment())
        with confluent(bootstrap, topic, **named, **{"group.instance.id": "returns"}) as returns:
            poll_until_owned(returns, 3)
            stays.poll(exactly(1.0, "a rebalance may not start"))
            assert sorted(part.partition for part in stays.assignment()) == before


def test_kafka_python_shares_commits_and_continues(
    topic: str, kafka_bootstrap_servers: str
) -> None:
    import kafka

    def values(count: int) -> list[int]:
        client = kafka.KafkaConsumer(
            bootstrap_servers=kafka_bootstrap_servers,
            group_id="kafka-python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            # A leader without the topic's metadata assigns nothing, and requests the metadata again
            # only after five minutes.
            assert client.partitions_for_topic(topic)
            client.subscribe([topic])
            found: list[int] = []
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count:
                assert time.monotonic() < deadline, f"{len(found)} of {count} records were read"
                for records in client.poll(timeout_ms=POLL_MS).values():
                    found += [int(record.value) for record in records]
            client.commit()
        finally:
            client.close(autocommit=False)
        return sorted(found)

    assert values(RECORDS) == list(range(RECORDS))
    write(kafka_bootstrap_servers, topic, RECORDS, 6)
    assert values(6) == list(range(RECORDS, RECORDS + 6))


def test_aiokafka_shares_commits_and_continues(topic: str, kafka_bootstrap_servers: str) -> None:
    from aiokafka import AIOKafkaConsumer

    async def values(count: int) -> list[int]:
        client = AIOKafkaConsumer(
            topic,
            bootstrap_servers=kafka_bootstrap_servers,
            group_id="aiokafka",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await client.start()
        try:
            found = [
                int((await asyncio.wait_for(client.getone(), PATIENCE_S)).value)
                for _ in range(count)
            ]
            await client.commit()
            return sorted(found)
        finally:
            await client.stop()

    assert asyncio.run(values(RECORDS)) == list(range(RECORDS))
    write(kafka_bootstrap_servers, topic, RECORDS, 6)
    assert asyncio.run(values(6)) == list(range(RECORDS, RECORDS + 6))


def test_groups_and_offsets_survive_a_restart(serve: Serve, tmp_path: Path) -> None:
    offsets = [TopicPartition("orders", index, 10 + index) for index in range(3)]
    for _ in range(3):
        with serve(tmp_path, config={"num.partitions": 3}) as broker:
            settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
            admin = AdminClient(settings)
            if "orders" not in admin.list_topics(timeout=PATIENCE_S).topics:
                new = NewTopic("orders", 3)
                admin.create_topics([new])["orders"].result(PATIENCE_S)
            consumer = Consumer(settings | {"group.id": "group", "enable.auto.commit": False})
            committed = consumer.committed(offsets, PATIENCE_S)
            if committed[0].offset >= 0:
                assert [part.offset for part in committed] == [part.offset for part in offsets]
            offsets = [TopicPartition("orders", p.partition, p.offset + 1) for p in offsets]
            consumer.commit(offsets=offsets, asynchronous=False)
            consumer.close()
    assert [part.offset for part in offsets] == [13, 14, 15]
