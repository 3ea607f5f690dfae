"""confluent-kafka: librdkafka's consumer, in the classic or the consumer protocol."""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.clients.groups.drivers.loop import own, run, settings, tell
from tests.support.patience import PATIENCE_S, POLL_S


class Confluent:
    """Keeps the owned set, because cooperative callbacks have only the changes."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.topic = given["topic"]
        self.owned: set[int] = set()
        self.consumer = Consumer(_config(given))
        self.consumer.subscribe(
            [self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self) -> None:
        record = self.consumer.poll(POLL_S)
        if record is None:
            return
        if record.error() is not None:
            tell("error", text=str(record.error()))
            return
        value = record.value().decode()
        tell("record", partition=record.partition(), offset=record.offset(), value=value)

    def commit(self) -> None:
        self.consumer.commit(offsets=self._positions(), asynchronous=False)

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(self.topic, partition, offset))

    def pause(self, partition: int) -> None:
        self.consumer.pause([TopicPartition(self.topic, partition)])

    def resume(self, partition: int) -> None:
        self.consumer.resume([TopicPartition(self.topic, partition)])

    def lag(self) -> dict[int, int]:
        places = [TopicPartition(self.topic, partition) for partition in self.owned]
        return {
            place.partition: self.consumer.get_watermark_offsets(place, PATIENCE_S)[1]
            - max(place.offset, 0)
            for place in self.consumer.committed(places, PATIENCE_S)
        }

    def close(self) -> None:
        self.consumer.close()

    def _positions(self) -> list[TopicPartition]:
        places = [TopicPartition(self.topic, partition) for partition in self.owned]
        return [place for place in self.consumer.position(places) if place.offset >= 0]

    def _assigned(self, _: Consumer, places: list[TopicPartition]) -> None:
        self.owned |= {place.partition for place in places}
        own("assigned", self.owned)

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        self.owned -= {place.partition for place in places}
        own("revoked", self.owned)


def _config(given: dict[str, Any]) -> dict[str, Any]:
    config = {
        "bootstrap.servers": given["bootstrap"],
        "group.id": given["group"],
        "group.protocol": given["protocol"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if given["protocol"] == "classic":
        config["partition.assignment.strategy"] = given["strategy"].replace("round-", "round")
        config["session.timeout.ms"] = given["session_ms"]
        config["heartbeat.interval.ms"] = 500
    else:
        config["group.remote.assignor"] = given["strategy"]
    if given.get("instance"):
        config["group.instance.id"] = given["instance"]
    return config


if __name__ == "__main__":
    run(Confluent(settings()))
