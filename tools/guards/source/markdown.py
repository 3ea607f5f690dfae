"""The block structure of Markdown, by CommonMark."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")


def tokens(text: str) -> list[Token]:
    """Return the block tokens of a text; their lines are those between its ``\\n``, from 0."""
    return _PARSER.parse(text.replace("\r", " "))


def fenced_lines(text: str) -> Iterator[int]:
    """Yield the lines of fenced code blocks, from 0, with those of the fences."""
    if "```" in text or "~~~" in text:
        for token in tokens(text):
            if token.type == "fence" and token.map:
                yield from range(*token.map)
