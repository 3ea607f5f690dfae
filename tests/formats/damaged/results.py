"""The result of reading a partition."""

import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Rows = list[tuple[int, str]]
"""Offset and fingerprint of each record."""
Files = dict[str, bytes]

CRASH: Final = "crash"


@dataclass
class Result:
    """The result of a reader.

    Attributes:
        rows: The records, in order.
        error: Why it did not continue; None if it read to an end.
        report: Its messages about damage, if it read to an end nevertheless.
        sizes: The sizes of the segments afterwards, by file.
    """

    rows: Rows = field(default_factory=list)
    error: str | None = None
    report: str = ""
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def is_silent(self) -> bool:
        """Whether the partition was whole according to the reader."""
        return self.error is None and not self.report

    @property
    def has_crashed(self) -> bool:
        """Whether it raised an exception that does not belong to the project."""
        return self.error is not None and self.error.startswith(CRASH)


def row(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> tuple[int, str]:
    """A record with its fingerprint, as `legacy/kafka-4.2.1/Open.java` shows it."""
    md5 = hashlib.md5(struct.pack(">q", timestamp), usedforsecurity=False)
    for part in (key, value):
        md5.update(struct.pack(">i", -1 if part is None else len(part)))
        md5.update(part or b"")
    return offset, md5.hexdigest()[:8]


def files(folder: Path) -> Files:
    """The bytes of each file of a partition."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
