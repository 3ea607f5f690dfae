"""The timeouts of the tests; no other module has such numbers.

Three kinds of time occur in tests:

* A *bound on a hang*: `PATIENCE_S`, or `seconds` for slow work such as an installation. A passing
  test never waits that long, so the bounds are generous. ``PYKAFKA_PATIENCE=3`` multiplies all of
  them by three.
* A *time of the scenario*, such as a wait after which nothing may have arrived: `exactly`, with the
  reason.
* *Simulated time* costs nothing and needs neither of these.

To wait for a state, use `eventually`.
"""

import math
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from tests.support.evidence import stacks
from tests.support.evidence.conditions import explain

if TYPE_CHECKING:
    import pytest

Number = TypeVar("Number", int, float)

VARIABLE: Final = "PYKAFKA_PATIENCE"
"""The environment variable that scales every bound."""


def scale_of(value: str) -> float:
    """Parse the value of `VARIABLE`.

    Raises:
        ValueError: It is not a finite number above 0.
    """
    try:
        scale = float(value)
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise ValueError(f"{VARIABLE} must be a number above 0, such as 2 or 0.5, not {value!r}")
    return scale


SCALE: Final = scale_of(os.environ.get(VARIABLE, "1"))

SECONDS_MIN: Final = 60
"""A shorter bound is a mistake.

A busy machine stalls a process for seconds, and takes ten times as long.
"""


def seconds(bound: float) -> float:
    """Return ``bound`` times `SCALE`: the bound of work that may need longer than `PATIENCE_S`.

    Args:
        bound: Seconds, at least ten times what a quiet machine needs.

    Raises:
        ValueError: It is below `SECONDS_MIN`.
    """
    if bound < SECONDS_MIN:
        raise ValueError(f"{bound} s is too short on a busy machine: use PATIENCE_S")
    return bound * SCALE


PATIENCE_S: Final = seconds(120)
"""The ordinary bound on a hang, in seconds."""

PATIENCE_MS: Final = round(PATIENCE_S * 1000)

PATIENCE_NS: Final = PATIENCE_MS * 1_000_000

ATTEMPT_S: Final = PATIENCE_S / 12
"""The bound of one attempt of several, in seconds (10 if `SCALE` is 1)."""

POLL_S: Final = 0.1
"""The time of one poll in a loop; not scaled, because the loop polls again."""

POLL_MS: Final = round(POLL_S * 1000)

POLL_NS: Final = POLL_MS * 1_000_000


def exactly(value: Number, reason: str) -> Number:
    """Return ``value``: a time that belongs to the scenario and is the same on every machine.

    Args:
        value: In any unit.
        reason: Why it is not a bound on a hang, and why a busy machine does not change the result.
    """
    assert reason
    return value


def scale_timeout(config: "pytest.Config") -> None:
    """Multiply pytest's ``timeout`` setting by `SCALE`.

    A timeout on the command line or in ``PYTEST_TIMEOUT`` is not scaled.
    """
    without_plugin = 0
    given = getattr(config.option, "timeout", without_plugin)
    if given is None and "PYTEST_TIMEOUT" not in os.environ:
        config.option.timeout = float(config.getini("timeout")) * SCALE


def eventually(condition: Callable[[], object], awaited: str = "the condition") -> None:
    """Return once ``condition`` holds; check it every 10 ms.

    Raises:
        AssertionError: It does not hold within `PATIENCE_S`; the message shows the condition and
            its last values.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            stacks.take(PATIENCE_S)
            raise AssertionError(f"not within {PATIENCE_S:.0f} s: {awaited}: {explain(condition)}")
        time.sleep(0.01)
