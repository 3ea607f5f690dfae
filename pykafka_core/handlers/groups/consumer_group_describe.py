"""ConsumerGroupDescribe (69): members of consumer groups, with their current and target
assignments.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pykafka_core.coordinator.group.consumer.describe import (
    Described,
    DescribedMember,
    describe_consumer_group,
)
from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InvalidGroupIdError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.groups.describe_groups import (
    GROUP_OPERATIONS,
    RESPONSE_BYTES_MAX,
)
from pykafka_core.handlers.outcome import Reserve, ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""Types of members, by their protocol; in the response from version 1 on."""

_MEMBER_BYTES = 200
"""Estimated size of a member in a response, without its topics and partitions."""
_PARTITION_BYTES = 16
"""Weight of a partition, which has 4 bytes in the response: each is converted separately."""

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_Row = ConsumerGroupDescribeResponse.TopicPartitions


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> Work[ShardCalls]:
    """Describe each group separately; a repeated group is read once."""
    named = list(dict.fromkeys(request.group_ids))

    def reply(results: Sequence[ShardResult]) -> Work[Reserve]:
        return _reserve(context, request, dict(zip(named, results, strict=True)))

    operations = ((group_id, partial(describe_consumer_group, group_id)) for group_id in named)
    return (yield from coordinate_each(context, operations, reply))


def _reserve(
    context: Context, request: ConsumerGroupDescribeRequest, results: Mapping[str, ShardResult]
) -> Work[Reserve]:
    """Choose the groups that the response has room for, and reserve its memory."""
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else NO_AUTHORIZED_OPERATIONS
    )
    came: list[Described | _Group] = []
    bytes_left = RESPONSE_BYTES_MAX
    for group_id in request.group_ids:
        yield
        described, code = results[group_id].value, results[group_id].error_code
        if not group_id:
            code = InvalidGroupIdError.code
        elif bytes_left <= 0:
            code = CoordinatorNotAvailableError.code
        if code:
            came.append(_absent(group_id, code))
            continue
        assert isinstance(described, Described), "a shard answers with a description"
        bytes_left -= _size(described)
        came.append(described)
    return Reserve(RESPONSE_BYTES_MAX - bytes_left, partial(_response, context, came, operations))


def _response(
    context: Context,
    came: Sequence[Described | _Group],
    operations: int,
) -> Work[ConsumerGroupDescribeResponse]:
    groups: list[_Group] = []
    for one in came:
        yield
        if isinstance(one, Described):
            one = yield from _group(context, one, operations)
        groups.append(one)
    return ConsumerGroupDescribeResponse(groups=groups)


def _size(described: Described) -> int:
    return sum(
        _MEMBER_BYTES
        + sum(map(len, one.member.topic_names))
        + _PARTITION_BYTES * sum(map(len, (*one.held.values(), *one.target.values())))
        for one in described.members
    )


def _absent(group_id: str, code: int) -> ConsumerGroupDescribeResponse.DescribedGroup:
    refused = _Group(group_id=group_id, error_code=code)
    if code == GroupIdNotFoundError.code:
        error = GroupIdNotFoundError(f"Group {group_id} not found.")
        refused.error_message = str(error)
    return refused


def _group(
    context: Context, described: Described, operations: int
) -> Work[ConsumerGroupDescribeResponse.DescribedGroup]:
    members = []
    for one in described.members:
        yield
        members.append(_member(context, one))
    return _Group(
        group_id=described.group_id,
        group_state=described.state,
        group_epoch=described.epoch,
        assignment_epoch=described.assignment_epoch,
        assignor_name=described.assignor,
        members=members,
        authorized_operations=operations,
    )


def _member(context: Context, described: DescribedMember) -> ConsumerGroupDescribeResponse.Member:
    member = described.member
    return _Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex or "",
        assignment=_assignment(context, described.held),
        target_assignment=_assignment(context, described.target),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    context: Context, assignment: Mapping[bytes, Collection[int]]
) -> ConsumerGroupDescribeResponse.Assignment:
    """Return partitions with the names of their topics; deleted topics are omitted."""
    by_id = context.image.topics.by_id
    rows = [
        _Row(topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=sorted(numbers))
        for topic_id, numbers in assignment.items()
        if topic_id in by_id
    ]
    return _Assignment(topic_partitions=rows)
