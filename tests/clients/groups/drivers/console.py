"""Kafka's console consumer: it prints records, commits itself, and does not report its partitions.

So the broker is queried for its partitions and commits. Arguments after the settings: the command
that starts Java, with its class path.
"""

import os
import re
import sys
import time
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.clients.groups.drivers.loop import own, run, settings, tell
from tests.clients.groups.drivers.tool import Tool, assignor
from tests.support.patience import PATIENCE_S, exactly

LINE = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(.*)")
ASK_EVERY_S = exactly(0.2, "the interval of polls, not a bound")


class Console(Tool):
    """``client.id`` distinguishes the tool's member from the others of the group."""

    def __init__(self, given: dict[str, Any], java: list[str]) -> None:
        self.group = given["group"]
        self.client_id = f"console-{os.getpid()}"
        self.admin = AdminClient({"bootstrap.servers": given["bootstrap"]})
        self.owned: set[int] = set()
        self.ask_again = 0.0
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        super().__init__([*java, main, *_options(given, self.client_id)])

    def poll(self) -> None:
        super().poll()
        if time.monotonic() >= self.ask_again and not self.is_over:
            self.ask_again = time.monotonic() + ASK_EVERY_S
            self._ask()

    def take(self, line: str) -> None:
        if found := LINE.fullmatch(line):
            partition, offset = int(found[1]), int(found[2])
            self.next[partition] = offset + 1
            tell("record", partition=partition, offset=offset, value=found[3])

    def committed(self) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(self.group)]
        found = self.admin.list_consumer_group_offsets(asked)[self.group].result(PATIENCE_S)
        return {place.partition: place.offset for place in found.topic_partitions or ()}

    def _ask(self) -> None:
        described = self.admin.describe_consumer_groups([self.group])[self.group]
        group = described.result(PATIENCE_S)
        if group.state != ConsumerGroupState.STABLE:
            return
        owned = {
            place.partition
            for member in group.members
            if member.client_id == self.client_id
            for place in member.assignment.topic_partitions
        }
        if owned != self.owned:
            self.owned = owned
            self.next = {part: offset for part, offset in self.next.items() if part in owned}
            own("assigned", owned)


def _options(given: dict[str, Any], client_id: str) -> list[str]:
    properties = {
        "client.id": client_id,
        "group.protocol": given["protocol"],
        "partition.assignment.strategy": assignor(given["strategy"]),
        "session.timeout.ms": given["session_ms"],
        "heartbeat.interval.ms": 500,
        "auto.commit.interval.ms": 100,
    }
    if given["instance"]:
        properties["group.instance.id"] = given["instance"]
    options = ["--bootstrap-server", given["bootstrap"], "--topic", given["topic"]]
    options += ["--group", given["group"], "--from-beginning"]
    for name, value in properties.items():
        options += ["--command-property", f"{name}={value}"]
    for name in ("partition", "offset"):
        options += ["--formatter-property", f"print.{name}=true"]
    return options


if __name__ == "__main__":
    run(Console(settings(), sys.argv[2:]))
