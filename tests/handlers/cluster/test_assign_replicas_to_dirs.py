"""AssignReplicasToDirs: a replica in an offline directory does not lead until the directory is
online again.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.errors import (
    EligibleLeadersNotAvailableError,
    IneligibleReplicaError,
    NotLeaderOrFollowerError,
    PolicyViolationError,
    StaleBrokerEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pykafka_core.handlers import outcome
from pykafka_core.metadata.directories import LOST
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.protocol.messages import AssignReplicasToDirsResponse, FeatureLevelRecord
from tests.handlers.cluster_world import ClusterWorld, directory

FIRST_EPOCH = 4
"""Leader epoch of new topics in `ClusterWorld`."""


def world_of(*replicas: int, elr: bool = True) -> ClusterWorld:
    world = ClusterWorld((1, 2, 3), elr=elr)
    world.make_topic(replicas)
    return world


def code_of(response: AssignReplicasToDirsResponse) -> int:
    assert response.error_code == 0
    return response.directories[0].topics[0].partitions[0].error_code


def test_leader_that_lost_its_replica_is_replaced_by_an_isr_member() -> None:
    world = world_of(1, 2, 3)
    assert code_of(world.assign(world.processes[1], LOST)) == 0
    found = world.partition()
    assert (found.leader, found.isr, found.leader_epoch) == (2, (2, 3), 5)
    assert found.directories == (LOST, directory(2), directory(3))


def test_a_directory_that_is_not_registered_is_offline() -> None:
    world = world_of(1, 2, 3)
    assert code_of(world.assign(world.processes[1], directory(9))) == 0
    assert world.partition().leader == 2


def test_follower_that_lost_its_replica_does_not_change_the_isr() -> None:
    world = world_of(1, 2, 3)
    assert code_of(world.assign(world.processes[3], LOST)) == 0
    found = world.partition()
    assert (found.leader, found.isr, found.leader_epoch) == (1, (1, 2), 4)


def test_restored_replica_may_join_and_lead_again() -> None:
    world = world_of(1, 2, 3)
    world.assign(world.processes[1], LOST)
    world.assign(world.processes[1], directory(1))
    assert world.partition().leader == 2
    assert world.alter_isr(world.processes[2], [2, 3, 1]).error_code == 0
    world.heartbeat(world.processes[2], fence=True)
    world.heartbeat(world.processes[3], fence=True)
    assert world.partition().leader == 1


@pytest.mark.parametrize("replicas", [(1,), (1, 2)])
def test_a_member_stays_in_sync_if_too_few_others_would_remain(replicas: tuple[int, ...]) -> None:
    world = world_of(*replicas)
    before = world.partition()
    code = code_of(world.assign(world.processes[1], LOST))
    assert code == EligibleLeadersNotAvailableError.code
    assert world.partition() == before
    assert not world.last_batch


@pytest.mark.parametrize("value", ["2", "3"])
def test_the_isr_keeps_min_insync_replicas(value: str) -> None:
    world = world_of(1, 2, 3)
    world.set_topic("min.insync.replicas", value)
    code = code_of(world.assign(world.processes[1], LOST))
    assert code == (0 if value == "2" else EligibleLeadersNotAvailableError.code)


@pytest.mark.parametrize("elr", [True, False])
def test_static_min_insync_replicas_of_the_controller_applies(elr: bool) -> None:
    world = ClusterWorld((1, 2, 3), elr=elr, settings={"min.insync.replicas": "3"})
    world.make_topic((1, 2, 3))
    code = code_of(world.assign(world.processes[1], LOST))
    assert code == EligibleLeadersNotAvailableError.code


def test_replicas_lost_one_after_another_leave_two_in_sync() -> None:
    """The brokers may send these reports before they have applied the earlier changes."""
    world = ClusterWorld((1, 2, 3), min_isr=1)
    world.make_topic((1, 2, 3))
    codes = [code_of(world.assign(world.processes[node], LOST)) for node in (1, 2, 3)]
    assert codes == [0, *[EligibleLeadersNotAvailableError.code] * 2]
    assert world.partition().isr == (2, 3)


@given(
    st.lists(st.tuples(st.sampled_from((1, 2, 3, 4)), st.booleans()), max_size=12),
    st.integers(2, 4),
    st.integers(1, 3),
)
def test_reports_leave_two_and_the_minimum_in_sync_and_change_few_leaders(
    reports: list[tuple[int, bool]], count: int, min_isr: int
) -> None:
    """A replica that is online again does not become leader for that reason, and joins the ISR only
    at the request of its leader.
    """
    world = ClusterWorld((1, 2, 3, 4), min_isr=min_isr)
    world.make_topic(tuple(range(1, count + 1)))
    for node, is_lost in reports:
        if node <= count:
            world.assign(world.processes[node], LOST if is_lost else directory(node))
    found = world.partition()
    assert len(found.isr) >= max(2, min(min_isr, count))
    assert found.leader_epoch - FIRST_EPOCH <= count - len(found.isr)


def test_lost_replica_does_not_rejoin_by_an_earlier_fetch() -> None:
    world = world_of(1, 2, 3)
    world.assign(world.processes[1], LOST)
    joined = world.alter_isr(world.processes[2], [2, 3, 1])
    assert joined.error_code == IneligibleReplicaError.code
    assert world.partition().isr == (2, 3)


def test_request_above_the_limit_changes_partitions_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outcome, "RECORDS_MAX", 3)
    world = ClusterWorld((1, 2, 3))
    world.make_topic(*[(1, 2, 3)] * 5)
    response = world.assign(world.processes[1], LOST, *range(5), 0)
    codes = [found.error_code for found in response.directories[0].topics[0].partitions]
    assert codes == [0] * 3 + [PolicyViolationError.code] * 2 + [0]
    assert len(world.last_batch) == 3


def test_unchanged_directory_writes_no_record() -> None:
    world = world_of(1, 2, 3)
    assert code_of(world.assign(world.processes[1], directory(1))) == 0
    assert not world.last_batch


def test_unknown_partitions_are_rejected_one_by_one() -> None:
    world = world_of(1, 2)
    process = world.processes[1]
    assert code_of(world.assign(process, LOST, topic_id=bytes(16))) == UnknownTopicIdError.code
    assert code_of(world.assign(process, LOST, 7)) == UnknownTopicOrPartitionError.code
    code = code_of(world.assign(world.processes[3], LOST))
    assert code == NotLeaderOrFollowerError.code
    assert world.partition().leader == 1


def test_another_process_and_an_older_cluster_are_rejected() -> None:
    world = world_of(1, 2)
    process = world.processes[1]
    stale = world.assign(process._replace(epoch=process.epoch - 1), LOST)
    assert stale.error_code == StaleBrokerEpochError.code
    world.commit(FeatureLevelRecord(name=METADATA_VERSION, feature_level=16))
    assert world.assign(process, LOST).error_code == UnsupportedVersionError.code
    assert world.partition().leader == 1
