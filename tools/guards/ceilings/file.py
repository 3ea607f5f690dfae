"""Reading ``tools/ceilings.toml``, and writing it without losing its comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tools.guards.tree import Tree

FILE = "tools/ceilings.toml"
BASE = "base"
HEADER = """\
# The highest figure that each guard of tools/guards accepts, by folder or crate. `make ceilings`
# writes lower ones, and refuses if a total rose.

# The subjects of commits after this one are checked.
[base]
"""
"""The start of a new file."""

Table = Mapping[str, int]


_HASH = re.compile(r"[0-9a-f]{40}")


class CeilingsError(ValueError):
    """The file of ceilings cannot be read, or a change of it is refused."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The content of the file."""

    base: str  # full hash of a commit; "" before the file exists
    tables: Mapping[str, Table]


def load(tree: Tree) -> Ceilings:
    """Read the ceilings of a tree; a missing file has no tables.

    Raises:
        CeilingsError: The file is not TOML, or has an entry that is not a count.
    """
    if not (tree.root / FILE).is_file():
        return Ceilings("", {})
    return parse((tree.root / FILE).read_text(encoding="utf-8"))


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
    return Ceilings(commit, {name: _table(name, rows) for name, rows in document.items()})


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
    comments = _comments(path.read_text(encoding="utf-8") if path.is_file() else HEADER)
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text("\n".join(_lines(ceilings, comments)) + "\n", encoding="utf-8")
    part.replace(path)


def _lines(ceilings: Ceilings, comments: _Comments) -> Iterator[str]:
    """The lines of the file: the base first, then tables and keys in the order of their names."""

    def entry(table: str, key: str, text: str) -> Iterator[str]:
        yield from comments.above.get((table, key), ())
        beside = comments.beside.get((table, key), "")
        yield f"{text}  {beside}" if beside else text

    yield from entry(BASE, "", f"[{BASE}]")
    yield from entry(BASE, "commit", f'commit = "{ceilings.base}"')
    for name, table in sorted(ceilings.tables.items()):
        yield ""
        yield from entry(name, "", f"[{name}]")
        for key, ceiling in sorted(table.items()):
            if ceiling:
                yield from entry(name, key, f"{json.dumps(key)} = {ceiling}")
    yield from comments.last


_BESIDE = re.compile(r'(?:=\s*[\d_]+|=\s*"[^"]*"|\])\s*(#.*)$')


@dataclass
class _Comments:
    """The comments of a file of ceilings, each by the entry that it belongs to.

    An entry is (table, key), or (table, "") for the head of a table.
    """

    above: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    beside: dict[tuple[str, str], str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)


def _comments(text: str) -> _Comments:
    """Attach each comment to the entry on its line or below it."""
    found, waiting, table = _Comments(), list[str](), ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            waiting.append(line)
        elif line:
            name = next(iter(tomllib.loads(line)))
            table, key = (name, "") if line.startswith("[") else (table, name)
            found.above[table, key], waiting = waiting, []
            if beside := _BESIDE.search(line):
                found.beside[table, key] = beside[1]
    found.last = waiting
    return found
