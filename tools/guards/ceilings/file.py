"""Reading ``tools/ceilings.toml``, and writing it without losing its comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from tools.guards.tree import Tree

FILE = "tools/ceilings.toml"
BASE = "base"
RAISED = "raised"
HEADER = """\
# The highest figure that each guard of tools/guards accepts, by folder or crate. `make ceilings`
# writes lower ones, and refuses if a total rose. A commit that has to raise a total, such as a
# revert, adds a [[raised]] entry with measure, total, commit (its subject) and reason.

# The subjects of commits after this one are checked.
[base]
"""
"""The start of a new file."""

Table = Mapping[str, int]


_HASH = re.compile(r"[0-9a-f]{40}")


class CeilingsError(ValueError):
    """The file of ceilings cannot be read, or a change of it is refused."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An entry that permits one commit to raise the total of one measure."""

    measure: str
    total: int  # over all keys, as the commit stores it
    commit: str  # its subject
    reason: str

    @property
    def key(self) -> tuple[str, str]:
        """The identity of an entry; no two entries share it."""
        return self.measure, self.commit

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of the entry, and its lines in the file."""
        for key in _ENTRY:
            yield key, f"{key} = {_toml(getattr(self, key))}"

    def __str__(self) -> str:
        return "\n".join([f"  [[{RAISED}]]", *(f"  {line}" for _, line in self.rows())])


def _toml(value: str | int) -> str:
    """Return a value in TOML, whose strings are those of JSON, except for U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


_ENTRY: Mapping[str, type] = {"measure": str, "total": int, "commit": str, "reason": str}
"""The keys of an entry."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The content of the file."""

    base: str  # full hash of a commit; "" before the file exists
    tables: Mapping[str, Table]
    raised: Sequence[Raised] = ()


def load(tree: Tree) -> Ceilings:
    """Read the ceilings of a tree; a missing file has no tables.

    Raises:
        CeilingsError: The file is not TOML, or has an entry that is not a count.
        TreeError: It is not UTF-8.
    """
    if not (tree.root / FILE).is_file():
        return Ceilings("", {})
    return parse(tree.read(FILE))


def parse(text: str) -> Ceilings:
    """Read the ceilings from the content of a file.

    Raises:
        CeilingsError: The text is not TOML, or has an entry that is not a count.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CeilingsError(f"{FILE}: {error}") from None
    base = document.pop(BASE, None)
    commit = base.get("commit") if isinstance(base, dict) else None
    if not (isinstance(commit, str) and _HASH.fullmatch(commit)):
        raise CeilingsError(f'{FILE}: [{BASE}] needs commit = "HASH", with all 40 digits')
    raised = list(_entries(document.pop(RAISED, [])))
    tables = {name: _table(name, rows) for name, rows in document.items()}
    return Ceilings(commit, tables, raised)


def _is_entry(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    return {key: type(value) for key, value in row.items()} == _ENTRY and all(row.values())


def _entries(rows: object) -> Iterator[Raised]:
    if not isinstance(rows, list):
        raise CeilingsError(f"{FILE}: [{RAISED}] is a list of entries; write [[{RAISED}]]")
    seen = set()
    for number, row in enumerate(rows, 1):
        if not _is_entry(row):
            raise CeilingsError(
                f"{FILE}: [[{RAISED}]] entry {number} needs a measure, a total, a commit (the subject"
                f" of the commit that raises it) and a reason, and no other key"
            )
        entry = Raised(**row)
        if entry.key in seen:
            raise CeilingsError(f"{FILE}: [[{RAISED}]] entry {number} repeats {entry.key}")
        seen.add(entry.key)
        yield entry


def _table(name: str, rows: object) -> Table:
    if not isinstance(rows, dict):
        raise CeilingsError(f"{FILE}: {name} is outside a table; write [{name}]")
    for key, ceiling in rows.items():
        if type(ceiling) is not int or ceiling < 0:
            raise CeilingsError(f"{FILE}: [{name}] {key!r} must be a count from 0, not {ceiling!r}")
    return rows


def store(tree: Tree, ceilings: Ceilings) -> None:
    """Write the file: zeros left out, and comments kept at their table or key."""
    path = tree.root / FILE
    comments = _comments(tree.read(FILE) if path.is_file() else HEADER)
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text("\n".join(_lines(ceilings, comments)) + "\n", encoding="utf-8")
    part.replace(path)


def _lines(ceilings: Ceilings, comments: _Comments) -> Iterator[str]:
    """The lines of the file: the base, the entries, then tables and keys by their names."""

    def entry(table: str, key: str, text: str) -> Iterator[str]:
        yield from comments.above.get((table, key), ())
        beside = comments.beside.get((table, key), "")
        yield f"{text}  {beside}" if beside else text

    yield from entry(BASE, "", f"[{BASE}]")
    yield from entry(BASE, "commit", f'commit = "{ceilings.base}"')
    for number, raised in enumerate(ceilings.raised):
        yield ""
        yield from entry(f"{RAISED} {number}", "", f"[[{RAISED}]]")
        for key, text in raised.rows():
            yield from entry(f"{RAISED} {number}", key, text)
    for name, table in sorted(ceilings.tables.items()):
        yield ""
        yield from entry(name, "", f"[{name}]")
        for key, ceiling in sorted(table.items()):
            if ceiling:
                yield from entry(name, key, f"{_toml(key)} = {ceiling}")
    yield from comments.last


_BESIDE = re.compile(r'(?:=\s*[\d_]+|=\s*"(?:[^"\\]|\\.)*"|\])\s*(#.*)$')


@dataclass
class _Comments:
    """The comments of a file of ceilings, each by the entry that it belongs to.

    An entry is (table, key), or (table, "") for the head of a table; the tables of [[raised]] are
    numbered.
    """

    above: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    beside: dict[tuple[str, str], str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)


def _comments(text: str) -> _Comments:
    """Attach each comment to the entry on its line or below it."""
    found, waiting, table, raised = _Comments(), list[str](), "", count()
    for line in _statements(text):
        if line.startswith("#"):
            waiting.append(line)
        else:
            name = next(iter(tomllib.loads(line)))
            key = "" if line.startswith("[") else name
            if line.startswith("[["):
                table = f"{name} {next(raised)}"
            elif not key:
                table = name
            found.above[table, key], waiting = waiting, []
            if beside := _BESIDE.search(line):
                found.beside[table, key] = beside[1]
    found.last = waiting
    return found


def _statements(text: str) -> Iterator[str]:
    """Yield the comments, heads and assignments of a valid file; some values have several lines."""
    statement = ""
    for line in text.split("\n"):  # `splitlines` would split a string at U+2028
        statement = f"{statement}\n{line}" if statement else line.strip()
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if statement:
            yield statement.strip()
        statement = ""
