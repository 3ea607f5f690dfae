"""Run seeds: ``python -m tests.simulation --first 1 --seeds 10000``. Ends at the first that fails."""

import argparse
import logging
import sys
import time
import traceback

from tests.simulation.seeds import run_seed

PROGRESS_SECONDS = 10


def main() -> int:
    """0 if all seeds hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10_000)
    options = parser.parse_args()
    logging.getLogger("pykafka_core").setLevel(logging.CRITICAL + 1)
    began = said = time.monotonic()
    for number, seed in enumerate(range(options.first, options.first + options.seeds), 1):
        try:
            run_seed(seed)
        except Exception:
            traceback.print_exc()
            again = f"PYTHONHASHSEED=0 python -m tests.simulation --first {seed} --seeds 1"
            print(f"seed {seed} failed; again: {again}")
            return 1
        now = time.monotonic()
        if now > said + PROGRESS_SECONDS or number == options.seeds:
            said = now
            print(f"{number} seeds, {number / (now - began):.0f} a second", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
