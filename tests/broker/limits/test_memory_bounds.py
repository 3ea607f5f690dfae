"""`memory_max` limits each way in which peers can make a broker use memory, and the broker serves
afterwards.
"""

import pytest

from bench.bounds.attacks import ATTACKS, INFLATED_WHOLE, WHOLE_MIB
from bench.bounds.batches import MIB
from bench.bounds.broker import measured
from bench.bounds.together import together

MEMORY_MAX_MIB = 64
# A broker may use `memory_max`, plus one request and one response with their decoded forms. The
# largest request of the attacks has 1 MB, which Python decodes to 25 MB; the largest response uses
# 10 MB while it is created. The rest is freed memory that Python, and an allocator with an arena
# for each of 20 threads, keep: about 1 MB each.
BEYOND_USUAL_MIB = 60
# One request for Python may exceed the budget, decoded to half of `memory_max`, and so may its
# response.
DECODED_AND_ENCODED_MIB = MEMORY_MAX_MIB


@pytest.mark.load
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_stays_within_the_memory_of_the_broker(name: str) -> None:
    with measured(MEMORY_MAX_MIB * MIB) as broker:
        ATTACKS[name](broker.address)
        grown = (broker.peak_bytes() - broker.idle_bytes) // MIB
        whole_mib = WHOLE_MIB if name in INFLATED_WHOLE else 0
        assert grown < MEMORY_MAX_MIB + BEYOND_USUAL_MIB + whole_mib


@pytest.mark.load
def test_all_attacks_at_once_stay_within_the_memory_and_close_no_honest_connection() -> None:
    outcome = together(MEMORY_MAX_MIB * MIB, 10)
    assert outcome.lost == []
    assert outcome.records > 0
    # One batch is inflated as a whole at a time.
    beyond_mib = DECODED_AND_ENCODED_MIB + BEYOND_USUAL_MIB + WHOLE_MIB
    assert outcome.grown_bytes // MIB < MEMORY_MAX_MIB + beyond_mib
