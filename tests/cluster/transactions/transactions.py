"""Actions of transactional clients on a cluster, with confluent-kafka."""

from collections.abc import Mapping

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from pykafka_core.coordinator.partitions import coordinator_partition
from tests.cluster.clients import leaders_of
from tests.support.patience import ATTEMPT_S, PATIENCE_S, eventually


def transactional_producer(bootstrap: str, name: str) -> Producer:
    """Return an initialised producer, which has fenced earlier ones of that id."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    return producer


def write(producer: Producer, topic: str, values: list[str]) -> None:
    """Produce one value to each partition, and wait for the acknowledgements."""
    failed: list[KafkaError] = []
    for partition, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=partition,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    if failed:
        raise KafkaException(failed[0])


def coordinator_of(bootstrap: str, topic: str, key: str) -> int:
    """Return the leader of the coordinator's partition."""
    leaders = leaders_of(bootstrap, topic)
    return leaders[coordinator_partition(key, len(leaders))]


def send_offsets(
    producer: Producer, bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]
) -> None:
    """Add offsets of a group, by partition, to the transaction."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, index, offset) for index, offset in offsets.items()]
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), PATIENCE_S)
    consumer.close()


def committed_offsets(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Return the committed offsets by partition, after all transactions there are decided."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, index) for index in range(partitions)]
    found = consumer.committed(places, PATIENCE_S)
    consumer.close()
    for place in found:
        assert place.error is None
    return {place.partition: place.offset for place in found if place.offset >= 0}


def read_committed(bootstrap: str, topic: str) -> list[str]:
    """Return the values of all partitions, sorted, once no transaction is open there."""
    eventually(lambda: _is_stable(bootstrap, topic))
    config = {"enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", **config})
    count = len(leaders_of(bootstrap, topic))
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(count)])
    values: list[str] = []
    at_end: set[int] = set()
    while len(at_end) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{len(at_end)} of {count} partitions were read"
        error = message.error()
        if error is None:
            values.append(message.value().decode())
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            at_end.add(message.partition())
    consumer.close()
    return sorted(values)


def _is_stable(bootstrap: str, topic: str) -> bool:
    """Return whether no transaction is open; False if a partition has no leader or moves."""
    try:
        return _ends(bootstrap, topic, "read_committed") == _ends(bootstrap, topic)
    except KafkaException:
        return False


def _ends(bootstrap: str, topic: str, level: str = "read_uncommitted") -> list[int]:
    """Return the last stable offset, or the high watermark, of each partition."""
    config = {"group.id": "readers", "isolation.level": level}
    consumer = Consumer({"bootstrap.servers": bootstrap, **config})
    ends = []
    for index in range(len(leaders_of(bootstrap, topic))):
        # librdkafka waits for a cached leader, even after the election of another one.
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, index), ATTEMPT_S)
        ends.append(end)
    consumer.close()
    return ends
