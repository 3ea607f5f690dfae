"""The history of the ceilings: only a commit with a ``[[raised]]`` entry may raise a total.

The revert of a commit that lowered a total must raise it again. Such a commit adds an entry to the
file, which permits one total of one measure in this commit:

* no parent of the commit has the entry, so an old entry permits nothing in a later commit;
* its total is the one that the commit stores, and its subject is that of the commit.

A merge inherits entries: a parent that lacks one of them is not compared in its measure.

The base may move to an earlier commit alone: a later one would hide the subjects up to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tools.guards.ceilings.file import BASE, FILE, Ceilings, CeilingsError, Raised, parse
from tools.guards.tree import GitError, Tree

Totals = Mapping[str, int]


@dataclass(frozen=True)
class _Version:
    """The totals and entries of the file at one commit, or in the work tree."""

    totals: Totals = field(default_factory=dict)
    raised: frozenset[Raised] = frozenset()
    base: str = ""


@dataclass(frozen=True)
class _Step:
    """A version after those of its parents."""

    before: Totals  # that it is compared with
    after: _Version
    own: tuple[Raised, ...]  # entries that no parent has

    def refusals(self, subject: str | None) -> Iterator[tuple[str, str]]:
        """Yield each total that rose without an entry, and the advice; None before a commit."""
        for name, total in self.after.totals.items():
            if total > self.before.get(name, total) and not any(
                (one.measure, one.total) == (name, total) and subject in (one.commit, None)
                for one in self.own
            ):
                entry = Raised(name, total, subject or "SUBJECT", "REASON")
                yield f"{name} from {self.before[name]:,} to {total:,}", _advice(entry)


class History:
    """The versions of the file in the commits of a tree.

    A commit is compared with the lowest total among its parents: a merge keeps what each of its
    branches has lowered, and a table that was removed keeps its total until it is adopted again.
    A single ceiling may rise where code moved, as long as the total does not. A new measure is not
    compared, nor is a missing history (see `unchecked`). The base has no effect on totals, so it
    hides no commit.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._bases: list[tuple[str, str, str]] = []  # commit, base of a parent, its own
        self._faults: list[str] = []
        self._last: list[_Version] = []  # the newest commit's; empty without a history
        self._before: dict[tuple[str, str], int] = {}  # entry → total before its commit
        try:
            self._read(tree)
        except GitError as error:
            self._faults.append(
                f"history of the ceilings: not read to its end: {error}"
                " (a partial clone needs its remote)"
            )

    def _read(self, tree: Tree) -> None:
        known: dict[str, _Version] = {}
        for commit in _commits(tree):
            parents = [known[name] for name in commit.parents if name in known]
            step = _step(parents, _committed(tree, commit.name))
            self._faults += _described(step, f"commit {commit.name}", commit.subject)
            self._before |= _totals_before(step, parents)
            base = step.after.base or next((one.base for one in parents), "")
            self._bases += [(f"commit {commit.name}", one.base, base) for one in parents]
            totals = {**_lowest(parents), **step.after.totals}
            known[commit.name] = _Version(totals, step.after.raised, base)
            self._last = [known[commit.name]]

    def raised_totals(self, now: Ceilings) -> list[str]:
        """Describe each change that raised a total without an entry; `now` is in the work tree."""
        step = _step(self._last, _version(now))
        return [*self._faults, *_described(step, "the work tree", None)]

    def wrong_bases(self, now: Ceilings) -> list[str]:
        """Describe a base that is not an ancestor of HEAD, and each move to a later commit.

        A shallow clone, or an export with one commit, has no commits to compare it with.
        """
        if not now.base or not _has_history(self._tree):
            return []
        moves = [*self._bases, *(("the work tree", last.base, now.base) for last in self._last)]
        problems = [
            f"{FILE}: {place} moves [{BASE}] from {old[:12]} to {new[:12]}, which is not an ancestor of it"
            " and hides subjects of commits; restore it"
            for place, old, new in moves
            if old and old != new and not _is_ancestor(self._tree, new, old)
        ]
        if not _is_ancestor(self._tree, now.base, "HEAD"):
            problems.append(
                f"{FILE}: [{BASE}] {now.base[:12]} is not an ancestor of HEAD; correct it"
            )
        return problems

    def permits(self, now: Ceilings, measure: str, total: int) -> bool:
        """Return whether a new entry of the work tree permits a total of a measure."""
        step = _step(self._last, _version(now))
        return any((one.measure, one.total) == (measure, total) for one in step.own)

    def stale(self, now: Ceilings) -> list[str]:
        """Describe the entries whose measure is not higher than it was before their commit."""
        step = _step(self._last, _version(now))
        before = {**self._before, **_totals_before(step, self._last)}
        return [
            f"{FILE}: the [[raised]] entry of {one.measure} for {one.commit!r} is stale: the total is"
            f" {step.after.totals.get(one.measure, 0):,}, and was {before[one.key]:,} before it;"
            f" delete the entry"
            for one in now.raised
            if step.after.totals.get(one.measure, 0) <= before.get(one.key, -1)
        ]


def unchecked(tree: Tree) -> str:
    """Return a line about commits that `History` cannot read, or ""."""
    try:
        return _SHALLOW if _is_shallow(tree) else ""
    except GitError:
        return "history of the ceilings: not checked without git"


def _is_shallow(tree: Tree) -> bool:
    return tree.git("rev-parse", "--is-shallow-repository").strip() == "true"


def _has_history(tree: Tree) -> bool:
    if not _has_commits(tree) or _is_shallow(tree):
        return False
    return tree.git("rev-list", "--count", "HEAD").strip() != "1"


def _is_ancestor(tree: Tree, commit: str, descendant: str) -> bool:
    """Return whether a commit is `descendant` or one of its ancestors; False if one is unknown."""
    try:
        return not tree.git("rev-list", "--max-count=1", commit, "--not", descendant, "--")
    except GitError:
        return False


_SHALLOW = (
    "history of the ceilings: not checked before the oldest commit of this shallow clone"
    " (`git fetch --unshallow` completes it)"
)


def _step(parents: Sequence[_Version], after: _Version) -> _Step:
    before = _lowest(parents)
    inherited = frozenset[Raised]().union(*(parent.raised for parent in parents))
    for entry in after.raised & inherited:
        holders = _lowest(parent for parent in parents if entry in parent.raised)
        if entry.measure in holders:
            before[entry.measure] = max(before[entry.measure], holders[entry.measure])
    known = {entry.key for entry in inherited}
    return _Step(before, after, tuple(one for one in after.raised if one.key not in known))


def _totals_before(step: _Step, parents: Sequence[_Version]) -> dict[tuple[str, str], int]:
    """Return the totals before the new entries of a version; a new measure did not rise."""
    totals = {**step.after.totals, **step.before}
    return {one.key: totals.get(one.measure, 0) for one in step.own} if parents else {}


def _described(step: _Step, place: str, subject: str | None) -> Iterator[str]:
    for rise, advice in step.refusals(subject):
        yield f"{FILE}: {place} raises the total of {rise}; {advice}"


def _advice(entry: Raised) -> str:
    return (
        "correct the faults and restore the ceilings. Where a rise is right, as in a revert, the"
        f" commit that raises it must add an entry with its subject and the reason:\n{entry}"
    )


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit that changed the file. Parents are the nearest ancestors that changed it."""

    name: str
    parents: Sequence[str]
    subject: str


def _commits(tree: Tree) -> Iterator[_Commit]:
    """Yield the commits that changed the file, each after its parents.

    Raises:
        GitError: A commit of the history cannot be read.
    """
    if not _has_commits(tree):
        return
    simplified = ("--full-history", "--simplify-merges", "--topo-order", "--reverse")
    rows = ("--no-commit-header", "--format=%h%x09%p%x09%s")
    listed = tree.git("rev-list", *simplified, *rows, "HEAD", "--", FILE)
    for line in listed.splitlines():
        name, parents, subject = line.split("\t", 2)
        yield _Commit(name, parents.split(), subject)


def _has_commits(tree: Tree) -> bool:
    """Return whether the tree has a history: it is under git, and its first commit exists."""
    try:
        tree.git("rev-parse", "--verify", "--quiet", "HEAD")
    except GitError:
        return False
    return True


def _committed(tree: Tree, commit: str) -> _Version:
    if not tree.git("ls-tree", commit, "--", FILE):
        return _Version()  # a commit that deleted the file
    try:
        return _version(parse(tree.git("cat-file", "blob", f"{commit}:{FILE}")))
    except CeilingsError:
        return _Version()  # a version that was corrected later


def _lowest(parents: Iterable[_Version]) -> dict[str, int]:
    """The lowest total of each measure among the versions that have it."""
    lowest: dict[str, int] = {}
    for parent in parents:
        for name, total in parent.totals.items():
            lowest[name] = min(total, lowest.get(name, total))
    return lowest


def _version(ceilings: Ceilings) -> _Version:
    totals = {name: sum(table.values()) for name, table in ceilings.tables.items()}
    return _Version(totals, frozenset(ceilings.raised), ceilings.base)
