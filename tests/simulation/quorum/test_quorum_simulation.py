"""Seeds of the quorum: a sample in every run, more in a campaign.

`make simulate-quorum` runs thousands.
"""

import pytest

from tests.simulation.campaign import again, in_parts
from tests.simulation.quorum.world import run_seed

SEEDS = range(1, 501)
SAMPLE = 20


@in_parts(SEEDS, size=10, sample=SAMPLE)
def test_seeds_hold_every_invariant(seeds: range) -> None:
    for seed in seeds:
        try:
            run_seed(seed)
        except Exception as error:
            error.add_note(f"again: {again('tests.simulation.quorum', seed)}")
            raise


@pytest.mark.parametrize("seed", [3, 11, 77])
def test_same_seed_twice_gives_the_same_history(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


def test_another_seed_gives_another_history() -> None:
    assert run_seed(1) != run_seed(2)
