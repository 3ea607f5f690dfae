"""The batches that a sink may refuse, and the records that it may skip, given the real events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.topic_partition import Range, TopicPartition
from tests.spark.sink.histories.cluster import Cluster, Record
from tests.spark.sink.histories.spark import Checkpoint, Frame, Spark


@dataclass
class Driver:
    """A process that runs the query: its checkpoint, and its state until it restarts."""

    checkpoint: Checkpoint
    sink: IdempotentSink
    group: str
    fails_on_data_loss: bool = True
    seen: dict[str, bytes] = field(default_factory=dict)
    """Ids of the topics at its first reads."""


class Rules(NamedTuple):
    """Rules for the driver's next batch; ``marks`` are its group's."""

    cluster: Cluster
    spark: Spark
    driver: Driver
    marks: Mapping[PartitionKey, int]

    def causes_to_refuse(self, frame: Frame) -> set[str]:
        """Return the reasons to refuse the batch; if empty, it must be accepted."""
        causes = {"streams differ"} if _differ(frame) else set()
        for place, planned in frame.places():
            present = self.cluster.ids.get(place[0])
            lives = {life.get(place[0], present) for life in (*frame.lives, self.driver.seen)}
            if place not in self.cluster.partitions or lives != {present}:
                causes.add("a topic was recreated, or is gone")
            elif planned.start > self._first_to_process(place, planned) and (
                self.driver.fails_on_data_loss or self._knows_another(place[0])
            ):
                causes.add("records would be passed over")
        return causes

    def left_out_by(self, frame: Frame) -> set[Record]:
        """Return the records that the group may skip if the batch is accepted.

        They result from the user's choices: the start; ``fail_on_data_loss=False``, unless an old
        checkpoint belongs to an earlier topic; and, for records deleted before Spark could read
        them, failOnDataLoss=false of the source. None of these is before a mark yet.
        """
        found: set[Record] = set()
        for place, planned in frame.places():
            if (partition := self.cluster.partitions.get(place)) is None:
                continue
            first = self._first_to_process(place, planned)
            goes_on_with_another = not self._is_new() and self._knows_another(place[0])
            if not self.driver.fails_on_data_loss and not goes_on_with_another:
                first = max(first, planned.start)
            mark = self.marks.get(self.cluster.key(place), 0)
            found |= partition.records(range(mark, min(first, planned.start)))
            if not self.spark.fails_on_data_loss:
                there = min(planned.end, partition.start)
                found |= partition.records(range(max(mark, planned.start), there))
        return found

    def _is_new(self) -> bool:
        """Return whether no batch of the checkpoint was done."""
        return self.driver.checkpoint.done == 0

    def _knows_another(self, topic: str) -> bool:
        """Return whether the group has read only earlier topics of this name."""
        lives = {key.topic_id for key in self.marks if key.topic == topic}
        return bool(lives) and self.cluster.ids[topic] not in lives

    def _first_to_process(self, place: TopicPartition, planned: Range) -> int:
        """Return the last offset at which a batch may start.

        Without a mark, the group's first batch of a topic may start anywhere. The first one of a
        partition added since, or of a new topic of this name, must start at the log start.
        """
        key = self.cluster.key(place)
        if key in self.marks or not self._is_new():
            return self.marks.get(key, 0)
        is_known = place[0] in {key.topic for key in self.marks}
        return self.cluster.partitions[place].start if is_known else planned.start


def _differ(frame: Frame) -> bool:
    """Return whether two streams share a partition of a topic and read different offsets of it."""
    for topic in {place[0] for place, _ in frame.places()}:
        of_topic = [
            {place: at for place, at in stream.items() if place[0] == topic}
            for stream in frame.streams
        ]
        reading = [ranges for ranges in of_topic if ranges]
        if any(ranges != reading[0] for ranges in reading):
            return True
    return False
