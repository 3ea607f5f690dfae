"""The history of the ceilings: no commit, and no edit by hand, may raise a total."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping

from tools.guards.ceilings.file import FILE, Ceilings, CeilingsError, parse
from tools.guards.tree import Tree

_NOW = "the work tree"

Totals = Mapping[str, int]


def raised_totals(tree: Tree, now: Ceilings) -> list[str]:
    """Describe each change of the file that raised the total of a measure.

    A commit is compared with the lowest total among its parents: a merge keeps what each of its
    branches has lowered, and a table that was removed keeps its total until it is adopted again.
    A single ceiling may rise where code moved, as long as the total does not. A new measure is not
    compared, nor is a missing history (see `unchecked`). The base has no effect, so it hides no
    commit.
    """
    found: list[str] = []
    known: dict[str, Totals] = {}
    last: Totals = {}
    for commit, *parents in _commits(tree):
        before = _lowest(known.get(parent, {}) for parent in parents)
        after = _committed(tree, commit)
        found += _raises(f"commit {commit}", before, after)
        known[commit] = last = {**before, **after}
    return [*found, *_raises(_NOW, last, _totals(now))]


def unchecked(tree: Tree) -> str:
    """Return a line about commits that `raised_totals` cannot read, or ""."""
    try:
        is_shallow = tree.git("rev-parse", "--is-shallow-repository").strip() == "true"
    except (subprocess.CalledProcessError, OSError):
        return "history of the ceilings: not checked without git"
    return _SHALLOW if is_shallow else ""


_SHALLOW = (
    "history of the ceilings: not checked before the oldest commit of this shallow clone"
    " (`git fetch --unshallow` completes it)"
)


def _raises(place: str, before: Totals, after: Totals) -> Iterator[str]:
    for name, total in after.items():
        if total > before.get(name, total):
            yield (
                f"{FILE}: {place} raises the total of {name} from {before[name]:,} to {total:,}; "
                f"correct the faults and restore the ceilings"
            )


def _commits(tree: Tree) -> Iterator[list[str]]:
    """Yield the commits that changed the file, each after its parents, and these.

    Parents are the nearest ancestors that changed the file.
    """
    simplified = ("--full-history", "--simplify-merges", "--topo-order", "--reverse")
    try:
        listed = tree.git("log", *simplified, "--format=%h %p", "--", FILE)
    except (subprocess.CalledProcessError, OSError):
        return
    yield from map(str.split, listed.splitlines())


def _committed(tree: Tree, commit: str) -> Totals:
    try:
        return _totals(parse(tree.git("show", f"{commit}:{FILE}")))
    except (subprocess.CalledProcessError, CeilingsError):
        return {}  # before the first version, or one that was corrected later


def _lowest(parents: Iterable[Totals]) -> Totals:
    """The lowest total of each measure among those that have it."""
    lowest: dict[str, int] = {}
    for totals in parents:
        for name, total in totals.items():
            lowest[name] = min(total, lowest.get(name, total))
    return lowest


def _totals(ceilings: Ceilings) -> Totals:
    return {name: sum(table.values()) for name, table in ceilings.tables.items()}
