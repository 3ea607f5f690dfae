"""Expected contents of the internal topics: committed offsets and transactional producers."""

from collections.abc import Sequence
from random import Random

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.cluster.copies.histories import History, admin
from tests.faults.cluster.clusters import QUIET
from tests.faults.history import Anomaly
from tests.support.patience import PATIENCE_S

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
PARTITIONS = 3
"""Number of partitions of each internal topic, by the settings of the clusters."""
GROUPS = [f"group-{number}" for number in range(8)]
PRODUCERS = [f"producer-{number}" for number in range(4)]
COMMITS = 20
COMPACTED = {"min.cleanable.dirty.ratio": "0.01", "internal.segment.bytes": "4096"}


class Coordinators:
    """Clients of all partitions of both internal topics.

    Args:
        topic: Target of transactions, and the topic whose offsets are committed.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._committed: dict[str, list[int]] = {}

    def work(self, choice: Random, commits: int = COMMITS) -> list[Anomaly]:
        """Commit offsets of each group and transactions of each producer; return failures."""
        try:
            for group in GROUPS:
                self._commit(group, choice, commits)
            for name in PRODUCERS:
                self._transact(name, commits)
        except KafkaException as error:
            return [Anomaly("coordinator failed", str(error))]
        return []

    def _commit(self, group: str, choice: Random, commits: int) -> None:
        consumer = self._consumer(group)
        try:
            for _ in range(commits):
                offsets = [choice.randrange(1 << 40) for _ in range(self._partitions)]
                places = [
                    TopicPartition(self._topic, index, offset)
                    for index, offset in enumerate(offsets)
                ]
                consumer.commit(offsets=places, asynchronous=False)
                self._committed[group] = offsets
        finally:
            consumer.close()

    def _transact(self, name: str, commits: int) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": name, **QUIET}
        producer = Producer(settings)
        producer.init_transactions(PATIENCE_S)
        for _ in range(commits):
            producer.begin_transaction()
            for index in range(self._partitions):
                producer.produce(self._topic, b"value", b"key", index)
            producer.commit_transaction(PATIENCE_S)

    def lost(self) -> list[Anomaly]:
        """Return groups whose offsets are not the committed ones."""
        found = []
        for group, expected in self._committed.items():
            places = [TopicPartition(self._topic, index) for index in range(self._partitions)]
            consumer = self._consumer(group)
            try:
                offsets = [one.offset for one in consumer.committed(places, PATIENCE_S)]
            except KafkaException as error:
                found.append(Anomaly("offsets not read", f"{group}: {error}"))
                continue
            finally:
                consumer.close()
            if offsets != expected:
                found.append(Anomaly("lost offsets", f"{group}: {offsets}, expected {expected}"))
        return found

    def _consumer(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, **QUIET})

    def compact(self) -> None:
        """Configure the cleaner to compact internal topics as soon as a segment is full.

        Call it while they are small. Apache Kafka's followers reject a response to a fetch that is
        larger than a segment (RecordBatchTooLargeException), so they cannot copy older segments.
        """
        changed = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in COMPACTED.items()
        ]
        resources = [
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changed)
            for topic in (OFFSETS, TRANSACTIONS)
        ]
        client = admin(self._bootstrap)
        for response in client.incremental_alter_configs(resources).values():
            response.result(PATIENCE_S)


def internal_partitions(choice: Random, topic: str) -> Sequence[History]:
    """Return the partitions of an internal topic; only their replicas are used."""
    return [
        History(topic, index, Random(choice.getrandbits(64)), []) for index in range(PARTITIONS)
    ]
