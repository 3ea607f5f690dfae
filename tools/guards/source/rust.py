"""Rust source text, parsed with tree-sitter."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from tools.guards.source import Block, Comment, Literals, joined, module_name

_RUST = Language(tree_sitter_rust.language())


@lru_cache(maxsize=2)
def root(text: str) -> Node:
    """Return the root of the syntax tree of `text`; the last trees are kept."""
    return _parser().parse(text.encode()).root_node


@cache
def _parser() -> Parser:
    return Parser(_RUST)


@cache
def _query(source: str) -> Query:
    return Query(_RUST, source)


def captures(node: Node, query: str) -> dict[str, list[Node]]:
    """Return the nodes that a tree-sitter query captures, by name, each list in source order."""
    found = QueryCursor(_query(query)).captures(node)
    return {name: sorted(nodes, key=lambda node: node.start_byte) for name, nodes in found.items()}


def node_text(node: Node) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode()


_NOT_CODE = (
    "[(line_comment) (block_comment) (string_literal) (raw_string_literal) (char_literal)] @text"
)


@lru_cache(maxsize=2)
def code_of(text: str) -> str:
    """Return `text` with spaces for its comments and strings; lines and bytes stay the same."""
    source = bytearray(text.encode())
    for node in captures(root(text), _NOT_CODE).get("text", []):
        span = slice(node.start_byte, node.end_byte)
        source[span] = re.sub(rb"[^\n]", b" ", source[span])
    return source.decode()


# Comments.

_BLOCKS = """
[(line_comment) (block_comment)] @comment
[
  (function_item) (function_signature_item) (struct_item) (enum_item) (union_item) (trait_item) (impl_item)
  (type_item) (const_item) (static_item) (mod_item) (macro_definition) (associated_type)
  (field_declaration) (enum_variant)
] @item
"""
_MARKER = re.compile(r"/\*[*!]?|//[/!]?")


def blocks(path: str, text: str) -> list[Block]:
    """Return the comment and doc blocks of a file, in source order."""
    found = captures(root(text), _BLOCKS)
    reader = _Reader(path, text.encode(), found.get("item", []))
    return list(joined(reader.comment(node) for node in found.get("comment", [])))


class _Reader:
    """Reads the comments of one file, whose items are known in source order."""

    def __init__(self, path: str, source: bytes, items: list[Node]) -> None:
        self._path = path
        self._source = source
        self._items = items
        self._starts = [item.start_byte for item in items]

    def comment(self, node: Node) -> Comment:
        source = node_text(node).rstrip("\n")
        match = _MARKER.match(source)
        assert match is not None, "a comment starts with its marker"
        marker = match[0]
        if source.startswith(("////", "/***", "/**/")):  # ordinary comments, by Rust's rules
            marker = marker[:2]
        row, column = node.start_point
        line_start = node.start_byte - column
        own_line = not self._source[line_start : node.start_byte].strip()
        texts = _without_marker(source, marker)
        if len(marker) == 2:
            return Comment(row + 1, column, marker, own_line, texts)
        return Comment(row + 1, column, marker, own_line, texts, "doc", self._subject(node, marker))

    def _subject(self, node: Node, marker: str) -> str:
        if marker.endswith("!"):
            inside = node.parent.parent if node.parent is not None else None
            return module_name(self._path) if inside is None else _name(inside)
        index = bisect.bisect_left(self._starts, node.end_byte)
        if index == len(self._items):
            return ""
        between = self._source[node.end_byte : self._starts[index]].strip()
        return (
            _name(self._items[index]) if not between or between.startswith((b"#[", b"//")) else ""
        )


def _without_marker(source: str, marker: str) -> list[str]:
    if marker.startswith("//"):
        return [source[len(marker) :].removeprefix(" ").rstrip()]
    body = source[len(marker) :].removesuffix("*/")
    first, *others = body.split("\n")
    return [first.strip(), *(re.sub(r"^\s*\*? ?", "", other).rstrip() for other in others)]


def _name(item: Node) -> str:
    name = item.child_by_field_name("name") or item.child_by_field_name("type")
    return node_text(name) if name is not None else ""


# Texts and tests.

_TEXTS = """
(macro_invocation macro: (_) @macro) @invocation
(call_expression function: (_) @function) @call
(attribute_item (attribute (identifier) @attribute)) @attributes
[(string_literal) (raw_string_literal)] @text
"""
_MACROS = re.compile(
    r"(?:\w+::)*(?:trace|debug|info|warn|error|event|format|anyhow|bail|ensure|e?print(?:ln)?|write(?:ln)?)"
)
_CONSTRUCTORS = re.compile(r"(?:.*Error(?:::\w+)?|.*\bErr|.*\b(?:new_err|corrupt|invalid|damaged))")
_TEST = re.compile(
    r"#\[(?:\w+::)*test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)"
)


def literals(text: str) -> Literals:
    """Return the texts of a file, and the names of its tests."""
    found = captures(root(text), _TEXTS)
    spans = sorted(_message_spans(found))
    starts = [start for start, _ in spans]
    texts, messages = [], []
    reach = 0
    ends = [reach := max(reach, end) for _, end in spans]  # of all calls that start up to there
    for node in found.get("text", []):
        texts.append((node.start_point[0] + 1, _content(node)))
        index = bisect.bisect_right(starts, node.start_byte) - 1
        if index >= 0 and node.end_byte <= ends[index]:
            messages.append(texts[-1])
    code = code_of(text) if "test" in text else ""
    tests = [(code.count("\n", 0, match.start(1)) + 1, match[1]) for match in _TEST.finditer(code)]
    return Literals(texts, messages, tests)


def _message_spans(found: dict[str, list[Node]]) -> Iterator[tuple[int, int]]:
    for macro in found.get("macro", []):
        if _MACROS.fullmatch(node_text(macro)):
            yield _parent_span(macro)
    for function in found.get("function", []):
        if _CONSTRUCTORS.fullmatch(node_text(function)):
            yield _parent_span(function)
    for attribute in found.get("attribute", []):
        if attribute.text == b"error":
            yield _parent_span(attribute)


def _parent_span(node: Node) -> tuple[int, int]:
    parent = node.parent or node
    return parent.start_byte, parent.end_byte


_CONTINUED = re.compile(r"\\\n\s*")


def _content(node: Node) -> str:
    """Return a string literal without quotes; lines that a backslash continues are joined."""
    match = re.fullmatch(r"[bcr]*(#*)\"(.*)\"\1", node_text(node), re.DOTALL)
    return _CONTINUED.sub("", match[2]) if match else ""
