"""The declarations, imports and names of one Rust file, without its tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Query, QueryCursor

_LANGUAGE = Language(tree_sitter_rust.language())
_QUERY = Query(
    _LANGUAGE,
    """
    (use_declaration) @use
    [(scoped_identifier) (scoped_type_identifier)] @path
    (macro_invocation macro: (identifier) @macro)
    (macro_invocation (token_tree) @tokens)
    (attribute (token_tree) @tokens)
    (macro_rule right: (token_tree) @definition)
    (attribute_item) @attribute
    """,
)
_ITEMS = frozenset({
    "struct_item", "enum_item", "union_item", "trait_item", "type_item", "const_item",
    "static_item", "function_item", "function_signature_item", "macro_definition",
})  # fmt: skip
_NOT_CODE = ("attribute_item", "line_comment", "block_comment")

_NAME = r"(?:r#)?[A-Za-z_]\w*"
_SEGMENTS = rf"(?:\$?crate|{_NAME})(?:\s*::\s*{_NAME})"
_PATH = re.compile(_SEGMENTS + "*")
_TOKENS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>#*)\".*?\"(?P=hashes)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'"
    rf"|\buse\s+(?P<use>[^;]+);|(?<![\w$:])(?P<path>{_SEGMENTS}+)|(?P<macro>[A-Za-z_]\w*)!(?!=)|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)
_DECLARED = re.compile(r"\b(?:struct|enum|union|trait|type|const|static|fn)\s+([A-Za-z_]\w*)")
_IS_TEST = re.compile(r"\bcfg\s*\(\s*(?:all\s*\((?:[^()]*,)?\s*)?test\b")


@dataclass(frozen=True, slots=True)
class Use:
    """One name of a `use` declaration, or one glob."""

    path: tuple[str, ...]
    name: str  # that it has here; "*" for a glob
    line: int
    is_public: bool = False  # a re-export, to whichever modules


@dataclass(frozen=True, slots=True)
class PathUse:
    """A path of two or more segments in code."""

    path: tuple[str, ...]
    line: int


@dataclass
class Scope:
    """A module's own text: a file's without its inline modules, or that of an inline module."""

    items: set[str] = field(default_factory=set)
    generated: set[str] = field(default_factory=set)  # names that a macro may define as items
    uses: list[Use] = field(default_factory=list)
    paths: list[PathUse] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)  # of `items`
    invoked: dict[str, int] = field(default_factory=dict)  # macros without a path, by first line
    files: list[str] = field(default_factory=list)  # child modules in separate files
    test_files: list[str] = field(default_factory=list)  # those that only tests compile
    inline: dict[str, Scope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes of a file, the end exclusive."""

    start: int
    end: int

    def holds(self, node: Node) -> bool:
        return self.start <= node.start_byte < self.end


def parse(text: str) -> Scope:
    """Return what a file contains. Raises SyntaxError if it is not Rust."""
    source = text.encode()
    root = Parser(_LANGUAGE).parse(source).root_node
    if root.has_error:
        raise SyntaxError("not valid Rust, or newer than tree-sitter-rust")
    captures = QueryCursor(_QUERY).captures(root)
    tests = [_attributed(node) for node in captures.get("attribute", ()) if _is_test(node)]
    scope = Scope()
    places: list[tuple[_Range, Scope]] = [(_Range(0, len(source) + 1), scope)]
    if not any(node.type == "inner_attribute_item" and _is_test(node) for node in root.children):
        _declare(scope, root, places)
        _Code(tests, places).add(captures)
    return scope


def _is_test(attribute: Node) -> bool:
    return _IS_TEST.search(_text(attribute)) is not None


def _attributed(attribute: Node) -> _Range:
    """An attribute and what it belongs to."""
    last = attribute
    while (following := last.next_named_sibling) is not None and last.type in _NOT_CODE:
        last = following
    return _Range(attribute.start_byte, last.end_byte)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _declare(scope: Scope, body: Node, places: list[tuple[_Range, Scope]]) -> None:
    """Add the items and child modules of a module's body, and the places of inline modules."""
    is_test = False
    for node in body.named_children:
        if node.type in _NOT_CODE:
            is_test |= node.type == "attribute_item" and _is_test(node)
            continue
        if node.type == "mod_item":
            _declare_module(scope, node, places, is_test)
        elif not is_test:
            _declare_item(scope, node)
        is_test = False


def _declare_module(
    scope: Scope, node: Node, places: list[tuple[_Range, Scope]], is_test: bool
) -> None:
    name = _name(node)
    body = node.child_by_field_name("body")
    if body is None:
        (scope.test_files if is_test else scope.files).append(name)
    elif not is_test:
        child = scope.inline[name] = Scope()
        places.append((_Range(body.start_byte, body.end_byte), child))
        _declare(child, body, places)


def _declare_item(scope: Scope, node: Node) -> None:
    if node.type == "expression_statement":
        node = node.named_children[0]
    if node.type in _ITEMS:
        scope.items.add(_name(node))
    if node.type == "macro_definition":
        scope.macros.add(_name(node))
        scope.generated.update(_DECLARED.findall(_text(node)))
    elif node.type == "macro_invocation":
        scope.generated.update(re.findall(r"[A-Za-z_]\w*", _text(node)))
    elif node.type == "foreign_mod_item" and (body := node.child_by_field_name("body")):
        scope.items.update(_name(item) for item in body.named_children if item.type in _ITEMS)


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return "" if name is None else _text(name).removeprefix("r#")


class _Code:
    """Adds the imports and paths of a file to the modules that contain them."""

    def __init__(self, tests: list[_Range], places: list[tuple[_Range, Scope]]) -> None:
        self._tests = tests
        self._places = places

    def add(self, captures: dict[str, list[Node]]) -> None:
        uses = list(self._outermost(captures.get("use", ())))
        for node in uses:
            self._scope(node).uses.extend(_uses_of(node))
        declared = [_Range(node.start_byte, node.end_byte) for node in uses]
        for node in self._outermost(captures.get("path", ())):
            if not any(place.holds(node) for place in declared):
                self._add_path(node)
        for node in self._outermost(captures.get("macro", ())):
            self._scope(node).invoked.setdefault(_text(node), _line(node))
        for node in self._outermost(captures.get("tokens", ())):
            self._add_tokens(node)
        for node in self._outermost(captures.get("definition", ())):
            self._add_tokens(node, is_definition=True)

    def _outermost(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """The nodes outside tests that do not start another one of them, in their order."""
        start = -1
        for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
            if node.start_byte != start and not any(test.holds(node) for test in self._tests):
                yield node
            start = node.start_byte

    def _scope(self, node: Node) -> Scope:
        """The innermost module that holds a node."""
        return next(scope for place, scope in reversed(self._places) if place.holds(node))

    def _add_path(self, node: Node) -> None:
        if path := _PATH.match(_text(node)):
            self._scope(node).paths.append(PathUse(_segments(path[0]), _line(node)))

    def _add_tokens(self, node: Node, *, is_definition: bool = False) -> None:
        """Add the paths of a macro's arguments; of its definition, those that start at `crate`."""
        scope = self._scope(node)
        text = _text(node)
        for found in _TOKENS.finditer(text):
            line = _line(node) + text.count("\n", 0, found.start())
            if found["macro"] is not None and not is_definition:
                scope.invoked.setdefault(found["macro"], line)
            for path in _paths_of_token(found):
                if len(path) > 1 and (not is_definition or path[0] == "crate"):
                    scope.paths.append(PathUse(path, line))


def _paths_of_token(found: re.Match[str]) -> list[tuple[str, ...]]:
    if found["use"] is not None:
        return [path for path, _ in use_tree(found["use"])]
    return [_segments(found["path"])] if found["path"] is not None else []


def _segments(path: str) -> tuple[str, ...]:
    """The segments of a path; ``$crate`` is written ``crate``, and ``r#type`` ``type``."""
    parts = (segment.strip() for segment in path.split("::"))
    return tuple(segment.removeprefix("$").removeprefix("r#") for segment in parts)


def _uses_of(node: Node) -> list[Use]:
    argument = node.child_by_field_name("argument")
    text = "" if argument is None else _text(argument)
    is_public = any(child.type == "visibility_modifier" for child in node.children)
    return [Use(path, name, _line(node), is_public) for path, name in use_tree(text)]


def use_tree(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Return the paths of a `use` declaration, with the name that each has afterwards.

    `text` is the text after `use`, without the semicolon. A glob is a path with the name ``*``; a
    path that leads to another crate by a leading ``::`` is left out.
    """
    return _tree((), _plain(text))


@cache
def _plain(text: str) -> str:
    """The text without comments, and with spaces only around `as`."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).replace("r#", "")
    return re.sub(r"\s*([{},:*])\s*", r"\1", " ".join(text.split()))


def _tree(prefix: tuple[str, ...], text: str) -> list[tuple[tuple[str, ...], str]]:
    if text.startswith("::"):
        return []
    head, brace, group = text.partition("{")
    if brace:
        base = (*prefix, *filter(None, _segments(head)))
        return [leaf for part in _parts(group.removesuffix("}")) for leaf in _tree(base, part)]
    plain, _, alias = text.partition(" as ")
    path = (*prefix, *_segments(plain))
    if path[-1] in ("*", "self") and len(path) > 1:
        is_glob = path[-1] == "*"
        path = path[:-1]
        return [(path, "*" if is_glob else alias or path[-1])]
    return [(path, alias or path[-1])]


def _parts(group: str) -> Iterator[str]:
    """The parts between the commas of a group, without those of inner groups."""
    depth = start = 0
    for position, character in enumerate(group + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if part := group[start:position]:
                yield part
            start = position + 1
