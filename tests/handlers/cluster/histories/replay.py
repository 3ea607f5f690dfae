"""Histories of the cluster machine as text: one call of a rule per step.

A seed leads to another history in each version of Hypothesis; a list of calls does not.
"""

import ast
import re
from collections.abc import Sequence

from tests.handlers.cluster.histories.machine import ClusterMachine

_REPORTED_CALL = re.compile(r"^\s*state\.(\w+\(.*\))$", re.MULTILINE)
_NOT_RULES = ("what_holds_after_every_step(", "teardown(")


def steps_of(error: AssertionError) -> list[str]:
    """Return the rules that Hypothesis called, from the notes that it adds to the error."""
    notes = "\n".join(getattr(error, "__notes__", ()))
    calls: list[str] = _REPORTED_CALL.findall(notes)
    return [call for call in calls if not call.startswith(_NOT_RULES)]


def replay(steps: Sequence[str]) -> None:
    """Call the rules on a new machine and check its invariants after each of them.

    Raises:
        AssertionError: An invariant does not hold.
    """
    machine = ClusterMachine()
    for step in steps:
        name, arguments = _parsed(step)
        getattr(machine, name)(**arguments)
        machine.what_holds_after_every_step()


def _parsed(step: str) -> tuple[str, dict[str, object]]:
    call = ast.parse(step, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    return call.func.id, {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


def shortest(steps: Sequence[str]) -> list[str]:
    """Return a shorter history that still violates an invariant; it needs each of its steps.

    Args:
        steps: A history that violates an invariant. Its first step, the start, is kept.
    """
    kept = list(steps)
    at = len(kept) - 1
    while at > 0:
        without = kept[:at] + kept[at + 1 :]
        if _violates(without):
            kept, at = without, len(without)
        at -= 1
    return kept


def _violates(steps: Sequence[str]) -> bool:
    try:
        replay(steps)
    except AssertionError:
        return True
    return False
