"""ListGroups: all shards, with filters of states and types."""

from collections.abc import Sequence

import pytest

from pykafka_core.handlers.groups.list_groups import _reserve
from pykafka_core.handlers.outcome import Reserve, ShardResult, run_to_end
from pykafka_core.protocol.messages import (
    LeaveGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.handlers.group_requests import broker_with_coordinator, joined
from tests.support.simulated.broker import SimulatedBroker

MANY = [f"group-{number}" for number in range(100)]


def listed(broker: SimulatedBroker, version: int, **filters: Sequence[str]) -> list[str]:
    response = broker.ask(ListGroupsRequest(**filters), version)  # type: ignore[arg-type]
    assert isinstance(response, ListGroupsResponse)
    assert response.error_code == 0
    return sorted(group.group_id for group in response.groups)


@pytest.mark.parametrize("version", range(6))
def test_groups_of_all_shards_are_listed(version: int) -> None:
    broker = broker_with_coordinator()
    for group_id in MANY:
        joined(broker, group_id)
    response = broker.ask(ListGroupsRequest(), version)
    assert isinstance(response, ListGroupsResponse)
    assert sorted(group.group_id for group in response.groups) == sorted(MANY)
    first = response.groups[0]
    assert first.protocol_type == "consumer"
    assert (first.group_state, first.group_type) == (
        "Stable" if version >= 4 else "",
        "classic" if version >= 5 else "",
    )


def test_filters_ignore_case() -> None:
    broker = broker_with_coordinator()
    broker.ask(LeaveGroupRequest(group_id="left", member_id=joined(broker, "left")), 1)
    joined(broker, "stays")
    assert listed(broker, 5, states_filter=["EMPTY"]) == ["left"]
    assert listed(broker, 5, states_filter=["stable", "Dead"]) == ["stays"]
    assert listed(broker, 5, states_filter=["nonsense"]) == []
    assert listed(broker, 5, types_filter=["Classic"]) == ["left", "stays"]
    assert listed(broker, 5, types_filter=["consumer"]) == []


def test_without_the_offsets_topic_there_are_no_groups() -> None:
    assert listed(SimulatedBroker(), 5) == []


@pytest.mark.parametrize(("code", "expected"), [(14, 14), (16, 0)])
def test_loading_shard_returns_an_error_and_a_shard_of_another_node_does_not(
    code: int, expected: int
) -> None:
    made = run_to_end(_reserve([ShardResult(0, {}), ShardResult(code)]))
    response = run_to_end(made.then()) if isinstance(made, Reserve) else made
    assert isinstance(response, ListGroupsResponse)
    assert (response.error_code, response.groups) == (expected, [])
