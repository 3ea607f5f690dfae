"""``tools/prose_allowed.toml``: phrases that a file may contain, each with a reason."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from dataclasses import dataclass, field

from tools.guards.prose.text import Unit

FILE = "tools/prose_allowed.toml"
_KEYS = frozenset(("path", "phrase", "reason"))


class AllowListError(ValueError):
    """The file has entries that are invalid or unused; the text names each of them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A phrase that is not a fault in one file."""

    path: str
    phrase: str  # its words, in lower case, with single spaces
    index: int  # among the entries of the file, from 0


@dataclass
class Allowed:
    """The entries of the file, and those that matched so far."""

    entries: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))  # by path
    used: set[int] = field(default_factory=set)

    def covers(self, path: str, unit: Unit, start: int, end: int) -> bool:
        """Return whether an entry of `path` overlaps a hit from `start` to `end` (exclusive).

        The entry is marked as used.
        """
        for entry in self.entries.get(path, ()):
            text = " ".join(unit.source.lower().split())
            if _overlaps(entry.phrase, text, _flat_span(unit, start, end)):
                self.used.add(entry.index)
                return True
        return False

    def check_used(self) -> None:
        """Raise an AllowListError for unused entries, once all files have been read."""
        unused = [
            f'entry {entry.index + 1}, "{entry.phrase}" in {entry.path}: nothing needs it; remove it'
            for found in self.entries.values()
            for entry in found
            if entry.index not in self.used
        ]
        _raise(unused)


def load(text: str) -> Allowed:
    """Return the entries of the file's text.

    Raises:
        AllowListError: It is not TOML, has other tables, or an entry that lacks a key.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AllowListError(f"{FILE}: {error}") from None
    rows = document.pop("allow", [])
    if document or not isinstance(rows, list):
        raise AllowListError(f"{FILE}: holds [[allow]] tables and nothing else")
    _raise(
        [f"entry {index + 1}: {fault}" for index, row in enumerate(rows) if (fault := _fault(row))]
    )
    allowed = Allowed()
    for index, row in enumerate(rows):
        phrase = " ".join(row["phrase"].lower().split())
        allowed.entries[row["path"]].append(Entry(row["path"], phrase, index))
    return allowed


def _fault(row: object) -> str:
    """Return the fault of an entry, or "" if it is valid."""
    if not isinstance(row, dict) or row.keys() != _KEYS:
        return "it needs a path, a phrase and a reason, and no other key"
    empty = [key for key, value in row.items() if not isinstance(value, str) or not value.strip()]
    return f"its {' and '.join(empty)} must be a text that is not empty" if empty else ""


def _raise(faults: list[str]) -> None:
    if faults:
        raise AllowListError("\n".join(f"{FILE}: {fault}" for fault in faults))


def _flat_span(unit: Unit, start: int, end: int) -> tuple[int, int]:
    """Return a span of the source as one of its text with single spaces."""
    before = " ".join(unit.source[:start].split())
    matched = " ".join(unit.source[start:end].split())
    space = 1 if before and unit.source[start - 1].isspace() else 0
    first = len(before) + space
    return first, first + len(matched)


def _overlaps(phrase: str, text: str, span: tuple[int, int]) -> bool:
    at = text.find(phrase)
    while at >= 0:
        if at < span[1] and span[0] < at + len(phrase):
            return True
        at = text.find(phrase, at + 1)
    return False
