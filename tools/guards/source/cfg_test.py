"""Rust code that only tests compile: items under ``cfg(test)``, and the files of such modules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from tools.guards.source import rust
from tools.guards.tree import Tree

_CFG = r"\bcfg\(\s*(?:all\((?:[^()]*,)?\s*)?test\b"
_CFG_TEST = re.compile(_CFG)
_TEST_MODULE = re.compile(
    rf"#\[{_CFG}[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);"
)
_BEFORE_ITEM = frozenset({"attribute_item", "line_comment", "block_comment"})


def files_under_cfg_test(tree: Tree) -> frozenset[str]:
    """Return the files of modules that are declared under ``cfg(test)``, submodules included."""
    found: set[str] = set()
    for path in tree.sources(".rs"):
        text = tree.text(path)
        if not _CFG_TEST.search(text):  # most files are not parsed
            continue
        for module in _TEST_MODULE.findall(rust.code_of(text)):
            folder, _, name = path.rpartition("/")
            parent = folder if name in {"mod.rs", "lib.rs", "main.rs"} else path.removesuffix(".rs")
            stem = f"{parent}/{module}"
            found |= {p for p in tree.paths if p == f"{stem}.rs" or p.startswith(f"{stem}/")}
    return frozenset(found)


def lines_under_cfg_test(text: str) -> frozenset[int]:
    """Return the lines, from 1, of the items under ``cfg(test)``, attributes included."""
    if not _CFG_TEST.search(text):
        return frozenset()
    code = rust.code_of(text).encode()
    query = "[(attribute_item) (inner_attribute_item)] @attribute"
    attributes = rust.captures(rust.root(text), query).get("attribute", ())
    marks = [
        node
        for node in attributes
        if _CFG_TEST.search(code[node.start_byte : node.end_byte].decode())
    ]
    return frozenset(line for mark in marks for line in _lines_under(mark))


def _lines_under(attribute: Node) -> Iterator[int]:
    """Yield the lines of an attribute and of the item that it applies to."""
    last: Node | None = attribute
    if attribute.type == "inner_attribute_item":
        last = attribute.parent
    else:
        while last is not None and last.type in _BEFORE_ITEM:
            last = last.next_named_sibling
    end = attribute if last is None else last
    yield from range(attribute.start_point.row + 1, end.end_point.row + 2)
