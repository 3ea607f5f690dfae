"""Readers of source text, by language: comments, docs, string literals and names of tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["comment", "doc"]


@dataclass(frozen=True, slots=True)
class Block:
    """A comment, or the documentation of an item."""

    line: int  # of its first line in the file, from 1
    last_line: int  # inclusive
    kind: Kind
    text: str
    subject: str  # name of the documented item; "" for comments and if no item follows


@dataclass(frozen=True, slots=True)
class Literals:
    """Texts of a file that are not blocks. Each is a pair of a line, from 1, and a text."""

    texts: list[tuple[int, str]]  # string literals
    messages: list[tuple[int, str]]  # those of log calls and errors
    tests: list[tuple[int, str]]  # names of test functions


@dataclass(slots=True)
class Comment:
    """A comment as it is written, before consecutive ones are joined to a block."""

    line: int
    column: int
    marker: str
    own_line: bool  # no code in front of it
    texts: list[str]  # one for each line, without the marker
    kind: Kind = "comment"
    subject: str = ""

    def joins(self, other: Comment) -> bool:
        """Return whether `other`, the next comment of the file, continues this one."""
        follows = other.line == self.line + len(self.texts) and self.own_line and other.own_line
        return follows and other.column == self.column and other.marker == self.marker

    def block(self) -> Block:
        """Return the comment as a block."""
        last_line = self.line + len(self.texts) - 1
        return Block(self.line, last_line, self.kind, "\n".join(self.texts), self.subject)


def joined(comments: Iterable[Comment]) -> Iterator[Block]:
    """Yield a block for each run of comments; its subject is that of the last comment."""
    group: Comment | None = None
    for comment in comments:
        if group is not None and group.joins(comment):
            group.texts += comment.texts
            group.subject = comment.subject
            continue
        if group is not None:
            yield group.block()
        group = comment
    if group is not None:
        yield group.block()


def module_name(path: str) -> str:
    """Return the name of a file's module: its stem, or its folder for ``mod.rs`` and the like."""
    pure = PurePosixPath(path)
    if pure.stem not in {"mod", "lib", "main", "__init__", "__main__"}:
        return pure.stem
    parents = [part for part in pure.parts[:-1] if part != "src"]
    return parents[-1] if parents else ""
