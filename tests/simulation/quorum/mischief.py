"""Injection of faults into nodes and the network between them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_core.quorum.events import Persisted, Resign, Tick
from pykafka_core.quorum.log.state import NO_VOTERS
from pykafka_core.quorum.quorum import Appended
from tests.simulation.quorum.faults import ACTIONS
from tests.simulation.quorum.node import Node

if TYPE_CHECKING:
    from tests.simulation.quorum.world import World

STORAGE_ERROR = 56


class Mischief:
    """Injects the faults of `Faults` into a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._wipes_left = 2

    def until_fault(self) -> int:
        """Return the time until the next fault."""
        return int(self._world.random.expovariate(1 / self._world.faults.pause_ms_mean)) + 1

    def misbehave(self) -> None:
        """Inject one fault, and schedule the next one."""
        if self._world.is_calm:
            return
        if any(self._world.faults.actions):
            (action,) = self._world.random.choices(ACTIONS, self._world.faults.actions)
            getattr(self, f"_{action}_fault")(self._world.random.choice(self._world.nodes))
        self._world.at(self.until_fault(), self.misbehave)

    def ambush(self, node: Node) -> Callable[[], None]:
        """Return a fault: a leader fails after an append that some nodes or no nodes have."""

        def strike() -> None:
            if self._world.is_calm:
                return
            if self._world.chance(0.5):
                beside = self._world.random.choice(
                    (node, node, self._world.random.choice(self._world.nodes))
                )
                self._split({node.node_id, beside.node_id})
            else:
                self.crash(node)

        return strike

    def crash(self, node: Node) -> None:
        """Stop a node, and start it again later."""
        if node.replica is None:
            return
        node.replica = None
        node.life += 1
        node.proposal = None
        node.open.clear()
        node.waited_for.clear()
        node.paused_until_ms = 0
        node.waits_for_wake = []
        node.waiting_reads = []
        node.disk.crash(self._world.random)
        self._world.at(self._world.random.choice((10, 200, 1_000)), self._world.starter(node))

    def _crash_fault(self, node: Node) -> None:
        self.crash(self.leader() if self._world.chance(0.5) else node)

    def leader(self) -> Node:
        """Return a leader, or any node if none leads."""
        leaders = [node for node in self._world.nodes if node.replica and node.replica.can_propose]
        return self._world.random.choice(leaders or self._world.nodes)

    def _crash_all_fault(self, _: Node) -> None:
        for node in self._world.nodes:
            if self._world.chance(0.8):
                self.crash(node)

    def _isolate_fault(self, node: Node) -> None:
        alone = self.leader() if self._world.chance(0.5) else node
        self._split({alone.node_id})

    def _split_fault(self, _: Node) -> None:
        self._split({node.node_id for node in self._world.nodes if self._world.chance(0.5)})

    def _split(self, part: set[int]) -> None:
        ids = [node.node_id for node in self._world.nodes]
        self._world.blocked = {(a, b) for a in ids for b in ids if (a in part) != (b in part)}

    def _one_way_fault(self, node: Node) -> None:
        other = self._world.random.choice(self._world.nodes)
        self._world.blocked.add((node.node_id, other.node_id))

    def _heal_fault(self, _: Node) -> None:
        self._world.blocked = set()

    def _pause_fault(self, node: Node) -> None:
        paused = self.leader() if self._world.chance(0.5) else node
        paused.paused_until_ms = self._world.now_ms + self._world.random.choice((100, 700, 2_000))

    def _hang_fault(self, node: Node) -> None:
        hanging = self.leader() if self._world.chance(0.5) else node
        until_ms = self._world.now_ms + self._world.random.choice((300, 700, 2_000))
        hanging.hang(until_ms, delays_reads=self._world.chance(0.5))

    def _slow_fault(self, node: Node) -> None:
        slow = self.leader() if self._world.chance(0.5) else node
        by_ms = self._world.random.choice((200, 500, 900, 1_500))
        until_ms = self._world.now_ms + self._world.random.choice((1_000, 3_000))
        slow.slow_down(until_ms, by_ms, delays_reads=self._world.chance(0.5))

    def _jump_fault(self, node: Node) -> None:
        node.clock_ms += self._world.random.choice((100, 1_000, 10_000))
        if node.replica is not None:
            self._world.later(node, 0, lambda now: Tick(now))

    def _wipe_fault(self, node: Node) -> None:
        """Replace a disk: its node restarts as an observer, with no voters or the first ones."""
        if not self._wipes_left or not self._world.operator.may_wipe(node):
            return
        self._wipes_left -= 1
        self.crash(node)
        self._world.invariants.wiped.add(node.key)
        known = self._world.random.choice((NO_VOTERS, self._world.formatted))
        node.be(self._world.new_key(node.node_id), known)

    def _disk_error_fault(self, node: Node) -> None:
        if node.replica is None:
            return
        if node.disk.states:
            self._world.handle(node, Persisted(STORAGE_ERROR))
        elif node.disk.writes:
            self._world.handle(node, Appended(STORAGE_ERROR, -1))

    def _resign_fault(self, _: Node) -> None:
        leader = self.leader()
        if leader.replica is not None:
            self._world.handle(leader, Resign())
