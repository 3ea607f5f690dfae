"""Check the prose of files (comments, test names, documents, messages), or of standard input.

Lists each word or construction that plain technical English avoids, and advice to rewrite it.
Exit status: 0 nothing found, 1 something found, 2 wrong usage.

Examples:
  python tools/prose.py                          every file of the repository
  python tools/prose.py rust/log docs/PLANES.md    a folder and a file
  git log -1 --format=%B | python tools/prose.py - --commit
  python tools/prose.py - < notes.txt            any other text
  echo "Sync on close" | python tools/prose.py - --commit
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.guards.figures import Finding  # noqa: E402
from tools.guards.prose import (  # noqa: E402
    DOCUMENTS,
    SOURCES,
    check_file,
    check_paragraphs,
    check_subject,
)
from tools.guards.prose.allowed import FILE, Allowed, AllowListError, load  # noqa: E402
from tools.guards.prose.subjects import Message, is_merge  # noqa: E402
from tools.guards.tree import Tree, TreeError  # noqa: E402

STDIN = "-"


class UsageError(Exception):
    """An argument cannot be used; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        findings = list(_findings(options.paths, commit=options.commit))
    except (UsageError, AllowListError, TreeError) as error:
        print(f"prose.py: {error}", file=sys.stderr)
        return 2
    try:
        _print(findings, as_json=options.json)
    except BrokenPipeError:  # as in `| head`
        sys.stderr.close()
    return 1 if findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prose.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files or folders of the repository, or - for standard input; default: all files",
    )
    parser.add_argument(
        "--commit",
        action="store_true",
        help="read standard input as a commit message: the first paragraph is its subject; # lines are ignored",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array of the findings")
    return parser


def _findings(paths: Sequence[str], *, commit: bool) -> Iterator[Finding]:
    if STDIN in paths:
        if len(paths) > 1:
            raise UsageError("- excludes other arguments: give either standard input or paths")
        text = _standard_input()
        return _commit(text) if commit else check_paragraphs(text, "<stdin>")
    if commit:
        raise UsageError("--commit reads standard input: add -")
    return _of_files(paths)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input: byte {error.start} is not UTF-8") from None


def _commit(message: str) -> Iterator[Finding]:
    read = Message.of(message)
    if not is_merge(read.subject):
        yield from check_subject(read.subject, "<subject>")
    yield from check_paragraphs(read.body, "<message>")


def _of_files(paths: Sequence[str]) -> Iterator[Finding]:
    tree = Tree(ROOT)
    permitted = load(tree.read(FILE)) if (ROOT / FILE).is_file() else Allowed()
    for path in _selected(tree, paths):
        for item in check_file(path, tree.text(path), permitted):
            yield from item.findings


def _selected(tree: Tree, paths: Sequence[str]) -> Iterable[str]:
    """Return the files to check, each once, in the order of the arguments."""
    if not paths:
        return tree.sources(*SOURCES, *DOCUMENTS)
    return dict.fromkeys(name for path in paths for name in _below(tree, path))


def _below(tree: Tree, path: str) -> list[str]:
    absolute = Path(path).resolve()
    if not absolute.exists():
        raise UsageError(f"{path}: no such file or folder")
    if not absolute.is_relative_to(ROOT):
        raise UsageError(f"{path}: outside the repository {ROOT}; use - to check other text")
    name = absolute.relative_to(ROOT).as_posix()
    if absolute.is_dir():
        prefix = "" if name == "." else f"{name}/"
        return list(tree.sources(*SOURCES, *DOCUMENTS, under=(prefix,)))
    if not name.endswith((*SOURCES, *DOCUMENTS)):
        raise UsageError(f"{path}: neither Markdown nor Rust, Python or Cython source")
    return [name]


def _print(findings: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
        return
    for finding in findings:
        print(finding)
    if findings:
        texts = len({(finding.path, finding.line) for finding in findings})
        print(f"{len(findings)} found on {texts} lines")


if __name__ == "__main__":
    sys.exit(main())
