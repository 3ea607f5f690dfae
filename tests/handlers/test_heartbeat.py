"""Heartbeat in every version."""

import pytest

from pykafka_core.handlers.coordinators.heartbeat import _refused
from pykafka_core.protocol.messages import HeartbeatRequest, HeartbeatResponse
from tests.handlers.group_requests import broker_with_coordinator, joined, pass_ms


@pytest.mark.parametrize("version", range(5))
def test_a_member_stays_with_heartbeats_and_is_removed_without(version: int) -> None:
    broker = broker_with_coordinator()
    member = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined(broker))
    codes = []
    for duration_ms in (0, 9_999, 9_999, 10_000):
        pass_ms(broker, duration_ms)
        answer = broker.ask(member, version)
        assert isinstance(answer, HeartbeatResponse)
        codes.append(answer.error_code)
    assert codes == [0, 0, 0, 25]


@pytest.mark.parametrize(("group_id", "code"), [("", 24), ("g", 25)])
def test_unknown_members_are_rejected(group_id: str, code: int) -> None:
    request = HeartbeatRequest(group_id=group_id, generation_id=1, member_id="x")
    answer = broker_with_coordinator().ask(request)
    assert isinstance(answer, HeartbeatResponse)
    assert answer.error_code == code


def test_while_groups_are_loaded_members_have_nothing_to_do() -> None:
    assert [_refused(code).error_code for code in (14, 15, 16)] == [0, 15, 16]
