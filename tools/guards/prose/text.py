"""Units of text: paragraphs of a comment, sentences and table cells of Markdown."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tools.guards.blocks import blank, mask_code


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a text."""

    line: int  # of its first character in the text, from 0
    text: str  # as many characters as in the source, with code masked and line breaks as spaces
    source: str
    is_heading: bool = False

    def line_at(self, offset: int) -> int:
        """Return the line in the text, from 0, of an offset in the unit."""
        return self.line + self.source.count("\n", 0, offset)

    def quoted(self, start: int, end: int) -> str:
        """Return the words from `start` to `end` (exclusive) as they are written."""
        return " ".join(self.source[start:end].split())


_SPACE = re.compile(r"\s")


@dataclass(frozen=True)
class Source:
    """A text, and its copy without code, which has as many characters and the same lines."""

    text: str
    masked: str

    def unit(self, start: int, end: int, *, is_heading: bool = False) -> Unit:
        """Return a part of the text, `end` exclusive."""
        flat = _SPACE.sub(" ", self.masked[start:end])
        line = bisect.bisect_left(self._line_ends, start)
        return Unit(line, flat, self.text[start:end], is_heading)

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]


# Paragraphs.

_ITEM = r"(?:[-*+•] |\d+[.)] )"
_BREAK = re.compile(
    rf"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:{_ITEM}|\w+(?: \([^)\n]*\))?: |[A-Z]\w+:\n))|(?<=:)\n(?=[ \t]+\S)"
)
_LEAD = re.compile(rf"\s*{_ITEM}?\s*")


def paragraphs(source: Source) -> Iterator[Unit]:
    """Yield the paragraphs and list items of a text."""
    masked, start = source.masked, 0
    for match in [*_BREAK.finditer(masked), None]:
        end = match.start() if match else len(masked)
        lead = _LEAD.match(masked, start, end)
        first = lead.end() if lead else start
        if masked[first:end].strip():
            yield source.unit(first, first + len(masked[first:end].rstrip()))
        start = match.end() if match else end


# Markdown.

_ATTRIBUTE = r"\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?"
_HTML = re.compile(
    rf"<!--.*?-->|<[A-Za-z][A-Za-z0-9-]*(?:{_ATTRIBUTE})*\s*/?>|</[A-Za-z][A-Za-z0-9-]*\s*>",
    re.DOTALL,
)
_TARGET = re.compile(r"(?<=\])\([^()\n]*\)")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_ROW = re.compile(r"[ \t>]*\|")
_LISTED = re.compile(rf"[ \t>]*{_ITEM}")
_CELL = re.compile(r"[^|\n]+")
_SENTENCE = re.compile(r"(?<=[.!?])[*_)\"”]*\s+(?=[\"“*_(\[`]*[A-Z0-9`])")
_MARKUP = re.compile(r"[ \t>]*(?:#{1,6}[ \t]|[-*+][ \t]|\d+[.)][ \t])?\s*")
_EMPTY = re.compile(r"[\W\d]*")


def sentences(text: str) -> Iterator[Unit]:
    """Yield the sentences, headings and table cells of Markdown; cells are not split further."""
    masked = mask_code(text)
    masked = _HTML.sub(lambda match: blank(match[0]), masked)
    masked = _TARGET.sub(lambda match: " " * len(match[0]), masked)
    source = Source(text, masked)
    for start, end in _markdown_blocks(masked):
        if _ROW.match(masked, start):
            yield from _cells(source, start, end)
        elif heading := _HEADING.match(masked, start):
            yield from _filled(source, heading.end(), end, is_heading=True)
        else:
            yield from _split(source, start, end)


def _markdown_blocks(masked: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of paragraphs, list items, headings and table rows."""
    start = end = 0
    for match in re.finditer(r"[^\n]*(?:\n|\Z)", masked):
        line = match[0]
        if not line.strip() or _starts_block(masked, match.start(), start, end):
            if end > start:
                yield start, end
            start = match.start() if line.strip() else match.end()
        end = match.end()
    if end > start:
        yield start, end


def _starts_block(masked: str, line: int, start: int, end: int) -> bool:
    """Return whether a line ends the block from `start` to `end`, or starts another one."""
    own = any(pattern.match(masked, line) for pattern in (_HEADING, _ROW, _LISTED))
    return own or any(pattern.match(masked, start, end) for pattern in (_HEADING, _ROW))


def _cells(source: Source, start: int, end: int) -> Iterator[Unit]:
    for match in _CELL.finditer(source.masked, start, end):
        yield from _filled(source, *match.span())


def _split(source: Source, start: int, end: int) -> Iterator[Unit]:
    masked = source.masked
    first = _MARKUP.match(masked, start, end)
    start = first.end() if first else start
    for match in [*_SENTENCE.finditer(masked, start, end), None]:
        stop = match.start() if match else end
        yield from _filled(source, start, stop)
        start = match.end() if match else end


def _filled(source: Source, start: int, end: int, *, is_heading: bool = False) -> Iterator[Unit]:
    part = source.masked[start:end]
    if not _EMPTY.fullmatch(part):
        first = start + len(part) - len(part.lstrip())
        yield source.unit(first, start + len(part.rstrip()), is_heading=is_heading)


# Messages.

_FIELD = re.compile(r"\{[^{}]*\}|%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[sdrfgx]")


def mask_message(message: str) -> str:
    """Return a format string with its fields and code masked, at equal length."""
    message = message.replace("\\n", "  ").replace("\\t", "  ")
    return mask_code(_FIELD.sub(lambda match: "`" + "x" * (len(match[0]) - 2) + "`", message))
