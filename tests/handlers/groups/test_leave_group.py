"""LeaveGroup: one member before version 3, many members from version 3 on."""

import pytest

from pykafka_core.handlers.groups.leave_group import AT_ONCE
from pykafka_core.protocol.messages import LeaveGroupRequest, LeaveGroupResponse
from tests.handlers.group_requests import broker_with_coordinator, joined
from tests.support.simulated.broker import SimulatedBroker

Identity = LeaveGroupRequest.MemberIdentity


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_one_member_leaves(version: int) -> None:
    broker = broker_with_coordinator()
    request = LeaveGroupRequest(group_id="g", member_id=joined(broker))
    codes = []
    for _ in range(2):
        response = broker.ask(request, version)
        assert isinstance(response, LeaveGroupResponse)
        codes.append(response.error_code)
    assert codes == [0, 25]


@pytest.mark.parametrize("version", range(3, 6))
def test_since_version_3_each_member_has_its_result(version: int) -> None:
    broker = broker_with_coordinator()
    identities = [Identity(member_id=one) for one in ("x", joined(broker))]
    response = broker.ask(LeaveGroupRequest(group_id="g", members=identities), version)
    assert isinstance(response, LeaveGroupResponse)
    assert response.error_code == 0
    assert [(one.member_id, one.error_code) for one in response.members] == [
        ("x", 25),
        (identities[1].member_id, 0),
    ]


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_a_group_that_does_not_exist_has_no_members(count: int) -> None:
    request = LeaveGroupRequest(group_id="g", members=[Identity(member_id="x")] * count)
    response = broker_with_coordinator().ask(request)
    assert isinstance(response, LeaveGroupResponse)
    assert [one.error_code for one in response.members] == [25] * count
    assert response.error_code == 0


@pytest.mark.parametrize("version", [0, 5])
def test_invalid_group_id_and_missing_coordinator_fail_the_whole_request(version: int) -> None:
    nameless = broker_with_coordinator().ask(LeaveGroupRequest(group_id=""), version)
    nobody = SimulatedBroker().ask(LeaveGroupRequest(group_id="g"), version)
    codes = [one.error_code for one in (nameless, nobody) if isinstance(one, LeaveGroupResponse)]
    assert codes == [24, 15]
