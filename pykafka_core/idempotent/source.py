"""The Kafka side of an idempotent consumer: assigned partitions of a confluent-kafka client.

No group coordinator is used, and no offset is committed to Kafka. Topic ids come from an admin
client. They are requested *after* a batch was polled: topic ids are never reused, so an id that is
equal before and after the poll belongs to every record of the batch.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pykafka_core.errors import ConsumerError
from pykafka_core.idempotent.ids import Record
from pykafka_core.idempotent.ledger import PartitionKey
from pykafka_core.types import ZERO_ID

TopicPartition = tuple[str, int]
"""Topic name and partition, as in records."""


class KafkaSource:
    """The assigned partitions of some topics.

    Args:
        consumer: A ``confluent_kafka.Consumer`` that is not polled, sought or assigned elsewhere.
        admin: A ``confluent_kafka.admin.AdminClient`` of the same cluster.
        topics: Topic names.
        partitions: These partitions of each topic; None means all, including later ones.
        request_timeout_s: Timeout of each request to the broker.

    Raises:
        ImportError: confluent-kafka is not installed.
    """

    def __init__(
        self,
        consumer: Any,
        admin: Any,
        topics: Sequence[str],
        partitions: Collection[int] | None,
        request_timeout_s: float,
    ) -> None:
        self._kafka = _confluent_kafka()
        self._consumer, self._admin = consumer, admin
        self._topics, self._partitions = list(topics), partitions
        self._timeout_s = request_timeout_s

    def keys(self) -> dict[TopicPartition, PartitionKey]:
        """Request the existing partitions from the broker.

        Raises:
            ConsumerError: The request failed, or a topic or partition does not exist.
        """
        with self._errors("the topics' ids"):
            topics = self._kafka.TopicCollection(self._topics)
            asked = self._admin.describe_topics(topics, request_timeout=self._timeout_s)
            described = [future.result() for future in asked.values()]
        keys: dict[TopicPartition, PartitionKey] = {}
        for topic in described:
            topic_id = _id_bytes(topic.topic_id)
            for number in self._chosen(topic):
                keys[topic.name, number] = PartitionKey(topic_id, topic.name, number)
        return keys

    def _chosen(self, topic: Any) -> list[int]:
        there = [partition.id for partition in topic.partitions]
        missing = set(self._partitions or ()) - set(there)
        if missing:
            raise ConsumerError(f"topic {topic.name} has no partitions {sorted(missing)}")
        return [
            number for number in there if self._partitions is None or number in self._partitions
        ]

    def refresh(self) -> None:
        """Refresh the client's metadata, so that it includes new partitions."""
        with self._errors("the topics' partitions"):
            for topic in self._topics:
                self._consumer.list_topics(topic, timeout=self._timeout_s)

    def watermarks(self, key: PartitionKey) -> tuple[int, int]:
        """Return log start and end (exclusive; subject to the consumer's isolation level)."""
        with self._errors(f"the offsets of {key.topic}-{key.partition}"):
            place = self._kafka.TopicPartition(key.topic, key.partition)
            first, end = self._consumer.get_watermark_offsets(place, timeout=self._timeout_s)
            return first, end

    def assign(self, marks: Mapping[PartitionKey, int]) -> None:
        """Continue from these offsets; records that were fetched before are dropped."""
        places = [
            self._kafka.TopicPartition(key.topic, key.partition, mark)
            for key, mark in marks.items()
        ]
        with self._errors("records"):
            self._consumer.assign(places)

    def poll(self, records_max: int, timeout_s: float) -> list[Record]:
        """Wait for a first record, then return all available ones.

        Raises:
            ConsumerError: The client reported an error; no record is returned.
        """
        with self._errors("records"):
            records = self._consumer.consume(1, timeout=timeout_s)
            if records and records_max > 1:
                records += self._consumer.consume(records_max - 1, timeout=0)
        for record in records:
            error = record.error()
            if error is not None and error.code() != self._kafka.KafkaError._PARTITION_EOF:
                raise ConsumerError(f"cannot read {record.topic()}-{record.partition()}: {error}")
        return [record for record in records if record.error() is None]

    @contextmanager
    def _errors(self, wanted: str) -> Generator[None]:
        try:
            yield
        except (self._kafka.KafkaException, TimeoutError) as error:
            raise ConsumerError(
                f"the broker did not give {wanted}: {error}; nothing was processed, try again"
            ) from error


def _confluent_kafka() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise ImportError(
            "IdempotentConsumer needs confluent-kafka: pip install 'pykafka_core[idempotent]'"
        ) from error
    return confluent_kafka


def _id_bytes(uuid: Any) -> bytes:
    """Convert a ``confluent_kafka.Uuid`` to 16 bytes; it is None for brokers without topic ids."""
    if uuid is None:
        return ZERO_ID
    halves = (uuid.get_most_significant_bits(), uuid.get_least_significant_bits())
    return b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
