"""Topics as a list of records for each partition; the model remembers deleted ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from pykafka_core.errors import ConsumerError
from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink.topic_partition import Range, TopicPartition

TOPICS = ("a", "b")
LATE = "c"
"""Does not exist at first; a pattern matches it once it does."""

Record = tuple[bytes, int, int]
"""Topic id, partition and offset."""


@dataclass
class Partition:
    """``uid``, its topic's id and its number, distinguishes it from others of its name."""

    uid: tuple[bytes, int]
    start: int = 0
    ids: list[bytes] = field(default_factory=list)
    """The message id of each record, by offset."""

    @property
    def end(self) -> int:
        return len(self.ids)

    def records(self, offsets: Iterable[int]) -> set[Record]:
        return {(*self.uid, offset) for offset in offsets}


class Cluster:
    """Topics by name; ids are never reused. Callable as `TopicIds`."""

    def __init__(self) -> None:
        self._topic_ids, self._message_ids = count(1), count(1)
        self.ids: dict[str, bytes] = {}
        self.names: dict[bytes, str] = {}
        """Names of all topics that ever existed, by id."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.sent: list[bytes] = []
        """Every message id, once."""
        for topic in TOPICS:
            self.create(topic)
        for partition in self.partitions.values():
            self.produce(partition, 3)

    def create(self, topic: str) -> None:
        """Create a topic with one partition, and replace an existing one of this name."""
        self.delete(topic)
        self.ids[topic] = next(self._topic_ids).to_bytes(16, "big")
        self.names[self.ids[topic]] = topic
        self.grow(topic)

    def delete(self, topic: str) -> None:
        self.ids.pop(topic, None)
        for place in [place for place in self.partitions if place[0] == topic]:
            del self.partitions[place]

    def grow(self, topic: str) -> None:
        number = sum(place[0] == topic for place in self.partitions)
        self.partitions[topic, number] = Partition((self.ids[topic], number))

    def produce(self, partition: Partition, records: int) -> None:
        for _ in range(records):
            self.sent.append(b"%d" % next(self._message_ids))
            partition.ids.append(self.sent[-1])

    def produce_again(self, partition: Partition, which: int) -> None:
        """Add a record with an existing message id, like a producer's retry."""
        partition.ids.append(self.sent[which % len(self.sent)])

    def key(self, place: TopicPartition) -> PartitionKey:
        """Return the key of a partition that exists."""
        return PartitionKey(self.ids[place[0]], *place)

    def __call__(self, topics: Iterable[str]) -> Mapping[str, bytes]:
        if missing := sorted(set(topics) - self.ids.keys()):
            raise ConsumerError(f"no topics {missing}")
        return {topic: self.ids[topic] for topic in topics}

    def log_ranges(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, Range]:
        places = list(places)
        if missing := sorted(set(places) - self.partitions.keys()):
            raise ConsumerError(f"no partitions {missing}")
        there = {place: self.partitions[place] for place in places}
        return {place: Range(partition.start, partition.end) for place, partition in there.items()}
