"""The prose guard: comments, test names, documents, commits and messages in plain English.

`rules` holds the patterns. `measure` counts the texts of a tree that contain one. `tools/prose.py`
checks single files, and text before it is written.

Every string literal of the product, the tools and the benchmarks counts as a message, however it
reaches a log, an error, a help page or a terminal. Strings of tests are mostly their data: there,
only the texts of log calls and errors are messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tools.guards.blocks import blocks, prose_of
from tools.guards.ceilings.file import load as load_ceilings
from tools.guards.figures import Finding, Measure
from tools.guards.prose import allowed, subjects, text
from tools.guards.prose.rules import Hit, Kind, hits
from tools.guards.source import Literals, python, rust
from tools.guards.source.cfg_test import lines_under_cfg_test
from tools.guards.tree import PRODUCT, Tree, area, is_test

SOURCES = (".rs", ".py", ".pyi", ".pyx", ".pxd")
DOCUMENTS = (".md",)

PATTERNS = "tools/guards/prose/rules.py"
"""The file whose string literals are the patterns."""

MEASURES = (
    "prose_comments",
    "prose_test_names",
    "prose_documents",
    "prose_commits",
    "prose_messages",
)
"""The names of the measures."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that counts once, however many hits it has."""

    measure: str  # one of `MEASURES`
    findings: tuple[Finding, ...]


@dataclass
class _Tally:
    """Texts and flagged texts of one measure."""

    unit: str  # of its reports: "blocks"
    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    flagged: Counter[str] = field(default_factory=Counter)  # by group
    total: Counter[str] = field(default_factory=Counter)

    def add(self, key: str, group: str, findings: Iterable[Finding]) -> None:
        found = list(findings)
        self.total[group] += 1
        if found:
            self.flagged[group] += 1
            self.counts[key] += 1
            self.findings.setdefault(key, []).extend(found)

    def report(self) -> dict[str, str]:
        return {
            group: f"{100 * self.flagged[group] / total:.1f} % of {total:,} {self.unit}"
            for group, total in sorted(self.total.items())
        }


def measure(tree: Tree) -> list[Measure]:
    """Count the texts of a tree that contain a pattern.

    Keys are `area` of the file for comments, test names and messages; the path for documents; and
    ``commits``. Each text counts once; each hit is a finding. Reports give shares of all texts.

    Raises:
        AllowListError: The allow-list is faulty, or nothing needs one of its entries.
    """
    permitted = _allowed(tree)
    tallies = dict(
        zip(
            MEASURES,
            map(_Tally, ("blocks", "names", "sentences", "subjects", "texts")),
            strict=True,
        )
    )
    for path in tree.sources(*SOURCES, *DOCUMENTS):
        key, group = (path if path.endswith(DOCUMENTS) else area(path)), group_of(path)
        for item in check_file(path, tree.text(path), permitted):
            tallies[item.measure].add(key, group, item.findings)
    commits, reason = subjects.commits_since(tree, load_ceilings(tree).base)
    for commit, subject in commits:
        tallies["prose_commits"].add(
            "commits", "commits", check_subject(subject, f"commit {commit}")
        )
    reports = {name: tally.report() for name, tally in tallies.items()}
    if reason:
        reports["prose_commits"]["commits"] = reason
    permitted.check_used()
    return [
        Measure(name, tally.counts, tally.findings, reports[name])
        for name, tally in tallies.items()
    ]


def _allowed(tree: Tree) -> allowed.Allowed:
    return allowed.load(tree.read(allowed.FILE) if (tree.root / allowed.FILE).is_file() else "")


def group_of(path: str) -> str:
    """Return the group of a file in reports: product, tests, documents, or its top folder."""
    top = PurePosixPath(path).parts[0]
    if path.endswith(DOCUMENTS):
        return "documents"
    if is_test(path):
        return "tests"
    return "product" if top in PRODUCT else top


def check_file(path: str, content: str, permitted: allowed.Allowed | None = None) -> Iterator[Text]:
    """Yield every text of a file with its findings; only source code and Markdown have texts.

    Args:
        path: Relative to the root of the tree; its suffix decides how the content is read.
        content: The text of the file.
        permitted: The allow-list; its entries for `path` are marked as used.
    """
    checker = _Checker(path, permitted or allowed.Allowed())
    if path.endswith(DOCUMENTS):
        yield from checker.markdown(content)
    elif path.endswith(SOURCES):
        yield from checker.blocks(content)
        found = (rust if path.endswith(".rs") else python).literals(content)
        yield from checker.test_names(found)
        yield from checker.messages(_messages(path, content, found))


def _messages(path: str, content: str, found: Literals) -> list[tuple[int, str]]:
    """Return the literals of a file that people read; see the module."""
    if is_test(path) or path == PATTERNS:
        return found.messages
    tests = lines_under_cfg_test(content) if path.endswith(".rs") else frozenset[int]()
    return sorted({*found.messages, *(text for text in found.texts if text[0] not in tests)})


def check_paragraphs(content: str, path: str) -> Iterator[Finding]:
    """Yield the findings of a text that is not in a file, read as Markdown; `path` names it."""
    for item in _Checker(path, allowed.Allowed()).markdown(content):
        yield from item.findings


def check_subject(subject: str, path: str) -> Iterator[Finding]:
    """Yield the findings of a subject: its form, then its words; `path` names the commit.

    The subject of a revert quotes another commit and has no findings.
    """
    if subjects.is_revert(subject):
        return
    for fault, advice in subjects.form_faults(subject):
        yield Finding(path, 0, f"{subject}: {fault}", advice)
    start = subject.find(": ") + 2 if ": " in subject else 0
    unit = text.Source(subject, subject).unit(start, len(subject))
    for hit in hits(unit.text, "subject"):
        yield Finding(path, 0, f"{subject}: {unit.quoted(hit.start, hit.end)}", hit.rule.advice)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Reads the texts of one file."""

    path: str
    permitted: allowed.Allowed

    def markdown(self, content: str) -> Iterator[Text]:
        for unit in text.sentences(content):
            kind: Kind = "heading" if unit.is_heading else "sentence"
            yield Text("prose_documents", tuple(self._findings(unit, kind, 1)))

    def blocks(self, content: str) -> Iterator[Text]:
        for block in blocks(self.path, content):
            masked = prose_of(block)
            if not masked.strip():
                continue
            units = text.paragraphs(text.Source(block.text, masked))
            found = [
                finding
                for index, unit in enumerate(units)
                for finding in self._findings(unit, "comment" if index else block.kind, block.line)
            ]
            yield Text("prose_comments", tuple(found))

    def test_names(self, found: Literals) -> Iterator[Text]:
        for line, name in found.tests:
            words = name.removeprefix("test_").replace("_", " ")
            unit = text.Unit(0, words, words.replace(" ", "_"))
            yield Text("prose_test_names", tuple(self._findings(unit, "test name", line)))

    def messages(self, found: Iterable[tuple[int, str]]) -> Iterator[Text]:
        for line, message in found:
            masked = text.mask_message(message)
            if len(masked.split()) > 1:
                unit = text.Source(message, masked).unit(0, len(message))
                yield Text("prose_messages", tuple(self._findings(unit, "message", line)))

    def _findings(self, unit: text.Unit, kind: Kind, first_line: int) -> Iterator[Finding]:
        for hit in hits(unit.text, kind):
            if not self.permitted.covers(self.path, unit, hit.start, hit.end):
                yield self._finding(unit, hit, first_line)

    def _finding(self, unit: text.Unit, hit: Hit, first_line: int) -> Finding:
        first = first_line + unit.line_at(hit.start)
        last = first_line + unit.line_at(hit.end - 1)
        words = unit.quoted(hit.start, hit.end)
        if len(words) > 60:
            words = words[:57] + "..."
        return Finding(self.path, first, f"{hit.rule.name}: {words}", hit.rule.advice, last)
