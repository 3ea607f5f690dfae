"""Each guard of size finds a planted fault at its line, and nothing in the clean variant."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest

from tests.tools.module_trees import write_tree
from tools.guards.blocks import blocks
from tools.guards.figures import Finding, Measure
from tools.guards.sizes import FILES_MAX, FUNCTION_LINES_MAX, measure
from tools.guards.sizes.echoes import echoes
from tools.guards.sizes.functions import long_functions
from tools.guards.tree import ROOT, Tree


def _measure(root: Path, name: str, files: dict[str, str]) -> Measure:
    (found,) = (m for m in measure(write_tree(root, files)) if m.name == name)
    return found


def _findings(found: Measure) -> dict[str, list[tuple[str, int]]]:
    """Path and line of the findings by key; each count equals their number."""
    assert {key: len(rows) for key, rows in found.findings.items()} == found.counts
    return {key: [(row.path, row.line) for row in rows] for key, rows in found.findings.items()}


# Width

WORDS = "word " * 18 + "and a few words"  # 105 columns
FITS = WORDS[: 100 - len("// ")]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("rust/log/src/a.rs", f"fn f() {{\n    // {WORDS}\n}}\n", 2),
        ("rust/log/src/a.rs", f"/// Short.\n/// {WORDS}\nfn f() {{}}\n", 2),
        ("rust/log/src/a.rs", f"fn f() {{}} // {WORDS}\n", 1),
        ("rust/log/src/a.rs", f"/* one\n   {WORDS}\n*/\n", 2),
        ("spark_udfs/a.py", f"# {WORDS}\n", 1),
        ("spark_udfs/a.py", f'"""Short.\n\n{WORDS}\n"""\n', 3),
        ("spark_udfs/a.py", f"x = 1  # {WORDS}\n", 1),
        ("pyx/a.pyx", f"cdef int x  # {WORDS}\n", 1),
    ],
)
def test_a_wide_comment_is_found_at_its_line(
    tmp_path: Path, path: str, text: str, line: int
) -> None:
    found = _measure(tmp_path, "wide_comments", {path: text})
    (places,) = _findings(found).values()
    assert places == [(path, line)]
    (finding,) = next(iter(found.findings.values()))
    assert finding.text.endswith(" columns")
    assert finding.advice == "wrap the comment at 100 columns"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("rust/log/src/a.rs", f"// {FITS}\n"),
        ("rust/log/src/a.rs", f'const A: &str = "{WORDS} // {WORDS}";\n'),
        ("rust/log/src/a.rs", f"/// | {WORDS} |\nfn f() {{}}\n"),
        ("rust/log/src/a.rs", f"// See https://example.org/{'a' * 90}\n"),
        ("spark_udfs/a.py", f'A = "{WORDS} # {WORDS}"\n'),
    ],
)
def test_narrow_comments_tables_urls_and_wide_code_are_accepted(
    tmp_path: Path, path: str, text: str
) -> None:
    assert _findings(_measure(tmp_path, "wide_comments", {path: text})) == {}


def test_wide_prose_of_markdown_is_found_and_tables_code_and_addresses_are_not(
    tmp_path: Path,
) -> None:
    wide = "word " * 25
    address = "a" * 120
    text = f"""\
# Title

A paragraph.
{wide}

- an item
  {wide}

> {wide}

| a | b |
|---|---|
| {wide} | {wide} |

```
{wide}
```

    {wide}

[a link](https://example.org/{address}) and https://example.org/{address}

[reference]: https://example.org/{address}
<!-- {wide} -->
"""
    found = _measure(tmp_path, "wide_markdown", {"pages/a.md": text, "pages/b.md": "Short.\n"})
    assert _findings(found) == {"pages/a.md": [("pages/a.md", line) for line in (4, 7, 9)]}
    assert found.findings["pages/a.md"][0].advice == "wrap the paragraph at 120 columns"


# Folders


def _folder(folder: str, count: int, suffix: str = ".py") -> dict[str, str]:
    return {f"{folder}/f{number:02}{suffix}": "" for number in range(count)}


def test_a_19th_source_file_makes_a_folder_crowded(tmp_path: Path) -> None:
    files = {
        **_folder("tests/log", FILES_MAX + 2),
        **_folder("tests/log/more", FILES_MAX),
        **_folder("rust/log/src", FILES_MAX, ".rs"),
        **_folder("tests/log/more", FILES_MAX, ".json"),
        **_folder("docs/tools", FILES_MAX + 1),
    }
    found = _measure(tmp_path, "crowded_folders", files)
    assert found.counts == {"tests/log": 2}
    rows = found.findings["tests/log"]
    assert [row.path for row in rows] == sorted(_folder("tests/log", FILES_MAX + 2))
    assert rows[0].text == "one of 20 source files in tests/log/"
    assert rows[0].advice == "move related files to a subfolder; a folder holds at most 18"


def test_generated_files_are_not_counted(tmp_path: Path) -> None:
    generated = _folder("rust/wire/src/tables", FILES_MAX + 1, ".rs")
    wide = dict.fromkeys(generated, f"// {WORDS}\nfn f() {{ x.unwrap() }}\n")
    measures = measure(write_tree(tmp_path, wide))
    assert {m.name: sum(m.counts.values()) for m in measures if m.counts} == {}


# Functions


def _rust(lines: int, name: str = "f") -> str:
    return f"fn {name}() {{\n" + "    x();\n" * (lines - 2) + "}\n"


def _python(lines: int, indent: str = "") -> str:
    return f"{indent}def f() -> None:\n" + f"{indent}    x()\n" * (lines - 1)


def test_a_function_of_71_lines_is_found_in_the_area_of_its_file(tmp_path: Path) -> None:
    files = {
        "rust/log/src/a.rs": "// a\n" + _rust(71, "long") + _rust(70),
        "rust/log/tests/a.rs": _rust(71),
        "spark_udfs/a.py": "x = 1\n" + _python(71) + "\n\ny = 1\n" + _python(70),
        "tests/log/a.py": "class A:\n" + _python(71, "    "),
    }
    found = _measure(tmp_path, "long_functions", files)
    assert _findings(found) == {
        "rust/log": [("rust/log/src/a.rs", 2)],
        "tests/rust/log": [("rust/log/tests/a.rs", 1)],
        "spark_udfs": [("spark_udfs/a.py", 2)],
        "tests/log": [("tests/log/a.py", 2)],
    }
    assert found.findings["rust/log"] == [
        Finding(
            "rust/log/src/a.rs", 2, "long has 71 lines",
            f"split it; a function has at most {FUNCTION_LINES_MAX} lines", 72,
        )
    ]  # fmt: skip


def _long(text: str) -> list[tuple[str, int]]:
    return [(f.name, f.lines) for f in long_functions("a.py", text, FUNCTION_LINES_MAX)]


def test_a_long_function_is_found_around_short_definitions_inside_it() -> None:
    inner = _python(30, "    ") + "    x()\n" * 30
    text = f"if x:\n    y()\ndef f() -> None:\n{inner}    if z:\n{_python(20, '        ')}"
    assert _long(text + _python(70)) == [("f", 82)]


def test_a_long_function_is_found_around_a_string_that_looks_like_definitions() -> None:
    quoted = ("def g() -> None:\n" + "text\n" * 30) * 2
    assert _long(f'def f() -> None:\n    """\n{quoted}    """\n{_python(30, "    ")}') == [
        ("f", 95)
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.pyx", "cpdef int f(int a):\n" + "    x()\n" * 70),
        ("a.pyx", "x = 1\ncdef class A:\n    cdef inline int f(\n        self,\n    ) except? -1 nogil:\n"
         + "        x()\n\n" * 33 + "        x()\n" * 2 + "    cdef int g(self):\n        x()\n"),
        ("a.pyx", "def f(a=(1, 2)):\n" + "    x()\n" * 70 + "y()\n" * 9),
        ("a.rs", f"proptest! {{\n#[test]\n{_rust(71)}{_rust(70)}}}\n"),
        ("a.rs", f"macro_rules! m {{ ($a:ident) => {{\n{_rust(71)}}} }}\n"),
        ("a.rs", f"m! {{ a! {{\n{_rust(71)}}} }}\nm! {{ fn f(); fn g() {{}} }}"),
        ("a.rs", f"m! {{\nfn f(a: [u8; 2]) -> [u8; 4] {_rust(71)[7:]}}}\n"),
        ("a.rs", "m! {\nfn f() { {\n" + '    x("}"); // }\n' * 69 + "} }\n}\n"),
    ],
)  # fmt: skip
def test_a_function_of_cython_or_of_a_macro_is_found_once(path: str, text: str) -> None:
    found = long_functions(path, text, FUNCTION_LINES_MAX)
    assert [(function.name, function.lines) for function in found] == [("f", 71)]


@pytest.mark.parametrize(
    "text",
    [
        "cdef int f(int a)\n" + "x()\n" * 80,
        "cdef int a = f(\n1)\n" + "x()\n" * 80,
        'cdef extern from "a.h":\n' + "    int f(int a)\n" * 80,
        "cdef class A:\n" + "    x()\n" * 80,
    ],
)
def test_declarations_of_cython_are_not_functions(text: str) -> None:
    assert long_functions("a.pyx", text, FUNCTION_LINES_MAX) == []


# Panics


def test_panics_of_the_product_are_found_by_crate_and_those_of_tests_are_not(
    tmp_path: Path,
) -> None:
    source = """\
//! Call x.unwrap() in examples.
fn f() -> u8 {
    // x.unwrap()
    let a = x.unwrap();  // not y.unwrap()
    a.unwrap_or(1) + a
        .expect("a reason")
}
#[cfg(test)]
pub(crate) fn helper() { x.unwrap(); }
#[cfg(test)]
mod tests {
    fn g() { x.unwrap(); vec![y.expect("")]; }
}
fn h() { assert!(z.unwrap()); }
#[expect(dead_code)]
#[cfg(not(test))]
fn i() { z.unwrap(); }
#[cfg(any(test, unix))]
fn j() { z.unwrap(); }
"""
    files = {
        "rust/log/src/a.rs": source,
        "rust/log/src/lib.rs": "mod a;\n#[cfg(test)]\nmod model;\nmod b;\n",
        "rust/log/src/model.rs": "mod part; fn f() { x.unwrap(); }",
        "rust/log/src/model/part.rs": "fn f() { x.unwrap(); }",
        "rust/log/src/b/b_tests.rs": "fn f() { x.unwrap(); }",
        "rust/wire/tests/a.rs": "fn f() { x.unwrap(); }",
        "rust/wire/src/a.rs": "fn f() -> u8 { x.unwrap_or_default() }",
        "pykafka_core/a.py": "x.unwrap()\n",
    }
    found = _measure(tmp_path, "unwraps", files)
    path = "rust/log/src/a.rs"
    assert _findings(found) == {
        "rust/log": [(path, 4), (path, 6), (path, 14), (path, 17), (path, 19)]
    }
    rows = found.findings["rust/log"]
    assert [row.text for row in rows[:2]] == [".unwrap()", ".expect("]
    assert all("return the error" in row.advice for row in rows)
    assert found.report["unwrap"].endswith(" per 1,000 lines of Rust")


def test_panics_are_found_next_to_comments_and_texts_that_look_like_code(tmp_path: Path) -> None:
    source = """\
fn f() { let a = "http://b"; x.unwrap(); }
fn g() { /* a // b */ x.expect("c"); }
fn h() { let a = "x.unwrap()"; /* x.unwrap() */ }
fn i() { x // é
    . expect("a // b"); }
// `#[cfg(test)]` is not set here.
fn j() { x.unwrap(); }
#[doc = "cfg(test)"]
fn k() { x.unwrap(); }
fn l() { Option::unwrap(x); }
fn m() { x.map(Result::<u8, E>::expect); }
fn n() { x.map(std::result::Result::unwrap); <Option<u8>>::unwrap(x); }
fn o() { x . unwrap (
); }
fn p() { Option::unwrap_or(x, 1); other::unwrap(x); x.unwrap_or(1); x.expect_err("a"); }
"""
    files = {
        "rust/log/src/a.rs": source,
        "rust/log/src/lib.rs": "mod a;\n// #[cfg(test)]\nmod b;\n#[cfg(test)] // a\nmod c;\n",
        "rust/log/src/b.rs": "fn f() { x.unwrap(); }",
        "rust/log/src/c.rs": "fn f() { x.unwrap(); }",
    }
    found = _measure(tmp_path, "unwraps", files)
    path = "rust/log/src/a.rs"
    lines = [(path, line) for line in (1, 2, 5, 7, 9, 10, 11, 12, 12, 13)]
    assert _findings(found) == {"rust/log": [*lines, ("rust/log/src/b.rs", 1)]}


# Documentation


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("index", "Index."),
        ("topic_name", "The topic name."),
        ("topic_name", "The name of the topic."),
        ("topicName", "Returns its topic names"),
        ("TopicPartitions", "Topic partition."),
        ("HTTPServer", "An HTTP server."),
        ("policies", "The policy."),
        ("batches", "A batch."),
        ("given", "It is given."),
        ("offset", "This one."),
    ],
)
def test_documentation_that_adds_nothing_to_the_name_is_an_echo(name: str, text: str) -> None:
    assert echoes(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("index", "Index of the first batch."),
        ("offset", "Exclusive."),
        ("timeout_ms", "The timeout, 5 s at most."),
        ("retention_ms", "`retention.ms`"),
        ("process", "Proceed."),
        ("equal", "`==`"),
        ("", "The value."),
    ],
)
def test_documentation_with_a_further_word_is_accepted(name: str, text: str) -> None:
    assert not echoes(name, text)


def test_echoing_documentation_is_found_at_its_item(tmp_path: Path) -> None:
    rust = """\
/// A batch of records.
pub struct Batch {
    /// Base offset.
    pub base_offset: i64,
    /// Bytes, header included.
    pub size: u32,
}
"""
    python = '''\
"""Records of one batch, as Python objects."""

LIMIT = 3
"""The limit."""


class Batch:
    """The batch."""

    def size(self) -> int:
        """In bytes, header included."""
        return 1
'''
    found = _measure(
        tmp_path, "echoing_docs", {"rust/record/src/a.rs": rust, "pykafka_core/batch.py": python}
    )
    assert _findings(found) == {
        "rust/record": [("rust/record/src/a.rs", 3)],
        "pykafka_core": [("pykafka_core/batch.py", 4), ("pykafka_core/batch.py", 8)],
    }
    (finding,) = found.findings["rust/record"]
    assert finding.text == "'Base offset.' only repeats the name base_offset"
    assert finding.advice.startswith("state a bound, a unit, a guarantee or an error")


# Lines of code


def test_lines_of_code_are_reported_by_language_without_comments_and_documentation(
    tmp_path: Path,
) -> None:
    files = {
        "rust/log/src/a.rs": "//! One.\n\nfn f() {} // a\n/* b\n c */\n#[cfg(test)]\nfn g() {}\n",
        "pykafka_core/a.py": '"""One.\n\nTwo.\n"""\n\n# a\nx = 1  # b\ny = """\ntext\n"""\n',
        "pykafka_core/a.pyi": "x: int\n",
        "tests/log/a.py": "x = 1\n\n",
        "bench/a.py": "x = 1\ny = 1\n",
        "pyx/a.pyx": "cdef int x\n",
    }
    report = _measure(tmp_path, "crowded_folders", files).report
    assert report == {
        "code lines of product": "Rust 1, Python 4, Python stubs 1, Cython 1",
        "code lines of tests": "Rust 2, Python 1",
        "code lines of bench and tools": "Python 2",
    }


# This repository


def test_comments_of_this_repository_are_those_that_tokenize_finds() -> None:
    tree = Tree(ROOT)
    for path in list(tree.sources(".py", under=("pykafka_core/", "tests/")))[::40]:
        text = tree.text(path)
        found = {
            line
            for b in blocks(path, text)
            if b.kind == "comment"
            for line in (b.line, b.last_line)
        }
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        lines = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
        assert found <= lines, path
        assert lines <= {
            line for b in blocks(path, text) for line in range(b.line, b.last_line + 1)
        }, path
