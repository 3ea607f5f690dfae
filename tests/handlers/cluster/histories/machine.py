"""Brokers that register, fail, stop and return in any order, with invariants after every step.

The model is the set of nodes that have every committed record of a partition. A record is committed
when every member of the ISR has it and the ISR is large enough. With eligible leader replicas,
which must tolerate this, a killed broker loses the records that it had not synced. Without them a
kill loses no records, because no rule could then prevent a loss.
"""

from collections.abc import Iterator
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from pykafka_core.handlers.cluster.stale_brokers import fence_one
from pykafka_core.handlers.topics.leader_passes import balance_leaders, elect_leaderless
from pykafka_core.metadata.directories import LOST, lost_by
from pykafka_core.metadata.image.image import Partition
from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BrokerRegistrationResponse,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UnregisterBrokerRequest,
)
from pykafka_core.types import RESOURCE_TOPIC
from tests.handlers.cluster_world import (
    SESSION_NS,
    STALE_BROKER_EPOCH,
    ClusterWorld,
    Process,
    directory,
    registration,
)

NODES: Final = (1, 2, 3, 4, 5)
PARTITIONS: Final = 2
UNCLEAN: Final = 1
DUPLICATE, INELIGIBLE_REPLICA, NEW_LEADER_ELECTED = 101, 107, 108

nodes = st.sampled_from(NODES)
partitions = st.integers(0, PARTITIONS - 1)


@st.composite
def assignments(draw: st.DrawFn) -> list[int]:
    """Return 1 to 4 distinct nodes.

    Not ``map``: Hypothesis would report its lambda instead of the nodes.
    """
    return draw(st.permutations(NODES))[: draw(st.integers(1, 4))]


class ClusterMachine(RuleBasedStateMachine):
    """The rules and invariants of the cluster."""

    @initialize(
        count=st.integers(3, 5),
        min_isr=st.integers(1, 3),
        elr=st.sampled_from((True, True, False)),
        unclean=st.sampled_from((False, False, True)),
        first=assignments(),
        second=assignments(),
    )
    def begin(
        self,
        count: int,
        min_isr: int,
        elr: bool,
        unclean: bool,
        first: list[int],
        second: list[int],
    ) -> None:
        self.nodes = NODES[:count]
        self.min_isr, self.elr, self.unclean = min_isr, elr, unclean
        self.world = ClusterWorld(self.nodes, min_isr=min_isr, elr=elr)
        known = [[node for node in order if node in self.nodes] or [1] for order in (first, second)]
        self.world.make_topic(*known)
        self.world.set_topic("unclean.leader.election.enable", str(unclean).lower())
        self.running: dict[int, Process] = dict(self.world.processes)
        self.gone: dict[int, list[Process]] = {node: [] for node in self.nodes}
        self.stopped_in = dict.fromkeys(self.nodes, -1)
        self.holders = [set(partition.isr) for partition in self._partitions()]
        self.heard = dict.fromkeys(self.nodes, self.world.now_ns)
        self.applied = dict.fromkeys(self.nodes, -1)
        self.left_at: dict[int, int] = {}
        self.before = list(self._partitions())
        self.asked_unclean = self.cancelled = False
        self.asked_isr: set[int] = set()

    # Processes of brokers.

    @rule(node=nodes)
    def starts(self, node: int) -> None:
        """A new process replaces one that has ended."""
        if node not in self.nodes or node in self.running:
            return
        incarnation = self.world.end_offset * 10 + node
        while True:
            response = self.world.register(node, incarnation, stopped_in=self.stopped_in[node])
            if response.error_code == 0:
                break
            assert response.error_code == DUPLICATE
            assert self.world.now_ns - self.heard[node] <= SESSION_NS
            self.world.now_ns += SESSION_NS + 1
        self.running[node] = Process(node, incarnation, response.broker_epoch)
        self.heard[node] = self.world.now_ns
        self.applied[node] = -1
        self.left_at.pop(node, None)
        self.stopped_in[node] = -1
        assert self.world.image.brokers[node].fenced

    @rule(node=nodes)
    def an_impostor_starts(self, node: int) -> None:
        """Another process with the id of a live one, but with another disk, registers."""
        if node in self.running and self.world.now_ns - self.heard[node] <= SESSION_NS:
            request = registration(node, 3)
            request.log_dirs = [directory(node + 100)]
            response = self.world.ask(request)
            assert isinstance(response, BrokerRegistrationResponse)
            assert response.error_code == DUPLICATE

    @rule(node=nodes)
    def is_killed(self, node: int) -> None:
        """A process ends without a clean stop."""
        if node in self.running:
            self._ends(node)
            if self.elr:
                for holders in self.holders:
                    holders.discard(node)

    @rule(node=nodes)
    def is_killed_and_returns(self, node: int) -> None:
        """A process is killed, and a new one is unfenced at once."""
        if node in self.running:
            self.is_killed(node)
            self.starts(node)
            self._end_of_step()
            self._heartbeat(node, 0)

    @rule(node=nodes, behind=st.integers(0, 3))
    def sends_a_heartbeat(self, node: int, behind: int) -> None:
        """A running process sends a heartbeat; its metadata lags ``behind`` records."""
        self._heartbeat(node, behind)

    @rule(behind=st.integers(0, 1))
    def all_send_heartbeats(self, behind: int) -> None:
        """Time passes, and every running process sends a heartbeat."""
        self.world.now_ns += SESSION_NS // 3
        for node in sorted(self.running):
            self._heartbeat(node, behind)
            self._end_of_step()

    @rule(node=nodes)
    def asks_to_be_fenced(self, node: int) -> None:
        """A process requests to be fenced, like one whose disk fails."""
        self._heartbeat(node, 0, fence=True)

    @rule(node=nodes, behind=st.integers(0, 3))
    def asks_to_stop(self, node: int, behind: int) -> None:
        """A process requests a controlled shutdown, and runs until it is complete."""
        self._heartbeat(node, behind, shut_down=True)

    @rule(node=nodes)
    def sends_a_heartbeat_of_the_past(self, node: int) -> None:
        """A heartbeat of an ended process arrives late."""
        for process in self.gone.get(node, ()):
            broker = self.world.image.brokers.get(node)
            if broker is None or broker.epoch != process.epoch:
                assert self.world.heartbeat(process).error_code == STALE_BROKER_EPOCH

    @rule(part=st.integers(1, 4))
    def time_passes(self, part: int) -> None:
        """Time passes, up to more than a session timeout."""
        self.world.now_ns += SESSION_NS * part // 3

    @rule(node=nodes)
    def is_unregistered(self, node: int) -> None:
        """A broker that does not run is unregistered."""
        if node in self.nodes and node not in self.running and node in self.world.image.brokers:
            self.world.ask(UnregisterBrokerRequest(broker_id=node))
            assert node not in self.world.image.brokers

    # The controller.

    @rule()
    def a_stale_broker_is_fenced(self) -> None:
        """Fence at most one broker, and none that sent a heartbeat within its session timeout."""
        active = {node for node, broker in self.world.image.brokers.items() if not broker.fenced}
        self.world.decide(fence_one)
        still = {node for node, broker in self.world.image.brokers.items() if not broker.fenced}
        fenced = active - still
        assert len(fenced) <= 1
        for node in fenced:
            assert self.world.now_ns - self.heard[node] > SESSION_NS
            oldest = min(self.heard[other] for other in active)
            assert self.heard[node] == oldest

    @rule()
    def another_controller_takes_over(self) -> None:
        """The sessions of unfenced brokers restart; fenced brokers have none."""
        self.world.take_over()
        for node, broker in self.world.image.brokers.items():
            self.heard[node] = self.world.now_ns - (2 * SESSION_NS if broker.fenced else 0)

    @rule()
    def leaders_are_balanced(self) -> None:
        """Run the periodic election of preferred leaders."""
        self.world.decide(balance_leaders)

    @rule()
    def the_leaderless_are_led(self) -> None:
        """Run the periodic election of leaders for partitions without one."""
        self.world.decide(elect_leaderless)

    @rule(index=partitions, kind=st.integers(0, 1))
    def leaders_are_asked_for(self, index: int, kind: int) -> None:
        """Send ElectLeaders, preferred or unclean."""
        self.asked_unclean = kind == UNCLEAN
        named = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[index])
        self.world.ask(
            ElectLeadersRequest(election_type=kind, topic_partitions=[named], timeout_ms=1000)
        )

    @rule(index=partitions, replicas=st.one_of(st.none(), assignments()))
    def a_partition_is_reassigned(self, index: int, replicas: list[int] | None) -> None:
        """Start, change or cancel a reassignment; one to the original replicas also cancels it."""
        before = self.world.partition(index)
        original = set(before.replicas) - set(before.adding)
        self.cancelled = replicas is None or set(replicas) == original
        wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=index, replicas=replicas
        )
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
            name="orders", partitions=[wanted]
        )
        response = self.world.ask(
            AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=[topic])
        )
        assert isinstance(response, AlterPartitionReassignmentsResponse)

    @rule(min_isr=st.integers(1, 3))
    def the_minimum_changes(self, min_isr: int) -> None:
        """Change ``min.insync.replicas`` of the topic."""
        self.min_isr = min_isr
        config = IncrementalAlterConfigsRequest.AlterableConfig(
            name="min.insync.replicas", value=str(min_isr)
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=RESOURCE_TOPIC, resource_name="orders", configs=[config]
        )
        self.world.ask(IncrementalAlterConfigsRequest(resources=[resource]))

    # Leaders and their partitions.

    @rule(index=partitions)
    def a_record_is_written(self, index: int) -> None:
        """A record is committed when the whole ISR has it; replicas outside the ISR lack it."""
        partition = self.world.partition(index)
        size_min = min(self.min_isr, len(partition.replicas))
        serves = all(self._is_registered(node) for node in partition.isr)
        if partition.leader != -1 and serves and len(partition.isr) >= size_min:
            self.holders[index] = set(partition.isr)

    @rule(index=partitions, node=nodes)
    def a_replica_joins(self, index: int, node: int) -> None:
        """A replica that has fetched all records of the leader joins the ISR."""
        leader = self._leader(index)
        partition = self.world.partition(index)
        if leader is None or node in partition.isr or not self._is_registered(node):
            return
        isr = [*partition.isr, node]
        self.asked_isr.update(isr)
        result = self.world.alter_isr(leader, isr, index=index)
        if node not in partition.replicas:
            assert result.error_code not in (0, NEW_LEADER_ELECTED)
        elif result.error_code in (0, NEW_LEADER_ELECTED):
            self.holders[index].add(node)

    @rule(index=partitions)
    def all_replicas_join(self, index: int) -> None:
        """Run `a_replica_joins` for all replicas."""
        for replica in self.world.partition(index).replicas:
            self.a_replica_joins(index, replica)
            self._end_of_step()

    @rule(index=partitions)
    def replicas_join_that_were_replaced(self, index: int) -> None:
        """The leader names an earlier process of a replica, which had fetched all records
        (KIP-903).
        """
        for node in self.world.partition(index).replicas:
            leader, isr = self._leader(index), self.world.partition(index).isr
            broker = self.world.image.brokers.get(node)
            if leader is None or node in isr or not self.gone[node]:
                continue
            epoch = self.gone[node][-1].epoch
            if broker is None or broker.epoch != epoch:
                result = self.world.alter_isr(
                    leader, [*isr, node], index=index, epochs={node: epoch}
                )
                assert result.error_code not in (0, NEW_LEADER_ELECTED)

    @rule(index=partitions, kept=st.sets(nodes))
    def replicas_lag(self, index: int, kept: set[int]) -> None:
        """The leader removes replicas from the ISR."""
        leader = self._leader(index)
        if leader is not None:
            isr = [
                node
                for node in self.world.partition(index).isr
                if node in kept or node == leader.node_id
            ]
            self.world.alter_isr(leader, isr, index=index)

    @rule(index=partitions, older=st.booleans())
    def a_leader_asks_in_an_epoch_of_the_past(self, index: int, older: bool) -> None:
        """A leader's request arrives after another change of the partition."""
        partition = self.world.partition(index)
        leader = self._leader(index)
        if leader is None or partition.partition_epoch < 1:
            return
        changes = {"partition_epoch": partition.partition_epoch - 1}
        if older:
            changes["leader_epoch"] = partition.leader_epoch - 1
        result = self.world.alter_isr(leader, [leader.node_id], index=index, changes=changes)
        assert result.error_code != 0
        assert self.world.partition(index) == partition

    @rule(index=partitions)
    def a_leader_has_recovered(self, index: int) -> None:
        """A leader reports that it has recovered."""
        leader = self._leader(index)
        if leader is not None:
            self.world.alter_isr(leader, self.world.partition(index).isr, index=index)

    @rule(node=nodes, index=partitions, is_lost=st.booleans())
    def a_replica_is_lost_or_back(self, node: int, index: int, is_lost: bool) -> None:
        """A broker reports that it cannot write a replica, or that it can again (KIP-858)."""
        if not self._is_registered(node):
            return
        before = self.world.partition(index)
        self.world.assign(self.running[node], LOST if is_lost else directory(node), index)
        after = self.world.partition(index)
        if len(after.isr) < len(before.isr):
            assert is_lost
            assert set(before.isr) - set(after.isr) == {node}
            assert len(after.isr) >= max(2, min(self.min_isr, len(after.replicas)))

    # Invariants after every step.

    @invariant()
    def what_holds_after_every_step(self) -> None:
        if hasattr(self, "world"):
            self._end_of_step()

    def _end_of_step(self) -> None:
        """Check the invariants; rules with several steps call this after each step."""
        self._the_leader_is_in_sync_and_active()
        self._members_of_the_isr_are_active_where_somebody_leads()
        self._lost_replicas_are_not_in_sync()
        self._isr_and_elr_are_disjoint_sets_of_replicas()
        self._nobody_is_eligible_beside_a_sufficient_isr()
        self._who_is_in_sync_or_eligible_and_runs_has_all_committed_records()
        self._epochs_grow_with_what_they_count()
        self._reassignments_end_with_all_replicas_in_sync()
        self.before = list(self._partitions())
        self.asked_unclean = self.cancelled = False
        self.asked_isr = set()

    def _the_leader_is_in_sync_and_active(self) -> None:
        for partition in self._partitions():
            if partition.leader != -1:
                assert partition.leader in partition.isr
                assert self.world.image.brokers[partition.leader].is_active
                assert partition.leader not in lost_by(partition)

    def _members_of_the_isr_are_active_where_somebody_leads(self) -> None:
        for partition in self._partitions():
            if partition.leader != -1:
                assert all(self.world.image.brokers[node].is_active for node in partition.isr)

    def _lost_replicas_are_not_in_sync(self) -> None:
        for partition in self._partitions():
            assert not set(partition.isr) & set(lost_by(partition))

    def _isr_and_elr_are_disjoint_sets_of_replicas(self) -> None:
        for partition in self._partitions():
            members = (*partition.isr, *partition.elr)
            assert len(set(members)) == len(members)
            assert set(members) <= set(partition.replicas)
            assert {*partition.adding, *partition.removing} <= set(partition.replicas)

    def _nobody_is_eligible_beside_a_sufficient_isr(self) -> None:
        for partition in self._partitions():
            if partition.leader != -1 and partition.elr:
                assert self.elr
                assert len(partition.isr) < min(self.min_isr, len(partition.replicas))

    def _who_is_in_sync_or_eligible_and_runs_has_all_committed_records(self) -> None:
        for index, partition in enumerate(self._partitions()):
            self._note_unclean(index, self.before[index], partition)
            members = {*partition.isr, *partition.elr} if partition.leader != -1 else ()
            for node in members:
                if self._is_registered(node):
                    assert node in self.holders[index]

    def _epochs_grow_with_what_they_count(self) -> None:
        for index, partition in enumerate(self._partitions()):
            old = self.before[index]
            if partition == old:
                continue
            assert partition.partition_epoch > old.partition_epoch
            assert partition.leader_epoch >= old.leader_epoch
            if partition.leader != old.leader or set(old.replicas) - set(partition.replicas):
                assert partition.leader_epoch > old.leader_epoch

    def _reassignments_end_with_all_replicas_in_sync(self) -> None:
        for index, partition in enumerate(self._partitions()):
            old = self.before[index]
            is_over = (old.adding or old.removing) and not (partition.adding or partition.removing)
            if is_over and not self.cancelled:
                assert set(partition.replicas) <= set(old.isr) | set(partition.isr)

    # The model.

    def _partitions(self) -> Iterator[Partition]:
        return (self.world.partition(index) for index in range(PARTITIONS))

    def _is_registered(self, node: int) -> bool:
        """Return whether the registered process is running."""
        process, broker = self.running.get(node), self.world.image.brokers.get(node)
        return process is not None and broker is not None and broker.epoch == process.epoch

    def _leader(self, index: int) -> Process | None:
        leader = self.world.partition(index).leader
        return self.running[leader] if self._is_registered(leader) else None

    def _ends(self, node: int) -> None:
        self.gone[node].append(self.running.pop(node))

    def _heartbeat(
        self, node: int, behind: int, *, fence: bool = False, shut_down: bool = False
    ) -> None:
        process = self.running.get(node)
        if process is None:
            return
        old = self.world.image.brokers[node]
        was_stopping = old.in_controlled_shutdown and not old.fenced
        offset = self.world.end_offset - 1 - behind
        response = self.world.heartbeat(process, offset=offset, fence=fence, shut_down=shut_down)
        assert response.error_code == 0
        self.heard[node], self.applied[node] = self.world.now_ns, offset
        broker = self.world.image.brokers[node]
        assert broker.fenced == response.is_fenced
        if broker.in_controlled_shutdown and not was_stopping:
            self.left_at[node] = self.world.end_offset - 1
        if response.should_shut_down:
            self._may_stop(node, was_stopping=was_stopping)
            self._ends(node)
            self.stopped_in[node] = process.epoch

    def _may_stop(self, node: int, *, was_stopping: bool) -> None:
        """Check that a former leader stops only after every active broker has applied the new
        leaders.
        """
        assert all(partition.leader != node for partition in self._partitions())
        if was_stopping and node in self.left_at:
            for other, broker in self.world.image.brokers.items():
                if broker.is_active and other in self.running:
                    assert self.applied[other] >= self.left_at[node]

    def _note_unclean(self, index: int, old: Partition, new: Partition) -> None:
        """Check that an unclean election has a reason; the records of its leader are then the
        committed ones.
        """
        if self.cancelled and new.isr and not {*new.isr} & {*old.isr, *old.elr}:
            # A cancelled reassignment returns to replicas that are not in sync, whichever leads.
            assert self.unclean
            assert new.recovering
            self.holders[index] = {*new.isr}
            return
        if new.leader in (old.leader, -1, *old.isr, *old.elr, *self.asked_isr):
            return
        # An eligible replica may have lost records in this step.
        is_last = not old.isr and not new.elr and old.last_known_elr == (new.leader,)
        assert new.recovering
        assert self.unclean or self.asked_unclean or is_last
        self.holders[index] = {new.leader}
