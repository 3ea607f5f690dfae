"""The ceilings of all measures: their file, the comparison with today's figures, and lowering them.

``tools/ceilings.toml`` holds a table for each measure, with a ceiling for each key, and in
``[base]`` the commit after which the subjects of commits are checked. A key without a ceiling has
the ceiling 0. Every figure must equal its ceiling: a higher figure is a new fault, and a lower one
would allow a new fault later. A ``[[raised]]`` entry permits one commit to raise one total (see
`history`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tools.guards.ceilings.changes import since_last_change_of
from tools.guards.ceilings.file import FILE, Ceilings, CeilingsError, Table, load, store
from tools.guards.ceilings.history import History
from tools.guards.figures import Finding, Measure
from tools.guards.tree import Tree

FINDINGS_MAX = 20
"""Findings shown for a key if none lies on a changed line."""

Kind = Literal["raised", "lower", "new", "unknown"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A figure that differs from its ceiling, or a table without a counterpart."""

    kind: Kind
    measure: str
    key: str  # "" if the whole table is meant
    message: str
    findings: Sequence[Finding] = ()
    findings_left_out: int = 0

    def __str__(self) -> str:
        lines = [f"{self.measure} {self.key}".rstrip() + f": {self.message}"]
        lines += [f"  {finding}" for finding in self.findings]
        if self.findings_left_out:
            lines.append(
                f"  … and {self.findings_left_out} more:"
                f" python -m tools.guards --list {self.measure}"
            )
        return "\n".join(lines)


# Comparison


def compare(
    tree: Tree, measures: Sequence[Measure], known: Collection[str] | None = None
) -> list[Failure]:
    """Compare measures with the ceilings of the tree.

    Args:
        tree: Holds the file of ceilings, and the history that shows which findings are new.
        measures: Those to compare; other tables are ignored.
        known: Names of all measures that exist; None if `measures` are all.

    Returns:
        One failure for each key whose figure differs; those that are raised come with findings.

    Raises:
        CeilingsError: From `load`.
    """
    tables = load(tree).tables
    names = {measure.name for measure in measures} if known is None else set(known)
    failures = [_unknown(name) for name in sorted(tables.keys() - names)]
    for measure in measures:
        if measure.name in tables:
            failures += _differences(measure, tables[measure.name])
        else:
            failures.append(_new(measure))
    if any(failure.kind == "raised" for failure in failures):
        return _with_findings(tree, failures, {measure.name: measure for measure in measures})
    return failures


def _unknown(name: str) -> Failure:
    message = f"no guard measures this; delete its table from {FILE} or correct its name"
    return Failure("unknown", name, "", message)


def _new(measure: Measure) -> Failure:
    message = (
        f"has no table in {FILE}; store its figures with"
        f" `python -m tools.guards --adopt {measure.name}`"
    )
    return Failure("new", measure.name, "", message)


def _differences(measure: Measure, table: Table) -> Iterator[Failure]:
    total_is_held = total(measure.counts) <= total(table)
    for key in sorted(measure.counts.keys() | table.keys()):
        figure, ceiling = measure.counts.get(key, 0), table.get(key, 0)
        if figure > ceiling:
            message = f"raised to {figure}; the ceiling is {ceiling}"
            if total_is_held:
                message += ", but the total is not higher: if code moved, run `make ceilings`"
            yield Failure("raised", measure.name, key, message)
        elif figure < ceiling:
            message = f"{figure}, below the ceiling of {ceiling}; lower it: run `make ceilings`"
            yield Failure("lower", measure.name, key, message)


def _with_findings(
    tree: Tree, failures: Iterable[Failure], measures: Mapping[str, Measure]
) -> list[Failure]:
    """Add the findings on changed lines to each raised figure, or its first findings."""
    changes = since_last_change_of(tree, FILE)
    filled = []
    for failure in failures:
        if failure.kind == "raised":
            every = measures[failure.measure].findings.get(failure.key, ())
            new = [finding for finding in every if changes and changes.include(finding)]
            shown = new or every[:FINDINGS_MAX]
            left_out = 0 if new else len(every) - len(shown)
            failure = Failure(
                failure.kind, failure.measure, failure.key, failure.message, shown, left_out
            )
        filled.append(failure)
    return filled


def total(counts: Table) -> int:
    """The sum over all keys."""
    return sum(counts.values())


# Lowering


def lower(tree: Tree, measures: Sequence[Measure], adopted: Collection[str] = ()) -> list[str]:
    """Write the figures of `measures` as their ceilings.

    A figure may be higher than its ceiling if the total of its measure is not (code that moved to
    another folder), or if a new entry permits the total. Tables of other measures are kept as they
    are. The base of a new file is HEAD.

    Args:
        tree: Holds the file of ceilings.
        measures: The figures to write.
        adopted: Names of measures that get their first table, whatever their figures.

    Returns:
        A line for each measure whose table changed.

    Raises:
        CeilingsError: A total is above its ceilings and no entry permits it, a measure without a
            table is not in `adopted`, or one of `adopted` has a table; the file is unchanged.
    """
    ceilings = load(tree)
    history = History(tree)
    problems = [
        problem
        for measure in measures
        if (problem := _refusal(measure, ceilings, history, adopted))
    ]
    if problems:
        raise CeilingsError("\n".join([*problems, f"{FILE} is unchanged."]))
    figures = {m.name: {k: n for k, n in m.counts.items() if n} for m in measures}
    base = ceilings.base or tree.git("rev-parse", "HEAD").strip()
    store(tree, replace(ceilings, base=base, tables={**ceilings.tables, **figures}))
    return list(_news(ceilings.tables, figures))


def _refusal(
    measure: Measure, ceilings: Ceilings, history: History, adopted: Collection[str]
) -> str:
    name, figure = measure.name, total(measure.counts)
    table = ceilings.tables.get(name)
    if table is None:
        if name in adopted:
            return ""
        return f"{name}: has no table yet; add --adopt {name} to store its first figures."
    if name in adopted:
        return f"{name}: has a table already; its ceilings can only be lowered."
    if figure > total(table) and not history.permits(ceilings, name, figure):
        return (
            f"{name}: the total rose from {total(table)} to {figure}; `python -m tools.guards {name}`"
            f" lists new findings, and {FILE} has no new [[raised]] entry for it."
        )
    return ""


def _news(before: Mapping[str, Table], after: Mapping[str, Table]) -> Iterator[str]:
    for name, figures in sorted(after.items()):
        old = before.get(name)
        if old is None:
            yield f"{name}: adopted {total(figures)}"
        elif {key: n for key, n in old.items() if n} != figures:
            yield f"{name}: {total(old)} → {total(figures)}"
