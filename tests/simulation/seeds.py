"""A seed's world with all kinds of clients."""

from tests.simulation.producers import producers
from tests.simulation.world import Script, World


def scripts(world: World) -> dict[str, Script]:
    """The clients of a world."""
    return producers(world)


def run_seed(seed: int) -> str:
    """Run it; the digest of all that happened."""
    return World(seed, scripts).run()
