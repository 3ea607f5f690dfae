"""The graph of Rust modules has the imports that are written, and its cycles are found."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.module_trees import edges, repository, write_crate, write_tree
from tools.guards.imports import (
    Graph,
    Import,
    cycles,
    graph_of,
    imports_to_remove,
    shortest_cycle,
    within,
)
from tools.guards.rust_modules import UnresolvedError, measure, rust_crates

Edges = set[tuple[str, str]]

RULES: dict[str, tuple[dict[str, str], Edges]] = {
    "a declaration is no import": ({"lib.rs": "mod a;", "a.rs": "pub struct A;"}, set()),
    "a path from the crate": (
        {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "pub struct B;"},
        {("a.rs", "b.rs")},
    ),
    "groups in groups": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": "use crate::{b::{B1, B2}, c::{self, C as Other}}; // }\nuse std::fmt;",
            "b.rs": "pub struct B1; pub enum B2 {}",
            "c.rs": "pub trait C {}",
        },
        {("a.rs", "b.rs"), ("a.rs", "c.rs")},
    ),
    "a glob leads to the names that are used": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": "use crate::b::*; fn f(_: Used, _: FromC) {}",
            "b.rs": "pub struct Used; pub struct Unused; pub use crate::c::FromC;",
            "c.rs": "pub struct FromC;",
        },
        {("a.rs", "b.rs"), ("a.rs", "c.rs"), ("b.rs", "c.rs")},
    ),
    "a glob without a used name": (
        {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::*;", "b.rs": "pub struct B;"},
        set(),
    ),
    "a child uses its parent and its grandparent": (
        {
            "lib.rs": "mod a;",
            "a.rs": "mod b; pub struct A;",
            "a/b.rs": "mod c; use super::A;",
            "a/b/c.rs": "use super::super::A;",
        },
        {("a/b.rs", "a.rs"), ("a/b/c.rs", "a.rs")},
    ),
    "a parent uses its child, with and without self": (
        {
            "lib.rs": "mod a;",
            "a.rs": "mod b; mod c; use b::B; use self::c::C;",
            "a/b.rs": "pub struct B;",
            "a/c.rs": "pub struct C;",
        },
        {("a.rs", "a/b.rs"), ("a.rs", "a/c.rs")},
    ),
    "a re-export leads to the definition": (
        {
            "lib.rs": "mod a; mod b; mod c; pub use b::Renamed;",
            "a.rs": "use crate::Renamed;",
            "b.rs": "pub use crate::c::C as Renamed;",
            "c.rs": "pub struct C;",
        },
        {("lib.rs", "c.rs"), ("a.rs", "c.rs"), ("b.rs", "c.rs")},
    ),
    "paths in code, types and patterns": (
        {
            "lib.rs": "mod a; mod b; mod c; mod d;",
            "a.rs": "fn f(x: Vec<crate::b::B>) -> super::c::C { match x { crate::d::D { .. } => {} } }",
            "b.rs": "pub struct B;",
            "c.rs": "pub struct C;",
            "d.rs": "pub struct D {}",
        },
        {("a.rs", "b.rs"), ("a.rs", "c.rs"), ("a.rs", "d.rs")},
    ),
    "a path through an imported module": (
        {
            "lib.rs": "mod a; mod b;",
            "a.rs": "use crate::b as other; fn f() { other::c::run() }",
            "b.rs": "pub mod c;",
            "b/c.rs": "pub fn run() {}",
        },
        {("a.rs", "b/c.rs")},
    ),
    "an associated function or variant belongs to its type": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": "fn f() { crate::b::B::new(); } use crate::c::C::{One, Two};",
            "b.rs": "pub struct B; impl B { pub fn new() {} }",
            "c.rs": "pub enum C { One, Two }",
        },
        {("a.rs", "b.rs"), ("a.rs", "c.rs")},
    ),
    "arguments of macros, without their strings": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": 'fn f() { assert!(crate::b::B > 0, "crate::c::C {}", 1); } // crate::c::C',
            "b.rs": "pub const B: u8 = 1;",
            "c.rs": "pub struct C;",
        },
        {("a.rs", "b.rs")},
    ),
    "a macro's definition, and the items that it makes": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": "use crate::b::make; make!(Made); mod inner { use super::Made; }",
            "b.rs": "macro_rules! make { ($name:ident) => { pub struct $name($crate::c::C); } }\n"
            "pub(crate) use make;",
            "c.rs": "use crate::a::Made; pub struct C;",
        },
        {("a.rs", "b.rs"), ("b.rs", "c.rs"), ("c.rs", "a.rs")},
    ),
    "an inline module belongs to its file": (
        {
            "lib.rs": "mod a; mod b;",
            "a.rs": "struct A; mod inner { use super::A; use crate::b::B; pub struct I; } use inner::I;",
            "b.rs": "pub struct B; use crate::a::inner::I;",
        },
        {("a.rs", "b.rs"), ("b.rs", "a.rs")},
    ),
    "tests are left out": (
        {
            "lib.rs": "mod a; mod b; #[cfg(test)] mod helper;",
            "a.rs": "#[cfg(test)] use crate::b::B;\n"
            "#[cfg(test)] mod tests { use crate::b::B; fn f() { crate::b::B; } }\n"
            "struct S { #[cfg(test)] field: crate::b::B }\n"
            "#[cfg(test)] #[expect(dead_code)] impl S { fn f() -> crate::b::B {} }\n"
            "#[cfg(test)] mod a_tests;",
            "a/a_tests.rs": "use crate::b::B;",
            "helper.rs": "use crate::b::B; mod deep;",
            "helper/deep.rs": "use crate::b::B;",
            "b.rs": "pub struct B;",
        },
        set(),
    ),
    "code for other platforms counts": (
        {
            "lib.rs": "mod a; mod b;",
            "a.rs": '#[cfg(not(test))] use crate::b::B; #[cfg(target_os = "linux")] fn f() {}',
            "b.rs": "pub struct B;",
        },
        {("a.rs", "b.rs")},
    ),
    "code that tests and other platforms compile counts": (
        {
            "lib.rs": "mod a; mod b; mod c;",
            "a.rs": "#[cfg(any(test, unix))] use crate::b::B;",
            "b.rs": "pub struct B; #[cfg(all(unix, test))] use crate::a;",
            "c.rs": "#[cfg(all(unix, not(test)))] use crate::b::B;",
        },
        {("a.rs", "b.rs"), ("c.rs", "b.rs")},
    ),
    "folders with mod.rs": (
        {
            "lib.rs": "mod a; mod d;",
            "a/mod.rs": "pub mod b; mod c;",
            "a/b.rs": "use super::c::C; use crate::d::e::E;",
            "a/c/mod.rs": "pub struct C;",
            "d.rs": "pub mod e;",
            "d/e.rs": "pub struct E;",
        },
        {("a/b.rs", "a/c/mod.rs"), ("a/b.rs", "d/e.rs")},
    ),
    "raw identifiers are names": (
        {
            "lib.rs": "mod a; mod r#type;",
            "a.rs": "fn f() { crate::r#type::g(); vec![crate::r#type::h()] } pub fn r#try() {}",
            "type.rs": "use crate::r#type as own; pub fn g() { super::a::r#try() } pub fn h() {}",
        },
        {("a.rs", "type.rs"), ("type.rs", "a.rs")},
    ),
    "a program without a library is a crate": (
        {
            "main.rs": "mod a; mod b; fn main() {}",
            "a.rs": "use crate::b::B; pub struct A;",
            "b.rs": "use crate::a::A; pub struct B;",
        },
        {("a.rs", "b.rs"), ("b.rs", "a.rs")},
    ),
    "a macro without a path": (
        {
            "lib.rs": "#[macro_use] mod a; mod b; mod c; mod d;",
            "a.rs": "macro_rules! make { () => { crate::b::f() } } fn g() { make!() }",
            "b.rs": "pub fn f() { make!(); vec![1] }",
            "c.rs": "mod e; macro_rules! make { () => {} } macro_rules! own { () => {} }",
            "c/e.rs": "fn f(a: bool) { assert!(vec![make!()], own != a); make!{} }",
            "d.rs": "#[cfg(test)] mod tests { fn f() { make!() } } // own!()",
        },
        {("a.rs", "b.rs"), ("b.rs", "a.rs"), ("b.rs", "c.rs"), ("c/e.rs", "c.rs")},
    ),
    "another crate's names are not ours": (
        {
            "lib.rs": "mod a; use other::prelude::*;",
            "a.rs": "use std::sync::Arc; use crate::FromPrelude; fn f() -> Arc<serde::Value> {}",
        },
        set(),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_imports_lead_to_the_file_that_defines_the_item(rule: str, tmp_path: Path) -> None:
    files, expected = RULES[rule]
    assert edges(write_crate(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"lib.rs": "mod a;", "a.rs": "\nuse crate::b::B;"}, "a.rs:2: cannot find `crate::b::B`"),
        ({"lib.rs": "fn f() { super::f() }"}, "lib.rs:1: cannot find `super::f`"),
        ({"lib.rs": "fn f() { vec![\nself::g()] }"}, "lib.rs:2: cannot find `self::g`"),
        ({"lib.rs": "mod a;"}, "lib.rs: `mod a` needs exactly one file"),
        (
            {"lib.rs": "mod a;", "a.rs": "", "a/mod.rs": ""},
            "lib.rs: `mod a` needs exactly one file",
        ),
        (
            {"lib.rs": "mod testing;", "testing.rs": ""},
            "lib.rs: the name of `mod testing` is one of",
        ),
        (
            {"lib.rs": "mod a_tests;", "a_tests.rs": ""},
            "lib.rs: the name of `mod a_tests` is one of",
        ),
        ({"lib.rs": "", "a.rs": ""}, "a.rs: no `mod` declares this file"),
        ({"lib.rs": "", "main.rs": ""}, "main.rs: no `mod` declares this file"),
        ({"lib.rs": "fn ("}, "lib.rs: not valid Rust"),
    ],
)
def test_a_gap_in_the_graph_is_an_error(
    files: Mapping[str, str], place: str, tmp_path: Path
) -> None:
    with pytest.raises(UnresolvedError) as raised:
        rust_crates(write_crate(tmp_path, files))
    assert f"rust/sample/src/{place}" in str(raised.value)


def test_every_path_of_this_repository_resolves() -> None:  # otherwise rust_crates raises
    assert {"bindings", "broker", "client", "log", "record", "wire"} <= rust_crates(
        repository()
    ).keys()


def test_a_cycle_is_reported_with_the_import_to_remove(tmp_path: Path) -> None:
    layers = (
        'layers = [{ name = "high", modules = ["lib", "a"] }, { name = "low", modules = ["b"] }]'
    )
    files = {
        "tools/layers.toml": f'["rust/sample"]\n{layers}',
        "rust/sample/src/lib.rs": "mod a; mod b;",
        "rust/sample/src/a.rs": "use crate::b::B; pub struct A;",
        "rust/sample/src/b.rs": "pub struct B;\nuse crate::a::A;",
    }
    found = measure(write_tree(tmp_path, files))[0]
    assert found.counts == {"sample.cycles": 1, "sample.largest": 2}
    assert found.report["sample.sizes"] == "2"
    (cycle,), (removal,) = found.findings["sample.cycles"], found.findings["sample.largest"]
    assert (cycle.path, cycle.line) == ("rust/sample/src/b.rs", 2)
    assert cycle.text == "cycle b.rs → a.rs → b.rs"
    assert "import of A from a.rs is the one to remove: move " in cycle.advice
    assert (removal.path, removal.line, removal.advice) == (cycle.path, cycle.line, cycle.advice)


def test_a_crate_without_cycles_has_zeros(tmp_path: Path) -> None:
    found = measure(write_crate(tmp_path, {"lib.rs": "pub struct A;"}))[0]
    assert found.counts == {"sample.cycles": 0, "sample.largest": 0}
    assert not any(found.findings.values())


@dataclass(frozen=True)
class Planned:
    """A crate: the parent and the file layout of each module, and the imports between modules."""

    parents: tuple[int, ...]  # of module 1, 2, ...; 0 is lib.rs
    has_mod_rs: tuple[bool, ...]
    imports: frozenset[tuple[int, int, str]]  # importing module, imported module, form

    def names(self, module: int) -> list[str]:
        if module == 0:
            return []
        return [*self.names(self.parents[module - 1]), f"m{module}"]

    def file(self, module: int) -> str:
        if module == 0:
            return "lib.rs"
        stem = "/".join(self.names(module))
        return f"{stem}/mod.rs" if self.has_mod_rs[module - 1] else f"{stem}.rs"

    def text(self, module: int) -> str:
        children = (n for n, parent in enumerate(self.parents, 1) if parent == module)
        lines = [f"pub mod m{child};" for child in children]
        lines.append(f"pub struct Item{module};")
        for number, (source, target, form) in enumerate(sorted(self.imports)):
            if source == module:
                lines.append(self._written(source, target, form, number))
        return "\n".join(lines)

    def _written(self, source: int, target: int, form: str, number: int) -> str:
        path = self.names(target)
        return form.format(
            module="::".join(["crate", *path]),
            relative="::".join(["self", *["super"] * len(self.names(source)), *path]),
            group="::{".join([*path, f"Item{target}, Item{target} as G{number}"]) + "}" * len(path),
            item=f"Item{target}",
            number=number,
        )


FORMS = [
    "use {module}::{item};",
    "use {relative}::{item} as Renamed{number};",
    "use crate::{{{group}}};",
    "use {module}::*; fn glob{number}(_: {item}) {{}}",
    "fn path{number}(_: {module}::{item}) {{}}",
    "fn call{number}() {{ vec![{relative}::{item}]; }}",
    "use {module} as module{number}; const C{number}: u8 = module{number}::{item};",
    "fn local{number}() {{ use {module}::{{self, {item}}}; }}",
]


@st.composite
def planned_crates(draw: st.DrawFn) -> Planned:
    count = draw(st.integers(1, 6))
    parents = tuple(draw(st.integers(0, number)) for number in range(count))
    layout = tuple(draw(st.booleans()) for _ in range(count))
    module = st.integers(0, count)
    imports = draw(st.frozensets(st.tuples(module, module, st.sampled_from(FORMS)), max_size=14))
    # A glob of the crate or of the importing module brings in names that other imports use, too.
    kept = frozenset(each for each in imports if each[0] != each[1] and each[1] != 0)
    return Planned(parents, layout, kept)


@given(planned_crates())
@settings(max_examples=30, deadline=None)
def test_edges_are_those_that_were_written(plan: Planned) -> None:
    files = {plan.file(module): plan.text(module) for module in range(len(plan.parents) + 1)}
    with tempfile.TemporaryDirectory() as folder:
        found = edges(write_crate(Path(folder), files))
    assert found == {(plan.file(source), plan.file(target)) for source, target, _ in plan.imports}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    files = [f"f{number}" for number in range(draw(st.integers(1, 7)))]
    pairs = st.tuples(st.sampled_from(files), st.sampled_from(files))
    chosen = draw(st.frozensets(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=20))
    return graph_of(Import(source, target, 1) for source, target in sorted(chosen))


def _reachable(graph: Graph) -> set[tuple[str, str]]:
    """Pairs of a file and one that it imports directly or indirectly, by repeated squaring."""
    pairs = {(source, target) for source, targets in graph.items() for target in targets}
    while True:
        longer = {(a, d) for (a, b), (c, d) in itertools.product(pairs, pairs) if b == c} | pairs
        if longer == pairs:
            return pairs
        pairs = longer


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_components_are_the_files_that_reach_each_other(graph: Graph) -> None:
    pairs = _reachable(graph)
    files = {file for pair in pairs for file in pair}
    together = {frozenset(b for b in files if (a, b) in pairs and (b, a) in pairs) for a in files}
    found = cycles(graph)
    assert set(found) == {component for component in together if component}
    assert [len(component) for component in found] == sorted(map(len, found), reverse=True)


@given(graphs(), st.integers(-1, 1))
@settings(max_examples=60, deadline=None)
def test_removing_the_suggested_imports_leaves_no_cycle(graph: Graph, rise: int) -> None:
    for component in cycles(graph):
        removed = imports_to_remove(graph, component, lambda source, target: rise)
        kept = {each for targets in within(graph, component).values() for each in targets.values()}
        assert set(removed) <= kept
        assert not cycles(graph_of(kept - set(removed)))


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_a_shortest_cycle_has_the_fewest_imports(graph: Graph) -> None:
    for component in cycles(graph):
        inner = within(graph, component)
        for through in (each for targets in inner.values() for each in targets.values()):
            found = shortest_cycle(inner, through)
            assert found[0] == found[-1] == through.source
            assert found[1] == through.target
            assert all(target in inner[source] for source, target in itertools.pairwise(found))
            assert len(found) - 2 == _distance(inner, through.target, through.source)


def _distance(graph: Graph, start: str, end: str) -> int:
    """The number of imports on a shortest way, by growing the set of files that are reached."""
    reached: set[str] = {start}
    for steps in itertools.count():
        if end in reached:
            return steps
        reached |= {target for file in reached for target in graph.get(file, ())}
    raise AssertionError


def test_an_import_that_points_up_is_removed_first() -> None:
    graph = graph_of([Import("a", "b", 1), Import("b", "a", 1), Import("b", "c", 1)])
    heights: Sequence[str] = "cba"
    removed = imports_to_remove(
        graph, frozenset("ab"), lambda source, target: heights.index(target) - heights.index(source)
    )
    assert [(each.source, each.target) for each in removed] == [("b", "a")]
