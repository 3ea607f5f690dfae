"""The seeds find wrong rules: each of those in `tests.simulation.quorum.mutants`, in place of a right one."""

import pytest

from tests.simulation.quorum.mutants import MUTANTS
from tests.simulation.quorum.world import run_seed

SEEDS_MAX = 2_000
"""The ordinary tests run the first half of them with the right rules."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    # A wrong rule that only raises another error would prove nothing.
    for seed in range(1, SEEDS_MAX + 1):
        try:
            run_seed(seed)
        except AssertionError as error:
            print(f"{name}: found by seed {seed}: {error}")
            return
    pytest.fail(f"{name}: {SEEDS_MAX} seeds did not find it")
