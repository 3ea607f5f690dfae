"""``python -m tests.simulation.quorum --first 1 --seeds 10000``: seeds up to the first failure."""

import sys

from tests.simulation.campaign import main
from tests.simulation.quorum.world import run_seed

if __name__ == "__main__":
    sys.exit(main("tests.simulation.quorum", run_seed))
