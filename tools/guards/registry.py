"""The guards and the measures of each; running them."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from tools.guards.figures import Measure
from tools.guards.tree import Tree

GUARDS: Mapping[str, tuple[str, ...]] = {
    "prose": (
        "prose_comments", "prose_test_names", "prose_documents", "prose_commits", "prose_messages",
    ),
    "sizes": (
        "wide_comments", "long_functions", "unwraps", "echoing_docs", "wide_markdown",
        "crowded_folders",
    ),
    "rust_modules": ("rust_import_cycles",),
    "layers": ("upward_imports",),
    "python_modules": ("python_import_cycles",),
    "patience": ("literal_timeouts", "sleeps"),
    "rust_patience": ("rust_timeouts", "rust_sleeps"),
    "foreign_attributes": ("foreign_attributes",),
    "platforms": ("platform_conditions",),
}  # fmt: skip
"""The measures of each guard, a module of this package; those that take long first."""

PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measures of a guard, or the reason why there are none."""

    guard: str
    measures: Sequence[Measure]
    error: str = ""  # a fault of the tree, or a traceback


class UnknownNameError(ValueError):
    """A name is that of neither a guard nor a measure."""


def measure_names() -> list[str]:
    """The names of all measures, in the order of `GUARDS`."""
    return [name for names in GUARDS.values() for name in names]


def guards_of(names: Collection[str]) -> list[str]:
    """Return the guards in `names` and those of the measures in `names`; all if `names` is empty.

    Raises:
        UnknownNameError: A name is neither.
    """
    unknown = sorted(set(names) - GUARDS.keys() - set(measure_names()))
    if unknown:
        raise UnknownNameError(
            f"no guard or measure is named {', '.join(unknown)}; there are"
            f" {', '.join(GUARDS)}, with the measures {', '.join(measure_names())}"
        )
    chosen = set(names)
    return [guard for guard, measures in GUARDS.items() if not names or chosen & {guard, *measures}]


def run(root: Path, names: Collection[str] = ()) -> list[Outcome]:
    """Run the guards of `names` on the tree at `root`, in `PROCESSES` processes.

    Returns:
        An outcome for each guard in the order of `GUARDS`. Of a guard that is not named, only the
        named measures are returned.

    Raises:
        UnknownNameError: From `guards_of`.
    """
    guards = guards_of(names)
    if len(guards) == 1:
        outcomes = [run_guard(guards[0], root)]
    else:
        with ProcessPoolExecutor(PROCESSES) as pool:
            outcomes = list(pool.map(run_guard, guards, [root] * len(guards)))
    return [_named(outcome, names) for outcome in outcomes]


def _named(outcome: Outcome, names: Collection[str]) -> Outcome:
    if not names or outcome.guard in names:
        return outcome
    return replace(outcome, measures=[m for m in outcome.measures if m.name in names])


def run_guard(guard: str, root: Path) -> Outcome:
    """Run one guard, which must return exactly its measures in `GUARDS`."""
    module = import_module(f"tools.guards.{guard}")
    try:
        with _no_garbage_collection():
            measures = list(module.measure(Tree(root)))
    except Exception as error:  # the other guards are still compared
        return Outcome(guard, [], _explained(error))
    names = [measure.name for measure in measures]
    if sorted(names) != sorted(GUARDS[guard]):
        return Outcome(
            guard, [], f"returned {names} instead of {[*GUARDS[guard]]}; see registry.py"
        )
    return Outcome(guard, measures)


def _explained(error: Exception) -> str:
    """The message of an error that a guard defines; the traceback of any other error."""
    if type(error).__module__.startswith("tools.guards."):
        return str(error)
    return "".join(traceback.format_exception(error))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause the collector: syntax trees hold no cycles, and walking them doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
