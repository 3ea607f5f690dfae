"""Run ``python -m tests.simulation --first 1 --seeds 10000``; it ends at the first failing seed."""

import logging
import sys

from tests.simulation.campaign import main
from tests.simulation.seeds import run_seed

if __name__ == "__main__":
    logging.getLogger("pykafka_core").setLevel(logging.CRITICAL + 1)
    sys.exit(main("tests.simulation", run_seed))
