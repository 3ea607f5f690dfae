"""Wrong rules that tests plant in place of right ones, and the recorded history that finds each.

A simulation that finds no wrong rule proves nothing, so each simulation has a registry of wrong
rules. Finding one may take thousands of seeds. The history that found it is therefore recorded in a
TOML file next to the registry. The ordinary tests replay only that history; the search itself is
marked ``campaign``. A history is a seed, or a list of steps if the meaning of a seed depends on the
version of a library.
"""

import argparse
import json
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import pytest

from tests.support.patience import exactly

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]
History = TypeVar("History", int, list[str])

CANDIDATES = 5
"""Histories that a recording compares, to keep the fastest."""
CANDIDATES_SECONDS = exactly(1.0, "recorded by hand, not in a test")
"""CPU time of a search after which its next result is the last candidate."""


class WrongRules(dict[str, Plant]):
    """Wrong rules by name."""

    def add(self, plant: Plant) -> Plant:
        """Register a wrong rule under the name of the function; usable as a decorator."""
        self[plant.__name__] = plant
        return plant


@dataclass(frozen=True, kw_only=True)
class Recorded(Generic[History]):
    """The recorded histories of one registry.

    Attributes:
        rules: Wrong rules by name; each takes effect until its patch is undone.
        run: Run a history of the named rule. Raises AssertionError if an invariant does not hold.
        finding: Search the histories that find the named rule, which is planted while the iterator
            runs. Yields nothing if the search reaches its bound.
        file: TOML, one line for each rule.
        module: The module whose ``main`` records, for the command in error messages.
        patching: Make the patch under which histories run, with right rules as well as with wrong
            ones.
    """

    rules: Mapping[str, Plant]
    run: Callable[[str, History], None]
    finding: Callable[[str], Iterable[History]]
    file: Path
    module: str
    patching: Callable[[], AbstractContextManager[pytest.MonkeyPatch]] = pytest.MonkeyPatch.context

    def histories(self) -> dict[str, History]:
        """Read the file: the recorded history of each rule; empty if there is no file."""
        return tomllib.loads(self.file.read_text()) if self.file.exists() else {}

    def check(self, rule: str) -> None:
        """Replay the recorded history: the right rules pass it, the wrong rule does not.

        Raises:
            AssertionError: No history is recorded, it fails without the wrong rule, or it does not
                find the wrong rule. The text has the command that records another history.
        """
        recorded = self.histories()
        assert rule in recorded, f"{rule}: no recorded history. {self._advice(rule)}"
        self._check(rule, recorded[rule])

    def _check(self, rule: str, history: History) -> None:
        with self.patching():
            right = _failure(self.run, rule, history)
        with self.patching() as patch:
            self.rules[rule](patch)
            wrong = _failure(self.run, rule, history)
        if right is not None:
            text = f"{rule}: history {history} fails without the wrong rule. {self._advice(rule)}"
            raise AssertionError(text) from right
        if not isinstance(wrong, AssertionError):
            text = f"{rule}: history {history} does not find it any more. {self._advice(rule)}"
            raise AssertionError(text) from wrong

    def _advice(self, rule: str) -> str:
        return f"Record another: python -m {self.module} {rule}"

    def search(self, rule: str) -> History:
        """Search from the first history on, whatever is recorded.

        Raises:
            AssertionError: The search reached its bound.
        """
        found = self._found(rule, 1)[0]
        print(f"{rule}: found by history {found}")
        return found

    def _found(self, rule: str, count_max: int) -> list[History]:
        """Return 1 to ``count_max`` histories that find the rule.

        Fewer if the search takes long.
        """
        found: list[History] = []
        until = time.process_time() + CANDIDATES_SECONDS
        with self.patching() as patch:
            self.rules[rule](patch)
            for history in islice(self.finding(rule), count_max):
                found.append(history)
                if time.process_time() > until:
                    break
        assert found, f"{rule}: the search does not find it"
        return found

    def unknown(self) -> set[str]:
        """Recorded names that are not wrong rules of the registry."""
        return self.histories().keys() - self.rules.keys()

    def record(self, rules: Iterable[str]) -> None:
        """Record the fastest history that finds each rule; drop unknown names from the file.

        Raises:
            AssertionError: A search reached its bound. Histories that were recorded before it stay
                recorded.
        """
        for rule in rules:
            candidates = self._found(rule, CANDIDATES)
            fastest = min(candidates, key=lambda history: self._cpu_seconds(rule, history))
            print(f"{rule}: {fastest}", flush=True)
            self._write(self.histories() | {rule: fastest})

    def _cpu_seconds(self, rule: str, history: History) -> float:
        began = time.process_time()
        self._check(rule, history)
        return time.process_time() - began

    def _write(self, recorded: Mapping[str, History]) -> None:
        lines = [
            f"{rule} = {json.dumps(recorded[rule], indent=2)}\n"
            for rule in self.rules
            if rule in recorded
        ]
        command = (
            f"# Written by `python -m {self.module}`: the history that finds each wrong rule.\n"
        )
        self.file.write_text(command + "".join(lines))

    def main(self) -> int:
        """Record the rules that the command line names.

        Without names, those whose recorded history fails.
        """
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}")
        parser.add_argument("rules", nargs="*", help="names of wrong rules; default: those without")
        parser.add_argument("--all", action="store_true", help="record every rule again")
        options = parser.parse_args()
        unknown = set(options.rules) - self.rules.keys()
        if unknown:
            parser.error(f"not wrong rules: {', '.join(sorted(unknown))}")
        self.record(self.rules if options.all else options.rules or self._stale())
        return 0

    def _stale(self) -> list[str]:
        return [rule for rule in self.rules if _failure(self.check, rule) is not None]


def seeds_violating(run: Callable[[int], object], seeds: Iterable[int]) -> Iterator[int]:
    """Run the seeds; yield each that violates an invariant.

    Any other error is raised: it would prove nothing.
    """
    for seed in seeds:
        try:
            run(seed)
        except AssertionError:
            yield seed


def _failure(run: Callable[..., None], *arguments: object) -> Exception | None:
    try:
        run(*arguments)
    except Exception as error:
        return error
    return None
