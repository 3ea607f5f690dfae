"""The histories find wrong rules: each of those in `tests.spark.sink.histories.mutants`, in place of a right one."""

import pytest

from tests.spark.sink.histories.mutants import MUTANTS
from tests.spark.sink.histories.spark import without_a_jvm
from tests.spark.sink.histories.walk import found

HISTORIES_MAX = 250
"""Most are found in ten, the last in 56. The ordinary tests run as many of the same ones with the right rules."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_found(name: str) -> None:
    machine, plant = MUTANTS[name]
    with without_a_jvm() as patch:
        plant(patch)
        failure = found(machine, range(HISTORIES_MAX))
    assert failure, f"{name}: {HISTORIES_MAX} histories did not find it"
    seed, error = failure
    print(f"{name}: found by history {seed}: {error}")
    # A wrong rule that only raises another error would prove nothing.
    assert isinstance(error, AssertionError)
