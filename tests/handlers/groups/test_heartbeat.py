"""Heartbeat in every version."""

import pytest

from pykafka_core.handlers.groups.heartbeat import _refused
from pykafka_core.protocol.messages import HeartbeatRequest, HeartbeatResponse
from tests.handlers.group_requests import broker_with_coordinator, joined, pass_ms


@pytest.mark.parametrize("version", range(5))
def test_member_stays_as_long_as_it_sends_heartbeats(version: int) -> None:
    broker = broker_with_coordinator()
    member = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined(broker))
    codes = []
    for duration_ms in (0, 9_999, 9_999, 10_000):
        pass_ms(broker, duration_ms)
        response = broker.ask(member, version)
        assert isinstance(response, HeartbeatResponse)
        codes.append(response.error_code)
    assert codes == [0, 0, 0, 25]


@pytest.mark.parametrize(("group_id", "code"), [("", 24), ("g", 25)])
def test_unknown_members_are_rejected(group_id: str, code: int) -> None:
    request = HeartbeatRequest(group_id=group_id, generation_id=1, member_id="x")
    response = broker_with_coordinator().ask(request)
    assert isinstance(response, HeartbeatResponse)
    assert response.error_code == code


def test_members_get_no_error_while_groups_are_loaded() -> None:
    assert [_refused(code).error_code for code in (14, 15, 16)] == [0, 15, 16]
