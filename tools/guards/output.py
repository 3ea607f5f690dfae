"""The result of a comparison as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from tools.guards.ceilings import Failure, total
from tools.guards.ceilings.file import Raised, Table
from tools.guards.figures import Finding, Measure

Json: TypeAlias = "str | int | Mapping[str, Json] | Sequence[Json] | None"


@dataclass(frozen=True, slots=True)
class Row:
    """One measure and its ceilings."""

    measure: Measure
    figure: int  # over all keys
    ceiling: int | None  # likewise; None before there is a table
    state: str  # "held", or the kinds of its failures

    @classmethod
    def of(cls, measure: Measure, ceilings: Table | None, failures: Sequence[Failure]) -> Row:
        """Sum up a measure; `failures` may be those of all measures."""
        kinds = {failure.kind: None for failure in failures if failure.measure == measure.name}
        ceiling = None if ceilings is None else total(ceilings)
        return cls(measure, total(measure.counts), ceiling, ", ".join(kinds) or "held")


def table(rows: Sequence[Row], raised: Sequence[Raised]) -> Iterator[str]:
    """The lines of a table of measures, then entries, then the figures without a ceiling."""
    width = max((len(row.measure.name) for row in rows), default=0) + 2
    yield f"{'measure':{width}}{'figure':>8}{'ceiling':>9}  state"
    for row in rows:
        ceiling = "none" if row.ceiling is None else f"{row.ceiling:,}"
        yield f"{row.measure.name:{width}}{row.figure:>8,}{ceiling:>9}  {row.state}"
    for one in raised:
        yield f"{one.measure}, raised to {one.total:,} by {one.commit!r}: {one.reason}"
    for row in rows:
        for name, text in row.measure.report.items():
            yield f"{row.measure.name}, {name}: {text}"


def result_json(
    rows: Sequence[Row],
    raised: Sequence[Raised],
    failures: Sequence[Failure],
    errors: Sequence[str],
    unchecked: str,
) -> Json:
    """Everything: measures by name, entries, failures with findings, errors, unread commits."""
    return {
        "measures": {row.measure.name: _row_json(row) for row in rows},
        "raised": [asdict(one) for one in raised],
        "failures": [_failure_json(failure) for failure in failures],
        "errors": errors,
        "unchecked": unchecked,
    }


def _row_json(row: Row) -> Json:
    return {
        "figure": row.figure,
        "ceiling": row.ceiling,
        "state": row.state,
        "counts": dict(sorted(row.measure.counts.items())),
        "report": dict(row.measure.report),
    }


def _failure_json(failure: Failure) -> Json:
    return {
        "kind": failure.kind,
        "measure": failure.measure,
        "key": failure.key,
        "message": failure.message,
        "findings": [asdict(finding) for finding in failure.findings],
        "findings_left_out": failure.findings_left_out,
    }


def findings_json(measures: Sequence[Measure], errors: Sequence[str]) -> Json:
    """Every finding by measure and key, and the errors of guards."""
    return {
        "findings": {
            measure.name: {key: _listed(found) for key, found in sorted(measure.findings.items())}
            for measure in measures
        },
        "errors": errors,
    }


def _listed(findings: Sequence[Finding]) -> Json:
    return [asdict(finding) for finding in findings]
