"""kafka-python's consumer."""

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.clients.groups.drivers.loop import own, run, settings, tell
from tests.support.patience import POLL_MS

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "round-robin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class KafkaPython(ConsumerRebalanceListener):  # type: ignore[misc]
    """The driver, and the listener that reports owned partitions."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.topic = given["topic"]
        self.owned: set[int] = set()
        self.next: dict[int, int] = {}
        self.consumer = KafkaConsumer(
            bootstrap_servers=given["bootstrap"],
            group_id=given["group"],
            group_instance_id=given["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=given["session_ms"],
            heartbeat_interval_ms=500,
            metadata_max_age_ms=1_000,
            partition_assignment_strategy=[ASSIGNORS[given["strategy"]]],
        )
        self.consumer.subscribe([self.topic], listener=self)
        # A member that joins without the topic's partitions rejoins when it has them; and it does
        # not request them while a response about other topics is in flight (3.0.12).
        self.consumer.topics()

    def poll(self) -> None:
        for records in self.consumer.poll(timeout_ms=POLL_MS).values():
            for one in records:
                self.next[one.partition] = one.offset + 1
                value = one.value.decode()
                tell("record", partition=one.partition, offset=one.offset, value=value)

    def commit(self) -> None:
        offsets = {
            TopicPartition(self.topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in self.next.items()
        }
        self.consumer.commit(offsets)

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(self.topic, partition), offset)

    def pause(self, partition: int) -> None:
        self.consumer.pause(TopicPartition(self.topic, partition))

    def resume(self, partition: int) -> None:
        self.consumer.resume(TopicPartition(self.topic, partition))

    def lag(self) -> dict[int, int]:
        places = [TopicPartition(self.topic, partition) for partition in self.owned]
        ends = self.consumer.end_offsets(places)
        return {
            place.partition: ends[place] - (self.consumer.committed(place) or 0) for place in places
        }

    def close(self) -> None:
        self.consumer.close(autocommit=False)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.owned |= {place.partition for place in assigned}
        own("assigned", self.owned)

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        gone = {place.partition for place in revoked}
        self.owned -= gone
        self.next = {part: offset for part, offset in self.next.items() if part not in gone}
        own("revoked", self.owned)

    on_partitions_lost = on_partitions_revoked


if __name__ == "__main__":
    run(KafkaPython(settings()))
