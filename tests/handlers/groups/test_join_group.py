"""JoinGroup: the checks before the coordinator handles it, and the response in each version."""

from typing import Any

import pytest

from pykafka_core.handlers.groups.join_group import PROTOCOLS_MAX
from pykafka_core.protocol.messages import JoinGroupRequest, JoinGroupResponse
from tests.handlers.group_requests import broker_with_coordinator, join_request, pass_ms
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(version: int) -> None:
    broker = broker_with_coordinator()
    response = broker.ask(join_request(), version)
    assert isinstance(response, JoinGroupResponse)
    if version >= 4:
        assert (response.error_code, response.member_id[:5]) == (79, "test-")
        assert response.protocol_name == (None if version >= 7 else "")
        response = broker.ask(join_request(response.member_id), version)
        assert isinstance(response, JoinGroupResponse)
    assert (response.error_code, response.generation_id, response.protocol_name) == (0, 1, "range")
    assert response.leader == response.member_id == response.members[0].member_id


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": ""}, 24),
        ({"session_timeout_ms": 5_999}, 26),
        ({"session_timeout_ms": 1_800_001}, 26),
        ({"protocols": []}, 23),
        ({"protocol_type": ""}, 23),
        ({"member_id": "stranger"}, 25),
        ({"protocols": [JoinGroupRequest.JoinGroupRequestProtocol()] * (PROTOCOLS_MAX + 1)}, 23),
    ],
)
@pytest.mark.parametrize("version", [0, 4, 6, 7, 9])
def test_bad_input_is_rejected(version: int, changes: dict[str, Any], code: int) -> None:
    response = broker_with_coordinator().ask(join_request(**changes), version)
    assert isinstance(response, JoinGroupResponse)
    assert (response.error_code, response.member_id) == (code, changes.get("member_id", ""))
    assert response.protocol_name == (None if version >= 7 else "")


def test_without_the_offsets_topic_there_is_no_coordinator() -> None:
    response = SimulatedBroker().ask(join_request())
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == 15


def test_second_member_is_answered_when_the_first_rejoins() -> None:
    broker = broker_with_coordinator()
    first = broker.ask(join_request(), 3)
    assert isinstance(first, JoinGroupResponse)
    waiting = broker.send(join_request(), 3)
    broker.run()
    assert broker.response(waiting) is None
    broker.ask(join_request(first.member_id), 3)
    response = broker.response(waiting)
    assert isinstance(response, JoinGroupResponse)
    assert (response.generation_id, response.members) == (2, [])


def test_version_0_waits_for_the_session_timeout() -> None:
    broker = broker_with_coordinator()
    broker.ask(join_request(), 0)
    waiting = broker.send(join_request(), 0)
    broker.run()
    assert broker.response(waiting) is None
    pass_ms(broker, 10_000)
    response = broker.response(waiting)
    assert isinstance(response, JoinGroupResponse)
    assert response.generation_id == 2
