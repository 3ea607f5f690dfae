"""Guards of size: wide lines, crowded folders, long functions, panics, empty documentation.

Also reports, without a ceiling, the lines of code by language.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.guards.blocks import Block, blocks
from tools.guards.figures import Finding, Measure
from tools.guards.sizes.echoes import echoes
from tools.guards.sizes.functions import long_functions
from tools.guards.sizes.widths import wide_comments, wide_markdown
from tools.guards.source import rust
from tools.guards.source.cfg_test import files_under_cfg_test, lines_under_cfg_test
from tools.guards.tree import PRODUCT, Tree, area, is_test

SUFFIXES = (".rs", ".py", ".pyi", ".pyx", ".pxd")
FILES_MAX = 18
FUNCTION_LINES_MAX = 70
FOLDERS = (*(f"{folder}/" for folder in PRODUCT), "tests/", "bench/", "tools/")
"""Where the number of files in a folder is limited."""

Findings = dict[str, list[Finding]]


@dataclass(frozen=True, slots=True)
class Source:
    """A file of Rust, Python or Cython."""

    path: str
    text: str
    lines: Sequence[str]
    blocks: Sequence[Block]
    test_lines: frozenset[int]  # of Rust under ``cfg(test)``; every line of a file of tests


SourceGuard = Callable[[Source], Iterable[Finding]]


def measure(tree: Tree) -> list[Measure]:
    """Measure every size of the tree; raises SyntaxError if a Python file cannot be parsed."""
    by_file: dict[str, Findings] = {name: defaultdict(list) for name in GUARDS}
    code_lines: Counter[tuple[str, str]] = Counter()
    test_files = files_under_cfg_test(tree)
    for path in tree.sources(*SUFFIXES):
        source = _source(path, tree.text(path), is_test(path) or path in test_files)
        code_lines.update(_code_lines(source))
        key = area(path)
        for name, guard in GUARDS.items():
            by_file[name][key] += guard(source)
    reports = {"unwraps": _unwrap_report(by_file["unwraps"], code_lines)}
    measures = [_listed(name, found, reports.get(name)) for name, found in by_file.items()]
    return [
        *measures,
        _listed("wide_markdown", _wide_markdown(tree), None),
        _crowded_folders(tree, _code_report(code_lines)),
    ]


def _source(path: str, text: str, tests_only: bool) -> Source:
    lines = text.split("\n")
    test_lines = frozenset[int]()
    if tests_only:
        test_lines = frozenset(range(1, len(lines) + 1))
    elif path.endswith(".rs"):
        test_lines = lines_under_cfg_test(text)
    return Source(path, text, lines, blocks(path, text), test_lines)


def _listed(name: str, findings: Findings, report: Mapping[str, str] | None) -> Measure:
    """A measure that counts its findings."""
    findings = {key: found for key, found in findings.items() if found}
    return Measure(name, {k: len(found) for k, found in findings.items()}, findings, report or {})


def _wide_markdown(tree: Tree) -> Findings:
    return {path: list(wide_markdown(path, tree.text(path))) for path in tree.sources(".md")}


# Folders

_COUNTED = (*SUFFIXES, ".c", ".go", ".java", ".js")


def _crowded_folders(tree: Tree, report: Mapping[str, str]) -> Measure:
    """Count the source files of a folder beyond `FILES_MAX`; each of its files is a finding."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in tree.sources(*_COUNTED, under=FOLDERS):
        folders[path.rpartition("/")[0]].append(path)
    crowded = {folder: paths for folder, paths in folders.items() if len(paths) > FILES_MAX}
    findings = {folder: _files_of(folder, paths) for folder, paths in crowded.items()}
    counts = {folder: len(paths) - FILES_MAX for folder, paths in crowded.items()}
    return Measure("crowded_folders", counts, findings, report)


def _files_of(folder: str, paths: list[str]) -> list[Finding]:
    text = f"one of {len(paths)} source files in {folder}/"
    advice = f"move related files to a subfolder; a folder holds at most {FILES_MAX}"
    return [Finding(path, 0, text, advice) for path in paths]


# Functions, panics, documentation


def _wide_comments(source: Source) -> Iterator[Finding]:
    return wide_comments(source.path, source.lines, source.blocks)


def _long_functions(source: Source) -> Iterator[Finding]:
    for function in long_functions(source.path, source.text, FUNCTION_LINES_MAX):
        text = f"{function.name} has {function.lines} lines"
        advice = f"split it; a function has at most {FUNCTION_LINES_MAX} lines"
        yield Finding(source.path, function.line, text, advice, function.last_line)


_TYPE = r"\b(?:Option|Result)\s*(?:(?:::\s*)?<[^;{}]*?>\s*)?>?\s*::"
_PANIC = re.compile(rf"(?:\.\s*(?=unwrap\s*\(\s*\)|expect\s*\()|{_TYPE}\s*)(unwrap|expect)\b")
_CALLS = {"unwrap": ".unwrap()", "expect": ".expect("}
_UNWRAP_ADVICE = "return the error if it can occur; use a type that rules it out if it cannot"


def _unwraps(source: Source) -> Iterator[Finding]:
    """Yield the uses of ``unwrap`` and ``expect`` in Rust outside tests, calls and paths."""
    if not source.path.endswith(".rs") or not _PANIC.search(source.text):
        return
    code = rust.code_of(source.text)
    for match in _PANIC.finditer(code):
        line = code.count("\n", 0, match.start(1)) + 1
        if line not in source.test_lines:
            yield Finding(source.path, line, _CALLS[match[1]], _UNWRAP_ADVICE)


def _echoing_docs(source: Source) -> Iterator[Finding]:
    for block in source.blocks:
        if block.kind == "doc" and len(block.text) < 100 and echoes(block.subject, block.text):
            text = f"{block.text.strip()!r} only repeats the name {block.subject}"
            advice = "state a bound, a unit, a guarantee or an error; or remove it where none is required"
            yield Finding(source.path, block.line, text, advice, block.last_line)


GUARDS: Mapping[str, SourceGuard] = {
    "wide_comments": _wide_comments,
    "long_functions": _long_functions,
    "unwraps": _unwraps,
    "echoing_docs": _echoing_docs,
}
"""The guards that look at one source file at a time; their keys are areas."""


# Lines of code

_LANGUAGES = {
    ".rs": "Rust",
    ".py": "Python",
    ".pyi": "Python stubs",
    ".pyx": "Cython",
    ".pxd": "Cython",
}


def _comment_lines(source: Source) -> frozenset[int]:
    """The lines that hold a comment or documentation and no code."""
    found: set[int] = set()
    for block in source.blocks:
        alone = source.lines[block.line - 1].lstrip().startswith(("#", "//", "/*"))
        if alone or block.kind == "doc" or block.last_line > block.line:
            found.update(range(block.line, block.last_line + 1))
    return frozenset(found)


def _code_lines(source: Source) -> Counter[tuple[str, str]]:
    """The lines with code, by part of the repository and language."""
    comments = _comment_lines(source)
    numbers = {
        n for n, line in enumerate(source.lines, 1) if line and not line.isspace()
    } - comments
    language = _LANGUAGES[source.path[source.path.rindex(".") :]]
    part = "product" if source.path.startswith(FOLDERS[: len(PRODUCT)]) else "bench and tools"
    tests = len(numbers & source.test_lines)
    return Counter({("tests", language): tests, (part, language): len(numbers) - tests})


def _code_report(code_lines: Counter[tuple[str, str]]) -> dict[str, str]:
    return {
        f"code lines of {part}": ", ".join(
            f"{language} {code_lines[part, language]:,}"
            for language in dict.fromkeys(_LANGUAGES.values())
            if code_lines[part, language]
        )
        for part in ("product", "tests", "bench and tools")
    }


def _unwrap_report(unwraps: Findings, code_lines: Counter[tuple[str, str]]) -> dict[str, str]:
    """The rates of panics per 1,000 lines of the product's Rust code."""
    found = Counter(finding.text for findings in unwraps.values() for finding in findings)
    lines = max(code_lines["product", "Rust"], 1)
    return {
        call.strip(".()"): f"{1000 * found[call] / lines:.1f} per 1,000 lines of Rust"
        for call in _CALLS.values()
    }
