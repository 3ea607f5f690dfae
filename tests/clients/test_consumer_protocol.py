"""KIP-848 groups with librdkafka: members share a topic, take over, commit and resume."""

import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.patience import PATIENCE_S, POLL_S

PARTITIONS = 6
RECORDS = 60


class Member:
    """One member, and the records it has seen."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.seen: set[bytes] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        for message in self._consumer.consume(100, POLL_S):
            if message.error() is None:
                self.seen.add(message.value() or b"")

    @property
    def partitions(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def leave(self) -> None:
        self._consumer.close()


def poll_until_shared(members: list[Member]) -> None:
    """Poll until each member has its share, and together they have seen everything once."""
    share = PARTITIONS // len(members)
    deadline = time.monotonic() + PATIENCE_S
    while any(len(member.partitions) != share for member in members):
        assert time.monotonic() < deadline, [member.partitions for member in members]
        for member in members:
            member.poll()
    assert set.union(*(member.partitions for member in members)) == set(range(PARTITIONS))


def write(bootstrap: str, topic: str, first: int) -> set[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap})
    values = [b"%d" % number for number in range(first, first + RECORDS)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return set(values)


def poll_until_seen(members: list[Member], values: set[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while missing := values.difference(*(member.seen for member in members)):
        assert time.monotonic() < deadline, f"{len(missing)} of {len(values)} records are missing"
        for member in members:
            member.poll()


@pytest.mark.interval
@pytest.mark.parametrize("by_pattern", [False, True])
def test_consumer_members_share_partitions_take_over_and_continue(
    kafka_bootstrap_servers: str, kafka_topic: str, by_pattern: bool
) -> None:
    bootstrap, topic = kafka_bootstrap_servers, f"{kafka_topic}-shared"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(PATIENCE_S)
    named = f"^{topic[:-1]}[a-z]$" if by_pattern else topic
    before = write(bootstrap, topic, 0)
    first = Member(bootstrap, topic, named)
    poll_until_seen([first], before)
    first.commit()
    second = Member(bootstrap, topic, named)
    poll_until_shared([first, second])
    second.seen.clear()
    after = write(bootstrap, topic, RECORDS)
    poll_until_seen([first, second], before | after)
    assert not second.seen & before, "committed records are not read again"
    for member in (first, second):
        member.commit()
    first.leave()
    poll_until_shared([second])
    last = write(bootstrap, topic, 2 * RECORDS)
    poll_until_seen([second], last)
    assert not second.seen & before
    second.leave()
