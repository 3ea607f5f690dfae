"""What a sink may refuse, and go on without, by what really happened to topics and checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink.places import Place, Range
from spark_udfs.sink.sink import IdempotentSink
from tests.spark.sink.histories.cluster import Cluster, Record
from tests.spark.sink.histories.spark import Checkpoint, Frame, Spark


@dataclass
class Driver:
    """A process that runs the query: its checkpoint, and what it knows until it starts again."""

    checkpoint: Checkpoint
    sink: IdempotentSink
    group: str
    fails_on_data_loss: bool = True
    seen: dict[str, bytes] = field(default_factory=dict)
    """Ids of the topics when it first read them."""


class Rules(NamedTuple):
    """For the driver's next batch; ``marks`` are its group's."""

    cluster: Cluster
    spark: Spark
    driver: Driver
    marks: Mapping[PartitionKey, int]

    def causes_to_refuse(self, frame: Frame) -> set[str]:
        """Why the batch could not be counted; empty: it must be accepted."""
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
        """What the group may go on without if the batch is accepted.

        What its user chose: where it begins; ``fail_on_data_loss=False``, unless an old checkpoint is of an earlier
        topic; and for what was deleted before Spark could read it, failOnDataLoss=false of the source. Nothing of this
        is before a mark yet.
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
        """Whether no batch of the checkpoint was done."""
        return self.driver.checkpoint.done == 0

    def _knows_another(self, topic: str) -> bool:
        """Whether the group read a topic of this name, and not the present one."""
        lives = {key.topic_id for key in self.marks if key.topic == topic}
        return bool(lives) and self.cluster.ids[topic] not in lives

    def _first_to_process(self, place: Place, planned: Range) -> int:
        """Where a batch must start, or before.

        Where the group has no mark, its first batch of a topic may start anywhere, and that of a partition which the
        topic has got since then, or of a new topic of this name, where the log starts.
        """
        key = self.cluster.key(place)
        if key in self.marks or not self._is_new():
            return self.marks.get(key, 0)
        is_known = place[0] in {key.topic for key in self.marks}
        return self.cluster.partitions[place].start if is_known else planned.start


def _differ(frame: Frame) -> bool:
    """Whether two streams read a topic, some partition of it both, and not the same offsets."""
    for topic in {place[0] for place, _ in frame.places()}:
        of_topic = [
            {place: at for place, at in stream.items() if place[0] == topic}
            for stream in frame.streams
        ]
        reading = [ranges for ranges in of_topic if ranges]
        if any(ranges != reading[0] for ranges in reading):
            return True
    return False
