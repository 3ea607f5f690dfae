"""Looks at files that a running broker may be writing."""

import time
from collections.abc import Callable, Set
from typing import TypeVar

T = TypeVar("T")

LOOKS_MAX = 20
"""It bounds the looks at a damaged file that grows."""
SETTLE_S = 0.05
"""The pause before another look."""


def settled(look: Callable[[], tuple[T, Set[object]]]) -> tuple[T, Set[object]]:
    """Return the last look and its faults.

    A fault counts if two looks in a row find it: the broker may have been about to write there. If
    each look finds other faults, those of the last one count.

    Args:
        look: It returns what it finds, and its faults: values that are equal as long as nothing is
            written that may end the fault.
    """
    found, faults = look()
    for _ in range(LOOKS_MAX - 1):
        if not faults:
            break
        time.sleep(SETTLE_S)
        before = faults
        found, faults = look()
        if both := faults & before:
            return found, both
    return found, faults
