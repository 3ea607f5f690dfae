"""AlterPartition: KIP-497, KIP-841, KIP-903, contract/replication.md#30, #31, #32, #44."""

import pytest

from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionChangeRecord,
    UnregisterBrokerRequest,
)
from tests.handlers.cluster_world import (
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    TOPIC_ID,
    ClusterWorld,
    Process,
    alter_request,
)

UNKNOWN_PARTITION, INVALID_REQUEST, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION = 3, 42, 74, 95
REQUEST_TIMED_OUT = 7
UNKNOWN_TOPIC_ID, INELIGIBLE_REPLICA, NEW_LEADER_ELECTED = 100, 107, 108


def three(*, min_isr: int = 2) -> ClusterWorld:
    """Return a world in which broker 1 leads, and 2 and 3 are in sync."""
    world = ClusterWorld([1, 2, 3, 4], min_isr=min_isr)
    world.make_topic([1, 2, 3])
    return world


def refused(world: ClusterWorld, process: Process, code: int) -> bool:
    """Return whether a request of a process is rejected as a whole."""
    response = world.ask(alter_request(process))
    assert isinstance(response, AlterPartitionResponse)
    return response.error_code == code and not response.topics


@pytest.mark.parametrize("version", [2, 3])
def test_isr_is_set_as_the_leader_requested(version: int) -> None:
    world = three()
    result = world.alter_isr(world.processes[1], [1, 2], version=version)
    assert (result.error_code, result.leader_id, result.leader_epoch) == (0, 1, 4)
    assert (result.isr, result.partition_epoch, result.leader_recovery_state) == ([1, 2], 1, 0)
    assert world.partition().isr == (1, 2)
    result = world.alter_isr(world.processes[1], [1, 2, 3], version=version)
    assert (result.error_code, result.isr, result.partition_epoch) == (0, [1, 2, 3], 2)
    assert world.partition().leader_epoch == 4


def test_unchanged_isr_is_not_written() -> None:
    world = three()
    result = world.alter_isr(world.processes[1], [1, 2, 3])
    assert (result.error_code, result.partition_epoch, world.last_batch) == (0, 0, ())


def test_request_older_than_the_leaders_latest_one_is_rejected() -> None:
    world = three()
    one = world.processes[1]

    def isr_after(correlation_id: int, isr: list[int]) -> tuple[int, ...]:
        world.correlation_id = correlation_id
        world.alter_isr(one, isr)
        return world.partition().isr

    assert isr_after(7, [1, 2]) == (1, 2)
    world.correlation_id = 6
    assert refused(world, one, REQUEST_TIMED_OUT)
    assert isr_after(7, [1, 2, 3]) == (1, 2, 3)
    assert isr_after(2**30, [1, 2]) == (1, 2)
    assert isr_after(2**31 - 1, [1]) == (1,)
    # The highest id is followed by 0.
    assert isr_after(0, [1, 3]) == (1, 3)
    world.correlation_id = 2**31 - 1
    assert refused(world, one, REQUEST_TIMED_OUT)
    # An id far from the newest one belongs to another numbering, so the request is not late.
    assert isr_after(2**30 + 5, [1, 2]) == (1, 2)


def test_rule_30_only_the_registered_process_of_a_broker_is_accepted() -> None:
    world = three()
    one = world.processes[1]
    assert refused(world, one._replace(epoch=one.epoch - 1), STALE_BROKER_EPOCH)
    assert refused(world, one._replace(epoch=one.epoch + 1), STALE_BROKER_EPOCH)
    assert refused(world, one._replace(node_id=9), STALE_BROKER_EPOCH)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"leader_epoch": 5}, NOT_CONTROLLER),
        ({"partition_epoch": 2}, NOT_CONTROLLER),
        ({"leader_epoch": 3}, FENCED_LEADER_EPOCH),
        ({"partition_epoch": 0}, INVALID_UPDATE_VERSION),
        ({"leader_epoch": 3, "partition_epoch": 0}, FENCED_LEADER_EPOCH),
        ({"leader_epoch": 3, "partition_epoch": 2}, NOT_CONTROLLER),
    ],
    ids=str,
)
def test_rule_30_a_change_must_name_the_committed_epochs(
    changes: dict[str, int], code: int
) -> None:
    world = three()
    world.alter_isr(world.processes[1], [1, 2])
    before = world.partition()
    assert world.alter_isr(world.processes[1], [1], changes=changes).error_code == code
    assert world.partition() == before


def test_rule_30_only_the_leader_is_accepted() -> None:
    world = three()
    assert world.alter_isr(world.processes[2], [2, 1]).error_code == INVALID_REQUEST
    assert world.partition().isr == (1, 2, 3)


@pytest.mark.parametrize("isr", [[1, 4], [2, 3], [], [1, 2, 2], [1, 9]], ids=str)
@pytest.mark.parametrize("version", [2, 3])
def test_rule_31_the_isr_has_only_replicas_and_the_leader(isr: list[int], version: int) -> None:
    world = three()
    result = world.alter_isr(world.processes[1], isr, version=version)
    assert result.error_code == INVALID_REQUEST
    assert world.partition().isr == (1, 2, 3)


def test_rule_31_a_recovering_leader_is_alone_in_the_isr() -> None:
    world = ClusterWorld([1, 2], min_isr=1)
    world.make_topic([1, 2])
    one = world.processes[1]
    recovering = {"recovery_state": 1}
    assert world.alter_isr(one, [1], changes=recovering).error_code == INVALID_REQUEST
    world.commit(
        PartitionChangeRecord(
            topic_id=TOPIC_ID, partition_id=0, isr=[1], leader=1, leader_recovery_state=1
        )
    )
    assert world.alter_isr(one, [1, 2], changes=recovering).error_code == INVALID_REQUEST
    assert world.alter_isr(one, [1], changes={"recovery_state": 2}).error_code == INVALID_REQUEST
    assert world.alter_isr(one, [1], changes=recovering).leader_recovery_state == 1
    assert world.partition().recovering
    result = world.alter_isr(one, [1, 2])
    assert (result.error_code, result.leader_recovery_state, result.isr) == (0, 0, [1, 2])
    assert not world.partition().recovering


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("state", ["fenced", "shuts down", "unregistered"])
def test_rule_31_only_active_brokers_join_the_isr(state: str, version: int) -> None:
    world = three()
    world.make_topic([3, 1], topic_id=b"another topic id")
    world.alter_isr(world.processes[1], [1, 2])
    if state == "unregistered":
        world.ask(UnregisterBrokerRequest(broker_id=3))
    else:
        world.heartbeat(world.processes[3], fence=state == "fenced", shut_down=state != "fenced")
    result = world.alter_isr(world.processes[1], [1, 2, 3], version=version)
    assert result.error_code == INELIGIBLE_REPLICA
    assert world.partition().isr == (1, 2)


def test_rule_31_only_the_process_that_caught_up_joins_the_isr() -> None:
    world = three()
    world.stop_hearing_of(3)
    caught_up = world.processes[3].epoch
    world.processes[3] = world.start(3)
    world.heartbeat(world.processes[3])
    one = world.processes[1]
    stale = world.alter_isr(one, [1, 2, 3], epochs={3: caught_up})
    assert stale.error_code == INELIGIBLE_REPLICA
    assert world.partition().isr == (1, 2)
    # Without the broker epoch of the process, the request is accepted: in older versions, and from
    # a leader that does not know it.
    assert world.alter_isr(one, [1, 2, 3], epochs={3: -1}).error_code == 0
    assert world.alter_isr(one, [1, 2]).error_code == 0
    assert world.alter_isr(one, [1, 2, 3], version=2).error_code == 0


def test_rule_32_an_ineligible_member_does_not_change_the_committed_state() -> None:
    world = three()
    world.heartbeat(world.processes[3], fence=True)
    before = world.partition()
    assert world.alter_isr(world.processes[1], [1, 3]).error_code == INELIGIBLE_REPLICA
    assert world.partition() == before
    # The leader's next request, based on the committed state, is accepted.
    assert world.alter_isr(world.processes[1], [1]).error_code == 0


def test_rule_42_replicas_removed_below_the_minimum_become_eligible() -> None:
    world = three(min_isr=2)
    world.alter_isr(world.processes[1], [1])
    assert world.partition().elr == (2, 3)
    world.alter_isr(world.processes[1], [1, 3])
    assert world.partition().elr == ()


def reassign(world: ClusterWorld, *replicas: int) -> None:
    wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=0, replicas=list(replicas)
    )
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="orders", partitions=[wanted])
    world.ask(AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=[topic]))


def test_rule_44_a_reassignment_completes_when_its_last_new_replica_is_in_sync() -> None:
    world = three()
    reassign(world, 1, 2, 4)
    assert world.partition().replicas == (1, 2, 4, 3)
    result = world.alter_isr(world.processes[1], [1, 2, 3, 4])
    assert (result.error_code, result.isr, result.leader_epoch) == (0, [1, 2, 4], 5)
    ended = world.partition()
    assert (ended.replicas, ended.removing, ended.adding) == ((1, 2, 4), (), ())


def test_rule_44_the_end_of_a_reassignment_may_replace_the_requesting_leader() -> None:
    world = three()
    reassign(world, 4, 2, 3)
    result = world.alter_isr(world.processes[1], [1, 2, 3, 4])
    assert result.error_code == NEW_LEADER_ELECTED
    ended = world.partition()
    assert (ended.replicas, ended.leader, ended.leader_epoch) == ((4, 2, 3), 4, 5)
    assert ended.isr == (2, 3, 4)


def test_failed_partition_does_not_affect_the_others() -> None:
    world = ClusterWorld([1, 2])
    world.make_topic([1, 2], [2, 1])
    one = world.processes[1]

    def shrink(index: int) -> AlterPartitionRequest.PartitionData:
        state = AlterPartitionRequest.BrokerState(broker_id=1, broker_epoch=one.epoch)
        return AlterPartitionRequest.PartitionData(
            partition_index=index, leader_epoch=4, partition_epoch=0, new_isr_with_epochs=[state]
        )

    request = alter_request(one, shrink(1), shrink(0), shrink(7), shrink(0))
    unknown = alter_request(one, shrink(0), topic_id=b"another topic id")
    request.topics += unknown.topics
    response = world.ask(request)
    assert isinstance(response, AlterPartitionResponse)
    codes = [[partition.error_code for partition in topic.partitions] for topic in response.topics]
    assert codes == [
        [INVALID_REQUEST, 0, UNKNOWN_PARTITION, INVALID_UPDATE_VERSION],
        [UNKNOWN_TOPIC_ID],
    ]
    assert (world.partition(0).isr, world.partition(1).isr) == ((1,), (2, 1))


def test_uncommitted_change_fails_the_whole_request() -> None:
    world = three()
    wanted = AlterPartitionRequest.PartitionData(
        partition_index=0,
        leader_epoch=4,
        partition_epoch=0,
        new_isr_with_epochs=[AlterPartitionRequest.BrokerState(broker_id=1, broker_epoch=-1)],
    )
    response = world.ask(alter_request(world.processes[1], wanted), code=NOT_CONTROLLER)
    assert isinstance(response, AlterPartitionResponse)
    assert (response.error_code, response.topics) == (NOT_CONTROLLER, [])
