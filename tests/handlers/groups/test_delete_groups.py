"""DeleteGroups: each group is deleted separately."""

import pytest

from pykafka_core.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    LeaveGroupRequest,
)
from tests.handlers.group_requests import broker_with_coordinator, joined
from tests.support.simulated.broker import SimulatedBroker


def deleted(broker: SimulatedBroker, *group_ids: str, version: int = 2) -> list[tuple[str, int]]:
    response = broker.ask(DeleteGroupsRequest(groups_names=list(group_ids)), version)
    assert isinstance(response, DeleteGroupsResponse)
    return [(result.group_id, result.error_code) for result in response.results]


@pytest.mark.parametrize("version", range(4))
def test_empty_groups_are_deleted(version: int) -> None:
    broker = broker_with_coordinator()
    broker.ask(LeaveGroupRequest(group_id="left", member_id=joined(broker, "left")), 1)
    joined(broker, "used")
    first = deleted(broker, "left", "used", "none", "", "left", version=version)
    assert first == [("left", 0), ("used", 68), ("none", 69), ("", 69)]
    assert deleted(broker, "left", version=version) == [("left", 69)]


def test_without_the_offsets_topic_there_is_no_coordinator() -> None:
    assert deleted(SimulatedBroker(), "g") == [("g", 15)]
