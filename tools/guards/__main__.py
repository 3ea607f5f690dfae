"""Compare the figures of the source tree with their ceilings in ``tools/ceilings.toml``.

Without a NAME, every guard runs. A NAME is a guard, such as ``prose``, or one of its measures, such
as ``prose_comments``. Exit status: 0 if every figure equals its ceiling, 1 if not, 2 for a wrong
argument.

No commit may raise the total of a measure, except for one that adds a [[raised]] entry to the file:
its measure, total, commit (the subject) and reason. The revert of a lower ceiling needs that.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.guards.ceilings import compare, lower
from tools.guards.ceilings.file import CeilingsError, load
from tools.guards.ceilings.history import History, unchecked
from tools.guards.figures import Measure
from tools.guards.output import Row, findings_json, result_json, table
from tools.guards.registry import GUARDS, Outcome, UnknownNameError, measure_names, run
from tools.guards.tree import ROOT, Tree, TreeError

_EXAMPLES = """examples:
  python -m tools.guards                          compare all figures, as `make guards` does
  python -m tools.guards prose wide_comments      compare those of one guard and one measure
  python -m tools.guards --list echoing_docs      list every place that a measure counts
  python -m tools.guards --lower                  store lower figures, as `make ceilings` does
  python -m tools.guards --adopt sleeps           store the first figures of a new measure
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    every = options.lower and not options.names
    names = [] if every else [*options.names, *options.adopt]
    try:
        outcomes = run(options.root, names)
        return _act(options, Tree(options.root), outcomes)
    except UnknownNameError as error:
        parser.error(str(error))
    except (CeilingsError, TreeError) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    guards = "\n".join(f"  {guard:16}{', '.join(names)}" for guard, names in GUARDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tools.guards",
        description=__doc__,
        epilog=f"guards and their measures:\n{guards}\n\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a guard or a measure (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list",
        action="store_true",
        help="print every finding of the named measures, and compare nothing",
    )
    action.add_argument(
        "--lower",
        action="store_true",
        help="write today's figures as ceilings, unless a total rose without a new [[raised]] entry",
    )
    parser.add_argument(
        "--adopt", action="append", default=[], metavar="NAME", choices=measure_names(),
        help="write the first ceilings of a measure that has none yet; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--root",
        type=Path,
        default=ROOT,
        help="root of the git work tree (default: this repository)",
    )
    return parser


def _act(options: argparse.Namespace, tree: Tree, outcomes: Sequence[Outcome]) -> int:
    measures = [measure for outcome in outcomes for measure in outcome.measures]
    errors = [f"guard {outcome.guard}: {outcome.error}" for outcome in outcomes if outcome.error]
    if options.list:
        return _list(measures, errors, as_json=options.json)
    if options.lower or options.adopt:
        return _lower(tree, measures, errors, options.adopt)
    return _compare(tree, measures, errors, as_json=options.json)


def _list(measures: Sequence[Measure], errors: Sequence[str], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(findings_json(measures, errors), indent=1))
    else:
        for measure in measures:
            for key in sorted(measure.findings):
                print(*measure.findings[key], sep="\n")
        print("\n".join(errors), end="", file=sys.stderr)
    return 1 if errors else 0


def _lower(
    tree: Tree, measures: Sequence[Measure], errors: Sequence[str], adopted: Sequence[str]
) -> int:
    if errors:
        raise CeilingsError("\n".join([*errors, "The ceilings are unchanged."]))
    print("\n".join(lower(tree, measures, adopted)) or "every ceiling equals its figure already")
    return 0


def _compare(tree: Tree, measures: Sequence[Measure], errors: list[str], *, as_json: bool) -> int:
    failures = compare(tree, measures, known=measure_names())
    ceilings = load(tree)
    history = History(tree)
    errors += [
        *history.raised_totals(ceilings), *history.stale(ceilings), *history.wrong_bases(ceilings),
    ]  # fmt: skip
    rows = [Row.of(measure, ceilings.tables.get(measure.name), failures) for measure in measures]
    if as_json:
        result = result_json(rows, ceilings.raised, failures, errors, unchecked(tree))
        print(json.dumps(result, indent=1))
    else:
        print("\n".join([*table(rows, ceilings.raised), *filter(None, [unchecked(tree)])]))
        for problem in [*failures, *errors]:
            print(f"\n{problem}", file=sys.stderr)
    return 1 if failures or errors else 0


if __name__ == "__main__":
    sys.exit(main())
