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
from pykafka_core.errors import GroupIdNotFoundError, InvalidGroupIdError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.measured import value_of
from pykafka_core.handlers.groups.describe_groups import GROUP_OPERATIONS, describe_each
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""Types of members, by their protocol; in the response from version 1 on."""

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_Row = ConsumerGroupDescribeResponse.TopicPartitions


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> Work[ShardCalls]:
    """Describe each group separately."""
    respond = partial(_response, context, request)
    return (yield from describe_each(context, request.group_ids, describe_consumer_group, respond))


def _response(
    context: Context, request: ConsumerGroupDescribeRequest, results: Sequence[ShardResult]
) -> Work[ConsumerGroupDescribeResponse]:
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else NO_AUTHORIZED_OPERATIONS
    )
    groups: list[_Group] = []
    for group_id, result in zip(request.group_ids, results, strict=True):
        yield
        described = value_of(result)
        if not group_id:
            groups.append(_absent(group_id, InvalidGroupIdError.code))
        elif isinstance(described, Described):
            groups.append((yield from _group(context, described, operations)))
        else:
            groups.append(_absent(group_id, result.error_code))
    return ConsumerGroupDescribeResponse(groups=groups)


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
