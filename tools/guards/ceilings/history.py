"""The history of the ceilings: no commit since the base, and no edit by hand, may raise a total."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import pairwise

from tools.guards.ceilings.file import FILE, Ceilings, CeilingsError, parse
from tools.guards.tree import Tree

_NOW = "the work tree"


def raised_totals(tree: Tree, now: Ceilings) -> list[str]:
    """Describe each change of the file that raised the total of a measure.

    A single ceiling may rise where code moved, as long as the total does not. A new measure is not
    compared, nor is a missing history, as in a shallow clone.
    """
    versions = [*_committed(tree, now.base), (_NOW, _totals(now))]
    return [
        f"{FILE}: {place} raises the total of {name} from {before[name]:,} to {total:,}; "
        f"correct the faults and restore the ceilings"
        for (_, before), (place, after) in pairwise(versions)
        for name, total in after.items()
        if total > before.get(name, total)
    ]


def _committed(tree: Tree, base: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The totals at the base and after each commit that changed the file, oldest first."""
    if not base:
        return
    try:
        changed = tree.git("log", "--reverse", "--format=%h", f"{base}..HEAD", "--", FILE).split()
    except (subprocess.CalledProcessError, OSError):
        return
    for commit in [base, *changed]:
        try:
            yield f"commit {commit}", _totals(parse(tree.git("show", f"{commit}:{FILE}")))
        except (subprocess.CalledProcessError, CeilingsError):
            continue  # before the first version, or one that was corrected later


def _totals(ceilings: Ceilings) -> dict[str, int]:
    return {name: sum(table.values()) for name, table in ceilings.tables.items()}
