"""SyncGroup in every version."""

from typing import Any

import pytest

from pykafka_core.protocol.messages import (
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.handlers.group_requests import broker_with_coordinator, join_request
from tests.support.simulated.broker import SimulatedBroker


def names(version: int) -> dict[str, Any]:
    """Return the additional fields that this version requires."""
    return {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}


@pytest.mark.parametrize("version", range(6))
def test_leader_gets_the_assignment_it_sent(version: int) -> None:
    broker = broker_with_coordinator()
    joined = broker.ask(join_request(), 3)
    assert isinstance(joined, JoinGroupResponse)
    part = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=b"mine"
    )
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=joined.member_id,
        assignments=[part],
        **names(version),
    )
    response = broker.ask(request, version)
    assert isinstance(response, SyncGroupResponse)
    assert (response.error_code, response.assignment) == (0, b"mine")
    if version >= 5:
        assert (response.protocol_type, response.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize(("group_id", "code"), [("", 24), ("g", 25)])
@pytest.mark.parametrize("version", range(6))
def test_unknown_members_are_rejected(version: int, group_id: str, code: int) -> None:
    request = SyncGroupRequest(group_id=group_id, generation_id=1, member_id="x", **names(version))
    response = broker_with_coordinator().ask(request, version)
    assert isinstance(response, SyncGroupResponse)
    assert response.error_code == code


def test_without_the_offsets_topic_there_is_no_coordinator() -> None:
    response = SimulatedBroker().ask(SyncGroupRequest(group_id="g", member_id="x"), 4)
    assert isinstance(response, SyncGroupResponse)
    assert response.error_code == 15
