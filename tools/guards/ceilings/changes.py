"""The lines of a work tree that were added or changed since a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.guards.figures import Finding
from tools.guards.tree import GitError, Tree

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FORMAT = ("-p", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-textconv")


@dataclass(frozen=True)
class Changes:
    """The additions of a diff. Paths are relative to the root of the tree."""

    lines: Mapping[str, frozenset[int]]  # by path, from 1; lines of untracked files are not listed
    added: frozenset[str]  # files that had another name or did not exist
    untracked: frozenset[str]  # files that git does not track; each of their lines is new

    def include(self, finding: Finding) -> bool:
        """Return whether a finding lies on a changed line, or concerns a new file or its folder."""
        if finding.path in self.untracked:
            return True
        if not finding.line:
            new = self.added | self.untracked
            return finding.path in new or any(p.startswith(f"{finding.path}/") for p in new)
        last = max(finding.line, finding.last_line)
        return not self.lines.get(finding.path, frozenset()).isdisjoint(
            range(finding.line, last + 1)
        )


def since_last_change_of(tree: Tree, path: str) -> Changes | None:
    """The changes since the last commit that touched `path`; None if there is no such commit."""
    try:
        commit = tree.git("rev-list", "--max-count=1", "HEAD", "--", path).strip()
    except GitError:  # a repository without any commit
        return None
    return since(tree, commit) if commit else None


def since(tree: Tree, commit: str) -> Changes:
    """The changes of the work tree since a commit, untracked files included."""
    lines: dict[str, set[int]] = {}
    added: set[str] = set()
    for path, new_file, changed in _hunks(tree.git("diff-index", *_FORMAT, commit, "--")):
        lines.setdefault(path, set()).update(changed)
        if new_file:
            added.add(path)
    others = tree.git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return Changes(
        lines={path: frozenset(numbers) for path, numbers in lines.items()},
        added=frozenset(added),
        untracked=frozenset(filter(None, others)),
    )


def _hunks(diff: str) -> Iterator[tuple[str, bool, range]]:
    """Yield each hunk of a diff without context: path, whether its name is new, and the new lines.

    A renamed file without changes yields an empty range.
    """
    path, new_file = "", False
    rows = iter(diff.split("\n"))
    for row in rows:
        if row.startswith("diff --git "):
            new_file = False
        elif row.startswith("rename to "):
            path, new_file = row.removeprefix("rename to "), True
            yield path, new_file, range(0)
        elif row == "--- /dev/null":
            new_file = True
        elif row.startswith("+++ "):
            path = row.removeprefix("+++ b/").removesuffix("\t")
        elif hunk := _HUNK.match(row):
            removed, start, count = (int(group or 1) for group in hunk.groups())
            yield path, new_file, range(start, start + count)
            _skip(rows, removed + count)


def _skip(rows: Iterator[str], count: int) -> None:
    """Consume `count` lines of a hunk, whose text could look like a header."""
    for _ in range(count):
        row = next(rows, "")
        if row.startswith("\\"):  # "\ No newline at end of file" is not counted
            next(rows, "")
