"""`memory_max` holds against each way in which peers can make a broker hold memory, and it serves afterwards."""

import pytest

from bench.bounds.attacks import ATTACKS
from bench.bounds.broker import MIB, measured

MEMORY_MAX_MIB = 64
# Beyond the budget: one request more, and for a batch what it inflates to, here 120 MiB. The rest is what Python and
# the allocators keep of what they gave back.
BEYOND_MIB = {"inflate_bombs": 150}
BEYOND_USUAL_MIB = 60


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_stays_within_the_memory_of_the_broker(name: str) -> None:
    with measured(MEMORY_MAX_MIB * MIB) as broker:
        ATTACKS[name](broker.address)
        grown = (broker.peak_bytes() - broker.idle_bytes) // MIB
        assert grown < MEMORY_MAX_MIB + BEYOND_MIB.get(name, BEYOND_USUAL_MIB)
