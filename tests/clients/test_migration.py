"""A group of librdkafka changes its protocol and back: nothing is lost, nothing is read twice."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S, POLL_S

PARTITIONS, RECORDS = 6, 120
CLASSIC = {"group.protocol": "classic", "heartbeat.interval.ms": 200, "session.timeout.ms": 6000}
CONSUMER = {"group.protocol": "consumer"}


class Member:
    """One member. It commits its records before it gives a partition up, and when it leaves."""

    def __init__(self, bootstrap: str, topic: str, settings: dict[str, object]) -> None:
        self.seen: Counter[bytes] = Counter()
        common = {"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0}
        reads = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer(common | reads | settings)
        self._consumer.subscribe([topic], on_revoke=self._revoked)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.commit()

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() not in ("_NO_OFFSET", "REBALANCE_IN_PROGRESS"):
                raise

    def poll(self) -> None:
        for message in self._consumer.consume(100, POLL_S):
            if message.error() is None:
                self.seen[message.value() or b""] += 1

    @property
    def partitions(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def leave(self) -> None:
        self.commit()
        self._consumer.close()


class Group:
    """Members that join and leave, and all records that they have seen."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self.members: list[Member] = []
        self._gone: Counter[bytes] = Counter()
        self._written = 0
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def join(self, settings: dict[str, object]) -> None:
        self.members.append(Member(self._bootstrap, self._topic, settings))

    def leave(self) -> None:
        """Remove the member that joined first."""
        member = self.members.pop(0)
        member.leave()
        self._gone += member.seen

    @property
    def seen(self) -> Counter[bytes]:
        return sum((member.seen for member in self.members), self._gone)

    def share(self) -> None:
        """Wait until each member has its share, and has read the records written until then."""
        for _ in range(RECORDS):
            number, self._written = self._written, self._written + 1
            self._producer.produce(self._topic, b"%d" % number, partition=number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0
        deadline, share = time.monotonic() + PATIENCE_S, PARTITIONS // len(self.members)
        while (
            any(len(member.partitions) != share for member in self.members)
            or len(self.seen) < self._written
        ):
            told = [(sorted(one.partitions), len(one.seen)) for one in self.members]
            assert time.monotonic() < deadline, (told, len(self.seen), self._written)
            for member in self.members:
                member.poll()
        owned = [number for member in self.members for number in member.partitions]
        assert sorted(owned) == list(range(PARTITIONS))
        for member in self.members:
            member.commit()


def group_type(bootstrap: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    [found] = [one for one in admin.list_consumer_groups().result().valid if one.group_id == topic]
    return str(found.type.name)


@pytest.fixture(scope="module")
def bootstrap(serve: Serve) -> Iterator[str]:
    quick = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "200",
    }
    with serve(config=quick) as broker:
        yield broker.bootstrap_servers


# After a rebalance, librdkafka's cooperative-sticky puts data into assignments; Kafka refuses such
# a group, too.
@pytest.mark.interval
@pytest.mark.parametrize(("strategy", "count"), [("cooperative-sticky", 1), ("range", 2)])
def test_group_migrates_to_the_other_protocol_and_back(
    bootstrap: str, strategy: str, count: int
) -> None:
    topic = f"orders-{strategy}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(PATIENCE_S)
    classic: dict[str, object] = {**CLASSIC, "partition.assignment.strategy": strategy}
    group = Group(bootstrap, topic)
    for _ in range(count):
        group.join(classic)
    group.share()
    assert group_type(bootstrap, topic) == "CLASSIC"
    for settings in (CONSUMER, classic):
        for _ in range(count):
            group.join(dict(settings))
            group.share()
            assert group_type(bootstrap, topic) == "CONSUMER"
            group.leave()
            group.share()
        kind = "CONSUMER" if settings is CONSUMER else "CLASSIC"
        assert group_type(bootstrap, topic) == kind
    assert group.seen.keys() == {b"%d" % number for number in range(len(group.seen))}
    twice = [value for value, count in group.seen.items() if count > 1]
    assert twice == []
    while group.members:
        group.leave()
