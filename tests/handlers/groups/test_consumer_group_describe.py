"""ConsumerGroupDescribe: members of consumer groups, with current and target assignments."""

import pytest

from pykafka_core.errors import GroupIdNotFoundError, InvalidGroupIdError
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tests.coordinator.group.consumer.world import FIRST
from tests.handlers.group_requests import joined
from tests.handlers.groups.test_consumer_group_heartbeat import beat, broker_with_topic, partitions
from tests.support.simulated.broker import SimulatedBroker

NO_OPERATIONS = -(2**31)


def described(
    broker: SimulatedBroker, *group_ids: str, version: int = 1, operations: bool = False
) -> list[ConsumerGroupDescribeResponse.DescribedGroup]:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=operations
    )
    response = broker.ask(request, version)
    assert isinstance(response, ConsumerGroupDescribeResponse)
    return response.groups


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described_with_assignment_and_target(version: int) -> None:
    broker = broker_with_topic()
    beat(broker, rack_id="r", instance_id="i")
    beat(broker, member_id="n")
    (group,) = described(broker, "g", version=version)
    assert (group.error_code, group.group_state) == (0, "Reconciling")
    assert (group.group_epoch, group.assignment_epoch) == (FIRST + 1, FIRST + 1)
    assert group.assignor_name == "uniform"
    assert group.authorized_operations == NO_OPERATIONS
    first, second = group.members
    assert (first.member_id, first.instance_id, first.rack_id) == ("m", "i", "r")
    assert (first.member_epoch, second.member_epoch) == (FIRST, FIRST + 1)
    assert first.subscribed_topic_names == ["t"]
    assert first.member_type == (1 if version else -1)
    (has,), (wanted,) = (
        first.assignment.topic_partitions,
        first.target_assignment.topic_partitions,
    )
    assert (has.topic_name, has.partitions) == ("t", [0, 1, 2, 3])
    assert len(wanted.partitions) == 2
    assert second.assignment.topic_partitions == []


def test_partitions_that_a_member_still_has_to_revoke_are_described() -> None:
    """Apache Kafka 4.3.1 and 4.4.0 return them; 4.2.1 omits them."""
    broker = broker_with_topic()
    beat(broker)
    beat(broker, member_id="n")
    assert partitions(beat(broker, FIRST)) == [0, 1]
    (group,) = described(broker, "g")
    (has,) = group.members[0].assignment.topic_partitions
    assert (has.topic_name, has.partitions) == ("t", [0, 1, 2, 3])


def test_authorized_operations_are_returned_on_request() -> None:
    broker = broker_with_topic()
    beat(broker)
    (group,) = described(broker, "g", operations=True)
    assert group.authorized_operations > 0


def test_classic_and_missing_groups_are_not_found() -> None:
    broker = broker_with_topic()
    joined(broker, "classic")
    groups = described(broker, "classic", "missing", "")
    not_found = GroupIdNotFoundError.code
    assert [group.error_code for group in groups] == [
        not_found, not_found, InvalidGroupIdError.code,
    ]  # fmt: skip
    assert groups[1].error_message == "Group missing not found."


def test_naming_a_group_many_times_does_not_multiply_the_reply() -> None:
    broker = broker_with_topic(4_000)
    beat(broker)
    groups = described(broker, *["g"] * 2_000)
    refused = [group for group in groups if group.error_code]
    assert len(groups) == 2_000
    assert refused
    assert not groups[0].error_code


def test_describe_groups_does_not_find_a_consumer_group() -> None:
    broker = broker_with_topic()
    beat(broker)
    response = broker.ask(DescribeGroupsRequest(groups=["g"]), 6)
    assert isinstance(response, DescribeGroupsResponse)
    assert response.groups[0].error_code == GroupIdNotFoundError.code
    assert response.groups[0].group_state == "Dead"
