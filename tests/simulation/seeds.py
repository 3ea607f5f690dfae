"""A world with all kinds of clients for each seed."""

from tests.simulation.clients.groups import committer, groups
from tests.simulation.clients.producers import producers
from tests.simulation.clients.readers import deleter, reader
from tests.simulation.clients.script import Script
from tests.simulation.world import World


def scripts(world: World) -> dict[str, Script]:
    """Return the clients of a world; some worlds have only transactions, or only groups."""
    made: dict[str, Script] = {}
    has_transactions = world.chance(0.8)
    if has_transactions:
        made |= producers(world)
        made["reader"] = reader(world, "reader")
        made["fetcher"] = committer(world, "x-t0", is_writing=world.chance(0.3))
    if not has_transactions or world.chance(0.5):
        made |= groups(world)
    if world.chance(0.3):
        made["deleter"] = deleter(world)
    return made


def run_seed(seed: int) -> str:
    """Run a seed; return the digest of all events."""
    return World(seed, scripts).run()
