"""Kafka's verifiable consumer: it commits after each poll, and its JSON events are translated.

Arguments after the settings: the command that starts Java, with its class path.
"""

import json
import sys
from typing import Any

from tests.clients.groups.drivers.loop import own, run, settings, tell
from tests.clients.groups.drivers.tool import Tool, assignor


class Verifiable(Tool):
    """Keeps the owned set: in cooperative rebalances, events have only the changes."""

    def __init__(self, given: dict[str, Any], java: list[str]) -> None:
        self.owned: set[int] = set()
        self._committed: dict[int, int] = {}
        main = "org.apache.kafka.tools.VerifiableConsumer"
        super().__init__([*java, main, *_options(given)])

    def committed(self) -> dict[int, int]:
        return self._committed

    def take(self, line: str) -> None:
        if line.startswith("{"):
            event = json.loads(line)
            take = getattr(self, f"_{event['name']}", None)
            if take is not None:
                take(event)

    def _partitions_assigned(self, event: dict[str, Any]) -> None:
        self.owned |= {one["partition"] for one in event["partitions"]}
        own("assigned", self.owned)

    def _partitions_revoked(self, event: dict[str, Any]) -> None:
        gone = {one["partition"] for one in event["partitions"]}
        self.owned -= gone
        self.next = {part: offset for part, offset in self.next.items() if part not in gone}
        own("revoked", self.owned)

    def _record_data(self, event: dict[str, Any]) -> None:
        partition, offset = event["partition"], event["offset"]
        self.next[partition] = offset + 1
        tell("record", partition=partition, offset=offset, value=event["value"])

    def _offsets_committed(self, event: dict[str, Any]) -> None:
        if event["success"]:
            self._committed |= {one["partition"]: one["offset"] for one in event["offsets"]}


def _options(given: dict[str, Any]) -> list[str]:
    options = [
        *("--bootstrap-server", given["bootstrap"]),
        *("--topic", given["topic"], "--group-id", given["group"], "--verbose"),
        *("--group-protocol", given["protocol"]),
    ]
    if given["instance"]:
        options += ["--group-instance-id", given["instance"]]
    if given["protocol"] == "consumer":
        return [*options, "--group-remote-assignor", given["strategy"]]
    session = ["--session-timeout", str(given["session_ms"])]
    return [*options, "--assignment-strategy", assignor(given["strategy"]), *session]


if __name__ == "__main__":
    run(Verifiable(settings(), sys.argv[2:]))
