"""Guard: tests in Rust wait for `PATIENCE`, and do not sleep.

The counterpart of `patience`. Counted in tests are durations that are numbers, or names that the
file gives to such durations, in these places:

* arguments of the functions in `WAITS`, such as ``received.recv_timeout(Duration::from_secs(5))``;
* deadlines, such as ``Instant::now() + Duration::from_secs(5)``;
* upper limits of a measured time, such as ``begun.elapsed() < Duration::from_secs(5)``.

A constant `PATIENCE` is the bound to use. Sleeps are calls of the functions in `SLEEPS`. Macros are
not parsed by tree-sitter, so the guard reads text without comments and strings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tools.guards.figures import Finding, Measure
from tools.guards.source import rust
from tools.guards.source.cfg_test import files_under_cfg_test, lines_under_cfg_test
from tools.guards.tree import Tree, area, is_test

BOUND = "PATIENCE"
WAITS = (
    "connect_timeout", "recv_timeout", "set_read_timeout", "set_write_timeout", "timeout", "timeout_at",
    "wait_for", "wait_timeout", "wait_timeout_while", "wait_while_for",
)  # fmt: skip
SLEEPS = ("sleep", "sleep_ms", "park_timeout")

ADVICE = "wait for a constant PATIENCE of at least a minute"
SLEEP_ADVICE = "wait for an event or a state, such as a channel or a condition variable"

_NUMBER = re.compile(r"\bDuration::(?:from_\w+|new)\(\s*[\d_.]+")
_NAMED = re.compile(
    r"\b(?:const|static|let)\s+(?:mut\s+)?(\w+)\s*(?::[^=;]*)?=\s*([\w:]*Duration::[^;]*);"
)
_CALL = re.compile(rf"(?<!\bfn )\b({'|'.join((*WAITS, *SLEEPS))})\s*\(")
_LIMIT = re.compile(r"\bInstant::now\(\)\s*\+|\.elapsed\(\)\s*<=?(?!<)")
_EXPRESSION = re.compile(r"\s*(?:[\w:.]+(?:\([^()]*\))?)")
_BLOCK = re.compile(r"\{[^{}]*\}")


def measure(tree: Tree) -> list[Measure]:
    """Return the measures `rust_timeouts` and `rust_sleeps`, by area of the tests."""
    test_files = files_under_cfg_test(tree)
    timeouts: defaultdict[str, list[Finding]] = defaultdict(list)
    sleeps: defaultdict[str, list[Finding]] = defaultdict(list)
    for path in tree.sources(".rs"):
        text = tree.text(path)
        if "Duration" not in text and "sleep" not in text:
            continue
        tests = None if is_test(path) or path in test_files else lines_under_cfg_test(text)
        key = area(path) if is_test(path) else f"tests/{area(path)}"
        for finding in _findings(path, rust.code_of(text)):
            if tests is None or finding.line in tests:
                (sleeps if finding.advice == SLEEP_ADVICE else timeouts)[key].append(finding)
    return [_measure("rust_timeouts", timeouts), _measure("rust_sleeps", sleeps)]


def _measure(name: str, found: Mapping[str, Sequence[Finding]]) -> Measure:
    return Measure(name, {key: len(findings) for key, findings in found.items()}, found)


def _findings(path: str, code: str) -> Iterator[Finding]:
    numbers = {name for name, value in _NAMED.findall(code) if _NUMBER.search(value)}
    for call in _CALL.finditer(code):
        arguments = code[call.end() : _closing(code, call.end())]
        if call[1] in SLEEPS:
            yield _finding(path, code, call, "a sleep", SLEEP_ADVICE)
        elif _is_number(_without_blocks(arguments), numbers):
            yield _finding(path, code, call, "the bound of a wait is a number", ADVICE)
    for limit in _LIMIT.finditer(code):
        bound = _EXPRESSION.match(code, limit.end())
        if bound and _is_number(bound[0], numbers):
            yield _finding(path, code, limit, "the bound of a wait is a number", ADVICE)


def _finding(path: str, code: str, place: re.Match[str], fault: str, advice: str) -> Finding:
    text = code[place.start() : code.find("\n", place.end())].strip()
    line = code.count("\n", 0, place.start()) + 1
    return Finding(path, line, f"{fault}: {text[:60]}", advice)


def _closing(code: str, start: int) -> int:
    """Return the offset of the bracket that closes the one before `start`, or the end."""
    depth = 1
    for bracket in re.compile(r"[()]").finditer(code, start):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.start()
    return len(code)


def _without_blocks(code: str) -> str:
    """Return the arguments of a call without the bodies of closures and futures."""
    while (shorter := _BLOCK.sub("", code)) != code:
        code = shorter
    return code


def _is_number(code: str, numbers: set[str]) -> bool:
    names = set(re.findall(r"\w+", code))
    return BOUND not in names and bool(_NUMBER.search(code) or names & numbers)
