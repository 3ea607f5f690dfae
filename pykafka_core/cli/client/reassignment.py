"""Plans the placement of replicas as a function of their current placement, without I/O.

A partition keeps as many of its replicas as possible, in their order, so that little is copied.
Missing replicas go to the nodes with the fewest replicas so far. If the first replica is removed,
one of the others becomes the preferred one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class PartitionOf(NamedTuple):
    """A topic's partition."""

    topic: str
    partition: int


class Move(NamedTuple):
    """A partition whose replicas change."""

    at: PartitionOf
    now: Sequence[int]
    then: Sequence[int]

    @property
    def copies(self) -> int:
        """Return the number of replicas that must be copied."""
        return len(set(self.then) - set(self.now))


def plan(
    replicas: Mapping[PartitionOf, Sequence[int]], nodes: Sequence[int], factor: int | None = None
) -> list[Move]:
    """Place partitions on nodes.

    Args:
        replicas: The current replicas of each partition.
        nodes: The nodes that may have replicas, in any order.
        factor: Replicas of each partition; default: as many as now.

    Returns:
        The partitions that change, in order.

    Raises:
        ValueError: There are fewer nodes than replicas.
    """
    kept = {at: _kept(now, nodes, factor) for at, now in replicas.items()}
    load = Counter(dict.fromkeys(nodes, 0))
    load.update(node for stays in kept.values() for node in stays)
    moves = []
    for at, now in sorted(replicas.items()):
        wanted = len(now) if factor is None else factor
        if wanted > len(load):
            raise ValueError(
                f"{at.topic}-{at.partition} has {wanted} replicas, and there are {len(load)} nodes"
            )
        then = list(kept[at])
        while len(then) < wanted:
            least = min(
                (node for node in load if node not in then), key=lambda node: (load[node], node)
            )
            load[least] += 1
            then.append(least)
        if then != list(now):
            moves.append(Move(at, tuple(now), tuple(then)))
    return moves


def _kept(now: Sequence[int], nodes: Sequence[int], factor: int | None) -> list[int]:
    stays = [node for node in now if node in nodes]
    return stays if factor is None else stays[:factor]
