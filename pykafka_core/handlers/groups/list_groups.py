"""ListGroups (16): the groups that this node coordinates."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.describe import (
    CLASSIC,
    CONSUMER,
    Listed,
    list_groups,
)
from pykafka_core.errors import NotCoordinatorError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Coordinate, Coordinated, GroupOperation, Slices
from pykafka_core.protocol.messages import ListGroupsRequest, ListGroupsResponse
from pykafka_core.types import GROUP_TOPIC


def handle(context: Context, request: ListGroupsRequest) -> Coordinate | ListGroupsResponse:
    """List the groups of all shards on this node. Filters ignore case, and empty filters match all
    groups (KIP-518, KIP-848).
    """
    topic = context.image.topics.by_name.get(GROUP_TOPIC)
    types = {name.lower() for name in request.types_filter}
    if topic is None or (types and types.isdisjoint((CLASSIC, CONSUMER))):
        return ListGroupsResponse()
    states = frozenset(name.lower() for name in request.states_filter)
    run = partial(list_groups, states, types)
    led = [
        GroupOperation(index, run)
        for index, partition in topic.partitions.items()
        if partition.leader == context.node.node_id
    ]
    return Coordinate(led, _answer)


def _answer(results: Sequence[Coordinated]) -> Slices[ListGroupsResponse]:
    groups: list[ListGroupsResponse.ListedGroup] = []
    for result in results:
        if result.error_code == NotCoordinatorError.code:
            continue  # another node leads the partition now, and lists its groups
        if result.error_code:
            return ListGroupsResponse(error_code=result.error_code)
        assert isinstance(result.answer, tuple), "groups are listed in a tuple"
        for listed in result.answer:
            yield
            groups.append(_row(listed))
    return ListGroupsResponse(groups=groups)


def _row(listed: Listed) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=listed.group_id,
        protocol_type=listed.protocol_type,
        group_state=listed.state,
        group_type=listed.group_type,
    )
