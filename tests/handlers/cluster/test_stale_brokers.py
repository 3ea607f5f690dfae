"""Fencing of brokers whose session ended: contract/replication.md#39."""

import pytest

from pykafka_core.errors import NotControllerError
from pykafka_core.handlers.cluster.stale_brokers import fence_one
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.protocol.messages import BrokerHeartbeatResponse
from tests.handlers.cluster_world import SESSION_NS, ClusterWorld


def fence(world: ClusterWorld, code: int = 0) -> bool:
    response = world.decide(fence_one, code=code)
    assert isinstance(response, BrokerHeartbeatResponse)
    return response.is_fenced and not response.error_code


def fenced(world: ClusterWorld) -> set[int]:
    return {node for node, broker in world.image.brokers.items() if broker.fenced}


def test_rule_39_stale_brokers_are_fenced_one_by_one() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3])
    world.now_ns += 1
    world.heartbeat(world.processes[1])
    world.now_ns += SESSION_NS - 1
    assert not fence(world)
    world.now_ns += 1
    world.heartbeat(world.processes[3])
    assert fence(world)
    assert fenced(world) == {2}
    assert (world.partition().leader, world.partition().isr) == (1, (1, 3))
    world.now_ns += 1
    assert fence(world)
    assert fenced(world) == {1, 2}
    assert (world.partition().leader, world.partition().isr) == (3, (3,))
    assert not fence(world)


def test_rule_39_a_new_controller_starts_a_whole_session_for_every_broker() -> None:
    world = ClusterWorld([1, 2])
    world.now_ns += SESSION_NS + 1
    world.take_over()
    assert not fence(world)
    world.now_ns += SESSION_NS
    assert not fence(world)
    world.now_ns += 1
    assert fence(world)


def test_a_broker_that_was_fenced_returns_with_its_next_heartbeat() -> None:
    world = ClusterWorld([1, 2])
    world.stop_hearing_of(1)
    assert fence(world)
    assert not world.heartbeat(world.processes[1]).is_fenced
    assert fenced(world) == set()
    assert not fence(world)


def test_silent_broker_in_controlled_shutdown_is_fenced() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic([1, 2])
    world.heartbeat(world.processes[1], shut_down=True)
    world.stop_hearing_of(1)
    assert fence(world)
    assert world.heartbeat(world.processes[1], shut_down=True).should_shut_down


def test_uncommitted_fencing_is_retried() -> None:
    world = ClusterWorld([1, 2])
    world.stop_hearing_of(1)
    assert not fence(world, code=NotControllerError.code)
    assert fenced(world) == set()
    assert fence(world)


def test_only_the_active_controller_fences() -> None:
    context = ClusterWorld([1]).context()._replace(active=None)
    with pytest.raises(NotControllerError):
        run_to_end(fence_one(context))


def test_partition_changes_larger_than_one_batch_are_made_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykafka_core.handlers.cluster.broker_records.RECORDS_MAX", 2)
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * 4)
    world.stop_hearing_of(1)
    assert not fence(world)
    assert [world.partition(index).leader for index in range(4)] == [2, 2, 1, 1]
    deadline = world.active.sessions.deadline_ns(world.image.brokers.values())
    assert deadline is not None
    assert deadline < world.now_ns
    assert fence(world)
    assert fenced(world) == {1}


@pytest.mark.parametrize("unclean", ["false", "true"])
@pytest.mark.parametrize("elr", [False, True])
def test_out_of_sync_replica_leads_only_after_an_allowed_unclean_election(
    unclean: str, elr: bool
) -> None:
    world = ClusterWorld([1, 2], min_isr=1, elr=elr)
    world.make_topic([1, 2])
    world.set_topic("unclean.leader.election.enable", unclean)
    world.alter_isr(world.processes[1], [1])
    world.stop_hearing_of(1)
    assert fence(world)
    partition = world.partition()
    if unclean == "true":
        assert (partition.leader, partition.isr, partition.recovering) == (2, (2,), True)
    else:
        kept = ((), (1,)) if elr else ((1,), ())
        assert (partition.leader, partition.isr, partition.elr) == (-1, *kept)
