"""The result of a guard: counts that have a ceiling, and the places that they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.guards.tree import Tree


@dataclass(frozen=True, slots=True)
class Finding:
    """One occurrence of a fault."""

    path: str  # relative to the root of the tree, with forward slashes
    line: int  # of its first line, from 1; 0 if the fault is the whole file or folder
    text: str  # the text of the finding, at most a few words
    advice: str  # what to write instead
    last_line: int = 0  # inclusive; 0: the same as `line`

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}\n    {self.advice}"


@dataclass(frozen=True)
class Measure:
    """The result of one guard.

    `counts` holds a figure for each key (a folder, a crate, or a name such as ``cycles``), zeros
    included or left out alike. `findings` has the same keys; a count may be smaller than the number
    of its findings (one cycle of thirty files lists each of them), never positive without any.
    """

    name: str  # the guard's table in ceilings.toml
    counts: Mapping[str, int]
    findings: Mapping[str, Sequence[Finding]]
    report: Mapping[str, str] = field(default_factory=dict)  # figures without a ceiling, for people


Guard = Callable[[Tree], Sequence[Measure]]
