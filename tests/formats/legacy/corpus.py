"""The committed partitions of formats 0 and 1, with what Apache Kafka 4.2.1 says of them."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.formats.legacy.batches import Row

HERE: Final = Path(__file__).resolve().parent
DATA, EXPECTED = HERE / "data", HERE / "expected"
OLD_S: Final = 1_400_000_000
"""The time of the files of which `Case.list_offsets` speaks, in seconds."""


@dataclass(frozen=True)
class Case:
    """One partition directory, and the facts that README.md describes.

    Attributes:
        name: The topic; its only partition is 0.
        directory: The committed files. Tests that open them for writing use `copy_to`.
        facts: The JSON as it is.
    """

    name: str
    directory: Path
    facts: dict[str, Any]

    @property
    def records(self) -> list[Row]:
        """The records that the Java consumer returns."""
        return rows(self.facts["records"])

    @property
    def compacted(self) -> list[Row] | None:
        """The records after Kafka compacted the partition; None where its cleaner fails."""
        after = self.facts["after_compaction"]
        return None if after is None else rows(after["records"])

    @property
    def list_offsets(self) -> dict[int | str, tuple[int, int]]:
        """Offset and timestamp that ListOffsets returns for a time, ``earliest``, ``latest``, …"""
        return {asked: (offset, at) for asked, offset, at in self.facts["list_offsets"]["old"]}

    def copy_to(self, folder: Path, modified_s: float = OLD_S) -> Path:
        """Copy the directory into a folder; the files get a time of modification, which counts."""
        copied = folder / self.directory.name
        shutil.copytree(self.directory, copied, copy_function=shutil.copyfile)
        for file in copied.iterdir():
            os.utime(file, (modified_s, modified_s))
        return copied


def cases() -> Iterator[Case]:
    """Every partition of the corpus, by name."""
    for file in sorted(EXPECTED.glob("*.json")):
        yield Case(file.stem, DATA / f"{file.stem}-0", json.loads(file.read_text()))


def case(name: str) -> Case:
    """The partition of that name."""
    return next(found for found in cases() if found.name == name)


def rows(records: list[list[Any]]) -> list[Row]:
    """Records of the JSON without their headers, which formats 0 and 1 do not have."""
    return [
        Row(offset, timestamp, kind, _bytes(key), _bytes(value))
        for offset, timestamp, kind, key, value, _headers in records
    ]


def untyped(records: list[Row]) -> list[Row]:
    """The records without the type of a timestamp where they have none."""
    return [row._replace(timestamp_type="") if row.timestamp < 0 else row for row in records]


def first_at_least(records: list[Row], timestamp: int) -> tuple[int, int]:
    """Offset and timestamp of the first record that is not older; -1 and -1 without one.

    Kafka looks into the first segment alone whose newest timestamp is not older, and takes the time
    of the file for that of a segment of format 0 or without a time index: it finds nothing where
    later segments have one.
    """
    return next(
        ((row.offset, row.timestamp) for row in records if row.timestamp >= timestamp), (-1, -1)
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def dumped(facts: dict[str, Any]) -> str:
    """The facts as JSON with a line for each element of the longer lists."""
    lines = []
    for key, value in facts.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item) for item in value)
            lines.append(f'"{key}": [\n  {items}\n ]')
        else:
            lines.append(f'"{key}": {json.dumps(value)}')
    return "{" + ",\n ".join(lines) + "}\n"
