"""DescribeGroups: members with metadata and assignment, and unknown groups."""

import pytest

from pykafka_core.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS
from tests.handlers.group_requests import broker_with_coordinator, joined
from tests.support.simulated.broker import SimulatedBroker


def described(
    broker: SimulatedBroker, version: int, *, operations: bool = False
) -> list[DescribeGroupsResponse.DescribedGroup]:
    request = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=operations)
    response = broker.ask(request, version)
    assert isinstance(response, DescribeGroupsResponse)
    return response.groups


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_is_described_with_its_members(version: int) -> None:
    broker = broker_with_coordinator()
    member_id = joined(broker)
    group, none = described(broker, version)
    assert (group.error_code, group.group_state) == (0, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.member_metadata, member.member_assignment) == (
        member_id,
        b"m",
        b"a",
    )
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert (none.group_state, none.error_code) == ("Dead", 69 if version >= 6 else 0)
    if version >= 6:
        assert none.error_message == "Group none not found."


@pytest.mark.parametrize(
    ("asked", "bits"), [(True, 0b110101001000), (False, NO_AUTHORIZED_OPERATIONS)]
)
def test_authorized_operations_are_returned_on_request(asked: bool, bits: int) -> None:
    broker = broker_with_coordinator()
    joined(broker)
    group, none = described(broker, 6, operations=asked)
    assert (group.authorized_operations, none.authorized_operations) == (
        bits,
        NO_AUTHORIZED_OPERATIONS,
    )


def test_without_the_offsets_topic_there_is_no_coordinator() -> None:
    assert [one.error_code for one in described(SimulatedBroker(), 6)] == [15, 15]
