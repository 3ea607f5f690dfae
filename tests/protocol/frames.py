"""Recorded conversations of Kafka's clients with Apache Kafka 4.2.1, one frame at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pykafka_core.protocol import is_flexible

GOLDEN = Path(__file__).parent / "golden"
API_VERSIONS = 18


class Frame(NamedTuple):
    """A frame's body; ``left_over`` bytes of it lie behind the message."""

    is_request: bool
    api_key: int
    version: int
    body: bytes
    left_over: int


def frames() -> Iterator[Frame]:
    """All frames but those of ApiVersions 99, whose bodies are of a version that nobody knows."""
    for line in (GOLDEN / "conversations.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["version"] == 99:
            continue
        yield Frame(
            row["direction"] == "request",
            row["api_key"],
            row["version"],
            _body(row["direction"], row["api_key"], row["version"], bytes.fromhex(row["hex"])),
            row.get("left_over", 0),
        )


def _body(direction: str, api_key: int, version: int, frame: bytes) -> bytes:
    has_tags = is_flexible(api_key, version)
    if direction == "response":
        return frame[4 + (has_tags and api_key != API_VERSIONS) :]
    client_id = int.from_bytes(frame[8:10], "big", signed=True)
    return frame[10 + max(client_id, 0) + has_tags :]
