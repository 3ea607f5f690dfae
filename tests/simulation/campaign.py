"""Runs of many seeds, one after the other, from the command line."""

import argparse
import time
import traceback
from collections.abc import Callable

import pytest

from tests.support.patience import exactly

PROGRESS_SECONDS = exactly(10, "a line of progress is printed this often")


def main(module: str, run_seed: Callable[[int], str]) -> int:
    """Run the seeds given on the command line, up to the first failure; return 0 if all pass.

    Args:
        module: The argument of ``python -m`` in the command that repeats a seed.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10_000)
    options = parser.parse_args()
    began = said = time.monotonic()
    for number, seed in enumerate(range(options.first, options.first + options.seeds), 1):
        try:
            run_seed(seed)
        except Exception:
            traceback.print_exc()
            print(f"seed {seed} failed; again: {again(module, seed)}")
            return 1
        now = time.monotonic()
        if now > said + PROGRESS_SECONDS or number == options.seeds:
            said = now
            print(f"{number} seeds, {number / (now - began):.0f} a second", flush=True)
    return 0


def again(module: str, seed: int) -> str:
    """Return the command that repeats a seed."""
    return f"PYTHONHASHSEED=0 python -m {module} --first {seed} --seeds 1"


def in_parts(seeds: range, *, size: int, sample: int) -> pytest.MarkDecorator:
    """Call a test with its parameter ``seeds`` once for each part of the seeds.

    Args:
        seeds: All seeds.
        size: Seeds in one part; the last may have fewer.
        sample: Seeds of the ordinary tests. Parts after these are marked ``campaign``.
    """
    parts = [seeds[at : at + size] for at in range(0, len(seeds), size)]
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(part, id=f"{part[0]}-{part[-1]}", marks=_marks(at * size >= sample))
            for at, part in enumerate(parts)
        ],
    )


def _marks(is_campaign: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.campaign] if is_campaign else []
