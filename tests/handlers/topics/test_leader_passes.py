"""Periodic elections: of preferred leaders, and of leaders for partitions without one."""

import pytest

from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.handlers.topics.leader_passes import balance_leaders, elect_leaderless
from pykafka_core.metadata.elections import ELECTIONS_MAX, leaderless, preferred
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import PartitionChangeRecord
from tests.handlers.cluster_world import TOPIC_ID, ClusterWorld


def lead(world: ClusterWorld, index: int, leader: int) -> None:
    world.commit(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=index, leader=leader))


def leaders(world: ClusterWorld) -> list[int]:
    topic = world.image.topics.by_id[TOPIC_ID]
    return [topic.partitions[index].leader for index in sorted(topic.partitions)]


def test_a_first_replica_leads_again_when_it_is_in_sync_and_alive() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2], [2, 1], [1, 2], [3, 2])
    for index, leader in enumerate((2, 2, 2, 2)):
        lead(world, index, leader)
    world.alter_isr(world.processes[2], [2], index=2)
    world.heartbeat(world.processes[3], fence=True)
    world.decide(balance_leaders)
    assert leaders(world) == [1, 2, 2, 2]
    assert world.partition(0).leader_epoch == 6
    world.decide(balance_leaders)
    assert world.last_batch == ()


def test_leaders_do_not_move_if_balancing_is_off() -> None:
    world = ClusterWorld([1, 2], settings={"auto.leader.rebalance.enable": "false"})
    world.make_topic([1, 2])
    lead(world, 0, 2)
    world.decide(balance_leaders)
    assert leaders(world) == [2]


def test_a_pass_makes_a_thousand_elections_and_the_next_one_the_others() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * (ELECTIONS_MAX + 5))
    world.heartbeat(world.processes[1], fence=True)
    world.heartbeat(world.processes[1])
    for index in range(ELECTIONS_MAX + 5):
        world.alter_isr(world.processes[2], [2, 1], index=index)
    world.decide(balance_leaders)
    assert leaders(world).count(1) == len(world.last_batch) == ELECTIONS_MAX == 1000
    world.decide(balance_leaders)
    assert leaders(world).count(2) == 0


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_pass_ends_at_its_limit(limit: int) -> None:
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * 4)
    for index in range(4):
        lead(world, index, 2)
    rules = PartitionRules(world.image, world.settings)
    made = [record for record in preferred(world.image, rules, limit) if record is not None]
    assert len(made) == min(limit, 4)
    assert [record for record in leaderless(world.image, rules, limit) if record] == []


def test_partition_stays_leaderless_until_an_unclean_election_is_allowed() -> None:
    world = ClusterWorld([1, 2], min_isr=1)
    world.make_topic([1, 2], [2, 1])
    world.alter_isr(world.processes[1], [1])
    world.heartbeat(world.processes[1], fence=True)
    world.decide(elect_leaderless)
    assert leaders(world) == [-1, 2]
    world.set_topic("unclean.leader.election.enable", "true")
    world.decide(elect_leaderless)
    assert leaders(world) == [2, 2]
    assert (world.partition().isr, world.partition().recovering) == ((2,), True)


def test_partitions_left_leaderless_by_an_unfencing_get_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ClusterWorld([1], min_isr=1)
    world.make_topic(*[[1]] * 5)
    world.heartbeat(world.processes[1], fence=True)
    monkeypatch.setattr("pykafka_core.handlers.cluster.broker_records.RECORDS_MAX", 2)
    world.heartbeat(world.processes[1])
    assert leaders(world) == [1, 1, -1, -1, -1]
    world.decide(elect_leaderless)
    assert leaders(world) == [1] * 5
    assert all(not world.partition(index).recovering for index in range(5))


def test_pass_runs_in_slices() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * 50)
    steps = balance_leaders(world.context())
    assert sum(1 for _ in steps) == 50
    assert run_to_end(balance_leaders(world.context())).records == []
