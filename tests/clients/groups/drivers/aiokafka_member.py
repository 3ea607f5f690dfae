"""aiokafka's consumer."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.clients.groups.drivers.loop import own, run, settings, tell
from tests.support.patience import POLL_MS

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "round-robin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports the owned partitions; all of them are revoked before each rebalance."""

    def __init__(self) -> None:
        self.owned: set[int] = set()

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.owned = set()
        own("revoked", self.owned)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.owned = {place.partition for place in assigned}
        own("assigned", self.owned)


class Aiokafka:
    """Blocking calls on the client's loop, which runs during `poll`; heartbeats need only that."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.topic = given["topic"]
        self.listener = Listener()
        self.loop = asyncio.new_event_loop()
        self.consumer = self.loop.run_until_complete(self._start(given))

    async def _start(self, given: dict[str, Any]) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=given["bootstrap"],
            group_id=given["group"],
            group_instance_id=given["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=given["session_ms"],
            heartbeat_interval_ms=500,
            partition_assignment_strategy=[ASSIGNORS[given["strategy"]]],
        )
        consumer.subscribe([self.topic], listener=self.listener)
        await consumer.start()
        return consumer

    def poll(self) -> None:
        found = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=POLL_MS))
        for records in found.values():
            for one in records:
                value = one.value.decode()
                tell("record", partition=one.partition, offset=one.offset, value=value)

    def commit(self) -> None:
        self.loop.run_until_complete(self.consumer.commit())

    def seek(self, partition: int, offset: int) -> None:
        self._call(lambda: self.consumer.seek(TopicPartition(self.topic, partition), offset))

    def pause(self, partition: int) -> None:
        self._call(lambda: self.consumer.pause(TopicPartition(self.topic, partition)))

    def resume(self, partition: int) -> None:
        self._call(lambda: self.consumer.resume(TopicPartition(self.topic, partition)))

    def _call(self, plain: Callable[[], None]) -> None:
        """Run a function in the loop: calls that do not wait need a running loop, too."""

        async def run_plain() -> None:
            plain()

        self.loop.run_until_complete(run_plain())

    def lag(self) -> dict[int, int]:
        return self.loop.run_until_complete(self._lag())

    async def _lag(self) -> dict[int, int]:
        places = [TopicPartition(self.topic, partition) for partition in self.listener.owned]
        ends = await self.consumer.end_offsets(places)
        return {
            place.partition: ends[place] - (await self.consumer.committed(place) or 0)
            for place in places
        }

    def close(self) -> None:
        self.loop.run_until_complete(self.consumer.stop())


if __name__ == "__main__":
    run(Aiokafka(settings()))
