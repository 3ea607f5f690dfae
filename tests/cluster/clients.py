"""Actions of clients on a cluster, with confluent-kafka."""

import time
from collections.abc import Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from pykafka_core import Cluster
from tests.support.patience import PATIENCE_S, POLL_S, eventually


def create(bootstrap: str, name: str, *leaders: int) -> None:
    """Create a topic with one partition for each leader, whose only replica is there."""
    create_topic(
        bootstrap,
        NewTopic(name, len(leaders), replica_assignment=[[leader] for leader in leaders]),
    )


def create_topic(bootstrap: str, topic: NewTopic) -> None:
    """Create a topic, also if librdkafka learns of brokers during the first request."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    while True:
        try:
            admin.create_topics([topic])[topic.topic].result(PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._DESTROY_BROKER:
                raise
        else:
            return


def create_placed(cluster: Cluster, name: str, *replicas: list[int]) -> None:
    """Create a topic with a partition for each list of replicas; wait until every node has it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(name, len(replicas), replica_assignment=list(replicas))
    admin.create_topics([topic])[name].result(PATIENCE_S)
    eventually(lambda: all(name in broker.topics() for broker in cluster.brokers))


def leaders_of(bootstrap: str, name: str) -> list[int]:
    """Return each partition's leader, or -1. A node has a topic only soon after its creation."""
    return [partition.leader for partition in _partitions(bootstrap, name)]


def isr_of(bootstrap: str, name: str) -> list[list[int]]:
    """Return the ISR of each partition, sorted."""
    return [sorted(partition.isrs) for partition in _partitions(bootstrap, name)]


def replicas_of(bootstrap: str, name: str) -> list[list[int]]:
    """Return the replicas of each partition, sorted; both old and new ones of a reassignment."""
    return [sorted(partition.replicas) for partition in _partitions(bootstrap, name)]


def _partitions(bootstrap: str, name: str) -> list[PartitionMetadata]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found: list[PartitionMetadata] = []

    def is_known() -> bool:
        topic = admin.list_topics(name, PATIENCE_S).topics[name]
        found[:] = [topic.partitions[index] for index in sorted(topic.partitions)]
        return bool(found)

    eventually(is_known)
    return found


def produce(bootstrap: str, topic: str, values: Sequence[str]) -> None:
    """Produce the values to the partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    partitions = len(leaders_of(bootstrap, topic))
    failed: list[object] = []
    for place, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=place % partitions,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def consume(bootstrap: str, topic: str, count: int, rack: str = "") -> list[str]:
    """Return the values of all partitions, sorted."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "client.rack": rack}
    )
    partitions = range(len(leaders_of(bootstrap, topic)))
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    values: list[str] = []
    while len(values) < count:
        messages = consumer.consume(count, PATIENCE_S)
        assert messages, f"{len(values)} of {count} came"
        for message in messages:
            assert message.error() is None
            values.append(message.value().decode())
    consumer.close()
    return sorted(values)


def read_by_group(bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def create_replicated(bootstrap: str, name: str, partitions: int = 3, min_isr: int = 2) -> None:
    """Create a topic on three nodes."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"min.insync.replicas": str(min_isr)}
    topic = NewTopic(name, partitions, 3, config=config)
    admin.create_topics([topic])[name].result(PATIENCE_S)
