"""Run seeds: ``python -m tests.simulation.quorum --first 1 --seeds 10000``. Ends at the first that fails."""

import sys

from tests.simulation.campaign import main
from tests.simulation.quorum.world import run_seed

if __name__ == "__main__":
    sys.exit(main("tests.simulation.quorum", run_seed))
