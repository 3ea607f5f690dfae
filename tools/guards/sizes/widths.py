"""Lines that are too wide for a reader, although no formatter wraps them: comments and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tools.guards.blocks import Block
from tools.guards.figures import Finding
from tools.guards.source import markdown

COMMENT_COLUMNS = 100
MARKDOWN_COLUMNS = 120

_URL = re.compile(r"https?://\S+")
_TARGET = re.compile(r"\]\([^)\s]*\)|^\s*\[[^\]]+\]:\s.*|<?https?://[^\s>)]+>?")


def wide_comments(path: str, lines: Sequence[str], blocks: Iterable[Block]) -> Iterator[Finding]:
    """Yield the lines of comments and documentation that end beyond `COMMENT_COLUMNS`.

    A line of a table, and one that is wide only because of a URL, are accepted.
    """
    wide = {number for number, line in enumerate(lines, 1) if len(line) > COMMENT_COLUMNS}
    if not wide:
        return
    for block in blocks:
        for number in sorted(wide.intersection(range(block.line, block.last_line + 1))):
            line = lines[number - 1]
            if len(_URL.sub("", line)) > COMMENT_COLUMNS and not _is_table_row(line):
                advice = f"wrap the comment at {COMMENT_COLUMNS} columns"
                yield Finding(path, number, f"{len(line)} columns", advice)


def _is_table_row(line: str) -> bool:
    return line.lstrip("/!# ").startswith("|")


def wide_markdown(path: str, text: str) -> Iterator[Finding]:
    """Yield the lines of paragraphs, lists and headings that end beyond `MARKDOWN_COLUMNS`.

    Tables, code and HTML are accepted; the addresses of links do not count.
    """
    lines = text.split("\n")
    if all(len(line) <= MARKDOWN_COLUMNS for line in lines):
        return
    in_table = False
    for token in markdown.tokens(text):
        in_table = token.type != "table_close" and (in_table or token.type == "table_open")
        if token.type == "inline" and token.map and not in_table:
            for number in range(token.map[0] + 1, token.map[1] + 1):
                width = len(lines[number - 1])
                if width > MARKDOWN_COLUMNS and _width(lines[number - 1]) > MARKDOWN_COLUMNS:
                    advice = f"wrap the paragraph at {MARKDOWN_COLUMNS} columns"
                    yield Finding(path, number, f"{width} columns", advice)


def _width(line: str) -> int:
    """The width of a line without the addresses of its links."""
    return len(_TARGET.sub("", line))
