"""Periodic snapshots of committed records, and cleanups of the logs before them."""

from typing import TYPE_CHECKING

from pykafka_core.quorum.events import LogCleaned, SnapshotTaken
from pykafka_core.quorum.values import OffsetAndEpoch
from tests.simulation.quorum.disk import Snapshot
from tests.simulation.quorum.node import Node

if TYPE_CHECKING:
    from tests.simulation.quorum.world import World

PADDING_MAX = 60
"""Maximum padding of a snapshot: some have one part, some have ten."""


class Housekeeping:
    """Schedules snapshots and cleanups in a world, at the rate of its `Faults`."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def begin(self) -> None:
        """Start the schedule."""
        mean_ms = self._world.faults.snapshot_ms_mean
        if mean_ms:
            self._world.at(int(self._world.random.expovariate(1 / mean_ms)) + 1, self._go_on)

    def _go_on(self) -> None:
        node = self._world.random.choice(self._world.nodes)
        if node.replica is not None and not node.replica.installing:
            self._take(node)
            if self._world.chance(0.5):
                self._clean(node)
        self.begin()

    def _take(self, node: Node) -> None:
        replica, disk = node.replica, node.disk
        assert replica is not None
        ends = [batch for batch in disk.synced if batch.end_offset <= replica.high_watermark]
        if not ends:
            return
        last = ends[-1] if self._world.chance(0.7) else self._world.random.choice(ends)
        snapshot_id = OffsetAndEpoch(last.end_offset, last.leader_epoch)
        content = Snapshot.encode(
            disk.digest(last.end_offset),
            node.node_id,
            self._world.random.randint(0, PADDING_MAX),
        )
        voters = self._world.invariants.voter_set_at(last.end_offset)
        newest = replica.log.newest
        if newest is None or last.end_offset >= newest.offset:
            known = replica.log.voter_set_at(last.end_offset)
            self._world.invariants.snapshot_taken(node, known, voters)
        disk.take(snapshot_id, content, voters)
        self._world.handle(node, SnapshotTaken(snapshot_id))

    def _clean(self, node: Node) -> None:
        """Delete the log before one of the snapshots."""
        disk = node.disk
        ahead = [one for one in disk.snapshots if one.offset > disk.start]
        if ahead and not disk.writes and node.replica is not None:
            snapshot_id = self._world.random.choice(ahead)
            disk.clean(snapshot_id.offset)
            self._world.handle(node, LogCleaned(snapshot_id))
