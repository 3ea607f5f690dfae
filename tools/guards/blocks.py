"""Comments and documentation of a source file, as blocks of text.

The text of a block has as many lines as its source, without comment markers and common
indentation: line ``block.line + n`` of the file holds line ``n`` of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from tools.guards.source import Block, markdown, python, rust

__all__ = ["Block", "blank", "blocks", "mask_code", "prose_of"]


def blocks(path: str, text: str) -> list[Block]:
    """Return the blocks of a file in the order of their lines; only source code has blocks.

    Consecutive comment lines at one column form one block; a comment after code is a separate
    block. Invalid source text is read as far as its tokens allow and never raises.
    """
    return list(_blocks(path, text))


@lru_cache(maxsize=4096)  # several guards read the same files
def _blocks(path: str, text: str) -> tuple[Block, ...]:
    suffix = PurePosixPath(path).suffix
    if suffix == ".rs":
        found = rust.blocks(path, text)
    elif suffix in {".py", ".pyi", ".pyx", ".pxd"}:
        found = python.blocks(path, text)
    else:
        return ()
    return tuple(sorted(found, key=lambda block: (block.line, block.last_line)))


_DOCTEST = re.compile(r"^[ \t]*>>> .*(?:\n[ \t]*\S.*)*", re.MULTILINE)
_LITERAL = re.compile(r"::[ \t]*\n(?:[ \t]*\n)+(([ \t]+)\S.*(?:\n(?:\2.*|[ \t]*(?=\n|\Z)))*)")
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)((?:[^`\n]|\n(?!\s*\n)){1,300}?)\1(?!`)")
_URL = re.compile(r"https?://[^\s)>\]]+")
_LICENSE = re.compile(r"\A\W*(?:Copyright|SPDX-|Licensed (?:to|under))")
_PRAGMA = re.compile(
    r"^(?:noqa|type: ?ignore|mypy:|ruff:|pyright:|pylint:|cython:|distutils:|fmt:|isort:|pragma:|-\*-|!)[^\n#]*",
    re.MULTILINE,
)


def prose_of(block: Block) -> str:
    """Return the text of a block with its code masked; offsets and lines stay the same.

    Code blocks, doctests, lint pragmas and license headers become spaces. Inline code and URLs
    become ```xxx``` of the same length, so that a sentence keeps its nouns.
    """
    return mask_code(block.text, license_too=block.line <= 3)


def mask_code(text: str, *, license_too: bool = False) -> str:
    """Return `text` with code masked as `prose_of` does."""
    if license_too and _LICENSE.search(text):
        return blank(text)
    text = _without_fences(text)
    text = _DOCTEST.sub(lambda match: blank(match[0]), text)
    text = _LITERAL.sub(_mask_literal, text)
    text = _PRAGMA.sub(lambda match: blank(match[0]), text)
    text = _INLINE.sub(lambda match: match[1] + re.sub(r"[^\n]", "x", match[2]) + match[1], text)
    return _URL.sub(lambda match: "`" + "x" * (len(match[0]) - 2) + "`", text)


def _without_fences(text: str) -> str:
    lines = text.split("\n")
    for number in markdown.fenced_lines(text):
        if number < len(lines):  # a fence without an end reaches beyond the last line
            lines[number] = blank(lines[number])
    return "\n".join(lines)


def blank(text: str) -> str:
    """Return spaces in place of a text, with its line breaks."""
    return re.sub(r"[^\n]", " ", text)


def _mask_literal(match: re.Match[str]) -> str:
    start = match.start(1) - match.start()
    return match[0][:start] + blank(match[1])
