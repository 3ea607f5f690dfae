"""ListGroups (16): the groups that this node coordinates."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.budget import encoded_length_max
from pykafka_core.coordinator.group.classic.describe import (
    CLASSIC,
    CONSUMER,
    Kind,
    list_groups,
)
from pykafka_core.errors import NotCoordinatorError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import (
    GroupOperation,
    Made,
    Reserve,
    ShardCalls,
    ShardResult,
    Work,
)
from pykafka_core.protocol.messages import ListGroupsRequest, ListGroupsResponse
from pykafka_core.types import GROUP_TOPIC

_ROW_BYTES = 120
"""Size of a row, encoded and as an object, without its strings."""


def handle(context: Context, request: ListGroupsRequest) -> ShardCalls | ListGroupsResponse:
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
    return ShardCalls(led, _reserve)


def _reserve(results: Sequence[ShardResult]) -> Work[Made]:
    """Reserve the memory of the response."""
    listed: list[tuple[Kind, Sequence[str]]] = []
    size = 0
    for result in results:
        if result.error_code == NotCoordinatorError.code:
            continue  # another node leads the partition now, and lists its groups
        if result.error_code:
            return ListGroupsResponse(error_code=result.error_code)
        assert isinstance(result.value, dict), "groups are listed by their kind"
        for kind, group_ids in result.value.items():
            listed.append((kind, group_ids))
            row_bytes = _ROW_BYTES + sum(map(encoded_length_max, kind))
            for group_id in group_ids:
                yield
                size += row_bytes + encoded_length_max(group_id)
    return Reserve(size, partial(_response, listed))


def _response(listed: Sequence[tuple[Kind, Sequence[str]]]) -> Work[ListGroupsResponse]:
    groups: list[ListGroupsResponse.ListedGroup] = []
    for kind, group_ids in listed:
        for group_id in group_ids:
            yield
            groups.append(_row(kind, group_id))
    return ListGroupsResponse(groups=groups)


def _row(kind: Kind, group_id: str) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group_id,
        protocol_type=kind.protocol_type,
        group_state=kind.state,
        group_type=kind.group_type,
    )
