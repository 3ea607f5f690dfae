"""Seeds of the simulator: a sample in every run, more in a campaign (`make simulate`)."""

import pytest

from tests.simulation.campaign import in_parts
from tests.simulation.seeds import run_seed

SEEDS = range(1, 101)
SAMPLE = 10


@in_parts(SEEDS, size=5, sample=SAMPLE)
def test_seeds_hold_every_invariant(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


@pytest.mark.parametrize("seed", [3, 11, 77])
def test_same_seed_twice_gives_the_same_history(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


def test_another_seed_gives_another_history() -> None:
    assert run_seed(1) != run_seed(2)
