"""A sample of the quorum's seeds (`make simulate-quorum` runs more), and what makes a failed one worth having."""

import pytest

from tests.simulation.campaign import again
from tests.simulation.quorum.world import run_seed

SEEDS = 500
STEP = 50


@pytest.mark.parametrize("first", range(1, SEEDS + 1, STEP))
def test_seeds_hold_every_invariant(first: int) -> None:
    for seed in range(first, first + STEP):
        try:
            run_seed(seed)
        except Exception as error:
            error.add_note(f"again: {again('tests.simulation.quorum', seed)}")
            raise


@pytest.mark.parametrize("seed", [3, 11, 77])
def test_the_same_seed_twice_is_the_same_history(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


def test_another_seed_is_another_history() -> None:
    assert run_seed(1) != run_seed(2)
