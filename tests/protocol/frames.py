"""Recorded frames between Kafka's clients and Apache Kafka 4.2.1."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pykafka_core.protocol import is_flexible

GOLDEN = Path(__file__).parent / "golden"
API_VERSIONS = 18


class Frame(NamedTuple):
    """The body of a frame; its last ``left_over`` bytes follow the message."""

    is_request: bool
    api_key: int
    version: int
    body: bytes
    left_over: int


def frames() -> Iterator[Frame]:
    """Return all frames except those of ApiVersions 99, a version that does not exist."""
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
