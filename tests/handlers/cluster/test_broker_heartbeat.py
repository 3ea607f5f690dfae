"""BrokerHeartbeat: KIP-631, KIP-841, KIP-858, contract/replication.md#38, #39, #40."""

import pytest

from pykafka_core.protocol.messages import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from tests.handlers.cluster_world import (
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    SECOND,
    SESSION_NS,
    STALE_BROKER_EPOCH,
    ClusterWorld,
    directory,
)


def test_rule_38_a_broker_is_unfenced_when_it_has_applied_its_registration() -> None:
    world = ClusterWorld()
    process = world.start(1)
    behind = world.heartbeat(process, offset=process.epoch - 1)
    assert (behind.error_code, behind.is_caught_up, behind.is_fenced) == (0, False, True)
    assert world.image.brokers[1].fenced
    there = world.heartbeat(process, offset=process.epoch)
    assert (there.is_caught_up, there.is_fenced) == (True, False)
    assert world.image.brokers[1].is_active


def test_broker_that_asks_to_stay_fenced_stays_fenced() -> None:
    world = ClusterWorld()
    assert world.heartbeat(world.start(1), fence=True).is_fenced
    assert world.last_batch == ()


def test_a_heartbeat_that_changes_nothing_proposes_nothing() -> None:
    world = ClusterWorld([1])
    response = world.heartbeat(world.processes[1])
    assert (response.error_code, response.is_fenced, response.should_shut_down) == (0, False, False)
    assert world.last_batch == ()


def test_heartbeat_of_an_older_process_is_rejected() -> None:
    world = ClusterWorld([1])
    old = world.processes[1]
    assert world.heartbeat(old._replace(epoch=old.epoch - 1)).error_code == STALE_BROKER_EPOCH
    assert world.heartbeat(old._replace(epoch=old.epoch + 1)).error_code == STALE_BROKER_EPOCH
    assert world.heartbeat(old._replace(node_id=9)).error_code == STALE_BROKER_EPOCH


def test_returning_broker_leads_leaderless_partitions() -> None:
    world = ClusterWorld([1, 2], min_isr=1)
    world.make_topic([1], [1, 2], [2])
    world.heartbeat(world.processes[1], fence=True)
    assert [world.partition(index).leader for index in range(3)] == [-1, 2, 2]
    world.heartbeat(world.processes[1])
    assert [world.partition(index).leader for index in range(3)] == [1, 2, 2]
    change, elected = world.last_batch
    assert isinstance(change, BrokerRegistrationChangeRecord)
    assert isinstance(elected, PartitionChangeRecord)
    assert (change.fenced, elected.partition_id) == (-1, 0)


def test_broker_that_asks_to_be_fenced_is_fenced_once_it_leads_nothing() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [2, 1, 3])
    assert world.heartbeat(world.processes[1], fence=True).is_fenced
    assert [type(record) for record in world.last_batch] == [
        PartitionChangeRecord,
        PartitionChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    first, second = world.partition(0), world.partition(1)
    assert (first.leader, first.leader_epoch, first.isr) == (2, 5, (2, 3))
    assert (second.leader, second.leader_epoch, second.isr) == (2, 4, (2, 3))


def set_metadata_version(world: ClusterWorld, level: int) -> None:
    world.commit(FeatureLevelRecord(name="metadata.version", feature_level=level))


def test_cordoned_directories_are_stored_from_4_3_iv0_on() -> None:
    world = ClusterWorld([1, 2])
    process = world.processes[1]
    directories = world.image.brokers[1].directories
    world.heartbeat(process, cordoned=directories)
    assert world.image.brokers[1].cordoned is None
    set_metadata_version(world, 30)
    world.heartbeat(process, cordoned=directories)
    (change,) = world.last_batch
    assert isinstance(change, BrokerRegistrationChangeRecord)
    assert world.image.brokers[1].is_cordoned
    for unchanged in (directories, None):
        world.heartbeat(process, cordoned=unchanged)
        assert world.last_batch == ()
        assert world.image.brokers[1].cordoned == directories
    world.heartbeat(process, cordoned=())
    assert world.image.brokers[1].cordoned == ()
    assert not world.image.brokers[1].is_cordoned


def test_a_broker_is_cordoned_and_fenced_by_one_heartbeat() -> None:
    world = ClusterWorld([1, 2])
    set_metadata_version(world, 30)
    directories = world.image.brokers[1].directories
    world.heartbeat(world.processes[1], fence=True, cordoned=directories)
    broker = world.image.brokers[1]
    assert (broker.fenced, broker.cordoned) == (True, directories)
    world.heartbeat(world.processes[1], cordoned=())
    broker = world.image.brokers[1]
    assert (broker.fenced, broker.cordoned) == (False, ())


def test_rule_40_a_controlled_shutdown_moves_leaders_and_leaves_every_isr() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [2, 1, 3])
    response = world.heartbeat(world.processes[1], shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    broker = world.image.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown) == (False, True)
    for index in range(2):
        assert (world.partition(index).leader, world.partition(index).isr) == (2, (2, 3))


def test_rule_40_a_broker_stops_when_all_active_brokers_have_applied_the_changes() -> None:
    world = ClusterWorld([1, 2, 3, 4])
    world.make_topic([1, 2, 3])
    world.heartbeat(world.processes[4], fence=True)
    one, two, three = (world.processes[node] for node in (1, 2, 3))
    behind = world.end_offset - 1
    world.heartbeat(one, shut_down=True)
    moved = world.end_offset - 1
    world.heartbeat(two, offset=moved)
    world.heartbeat(three, offset=behind)
    assert not world.heartbeat(one, shut_down=True).should_shut_down
    world.heartbeat(three, offset=moved)
    response = world.heartbeat(one, shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert world.image.brokers[1].fenced


def test_rule_40_a_new_controller_waits_for_leader_changes_of_its_predecessor() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic([1, 2])
    one, two = world.processes[1], world.processes[2]
    world.heartbeat(one, shut_down=True)
    world.take_over()
    assert not world.heartbeat(one, shut_down=True).should_shut_down
    world.heartbeat(two, offset=world.end_offset - 2)
    assert not world.heartbeat(one, shut_down=True).should_shut_down
    world.heartbeat(two)
    assert world.heartbeat(one, shut_down=True).should_shut_down


def test_broker_that_leads_nothing_stops_at_once() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3])
    response = world.heartbeat(world.processes[2], shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert world.partition().isr == (1, 3)
    fenced = world.start(4)
    assert world.heartbeat(fenced, shut_down=True).should_shut_down
    assert world.last_batch == ()


def test_two_shutdowns_do_not_block_each_other() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic([1, 2], [2, 1])
    for node in (1, 2):
        world.heartbeat(world.processes[node], shut_down=True, offset=0)
    for node in (1, 2):
        assert world.heartbeat(world.processes[node], shut_down=True, offset=0).should_shut_down


def test_rule_39_a_heartbeat_without_changes_extends_the_session() -> None:
    world = ClusterWorld([1])
    for _ in range(3):
        world.now_ns += SESSION_NS - SECOND
        world.heartbeat(world.processes[1])
    brokers = world.image.brokers.values()
    assert world.active.sessions.deadline_ns(brokers) == world.now_ns + SESSION_NS


def test_uncommitted_shutdown_changes_nothing() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic([1, 2])
    assert world.heartbeat(world.processes[1], shut_down=True, code=NOT_CONTROLLER).error_code == 41
    assert world.active.sessions.shutdown_offset(world.image.brokers[1]) is None
    assert world.partition().leader == 1


@pytest.mark.parametrize("known", [True, False])
def test_partitions_of_a_lost_directory_leave_the_isr(known: bool) -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [2, 1, 3])
    lost = directory(1) if known else directory(9)
    world.heartbeat(world.processes[1], offline=[lost])
    for index in range(2):
        assert (1 in world.partition(index).isr) is not known
    assert world.partition().leader == (2 if known else 1)
    assert not world.image.brokers[1].fenced


def test_one_heartbeat_changes_a_partition_once() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3])
    world.heartbeat(world.processes[1], fence=True, offline=[directory(1)])
    assert len(world.last_batch) == 2
    assert world.partition().partition_epoch == 1


def test_partition_changes_larger_than_one_batch_are_made_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykafka_core.handlers.cluster.broker_records.RECORDS_MAX", 2)
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * 5)
    one, two = world.processes[1], world.processes[2]
    for _ in range(2):
        assert world.heartbeat(one, fence=True).error_code == REQUEST_TIMED_OUT
        assert not world.image.brokers[1].fenced
    assert world.heartbeat(one, fence=True).is_fenced
    assert all(world.partition(index).leader == 2 for index in range(5))
    world.heartbeat(one)
    for _ in range(3):
        world.heartbeat(two, shut_down=True)
        world.heartbeat(one)
    assert all(2 not in world.partition(index).isr for index in range(5))
    assert world.heartbeat(two, shut_down=True).should_shut_down
