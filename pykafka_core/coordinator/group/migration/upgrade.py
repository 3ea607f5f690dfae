"""Converts a classic group and its members to a consumer group: ``convertToConsumerGroup`` in
Kafka.
"""

from pykafka_core.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL,
    ClassicGroup,
    selected_protocol,
)
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.member import (
    ClassicSide,
    ConsumerMember,
    assignment_of,
    held_since,
)
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from pykafka_core.coordinator.group.consumer.topics import (
    TopicsView,
    found_topics,
    metadata_hash,
)
from pykafka_core.coordinator.group.migration.consumer_protocol import (
    MalformedError,
    assignment_in,
    subscription_of,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.errors import GroupIdNotFoundError


def upgraded(classic: ClassicGroup, view: TopicsView, state: GroupState) -> Draft:
    """Return a consumer group with the members of a classic group and their current assignments.

    The generation becomes the group epoch, so the next join raises it. When the draft is committed,
    pending requests to the classic group fail with REBALANCE_IN_PROGRESS.

    Raises:
        GroupIdNotFoundError: The conversion is not allowed, or a subscription or assignment cannot
            be read.
    """
    group_id, settings = classic.group_id, state.settings.consumer
    if (
        not settings.migration.allows_upgrade
        or classic.protocol_type != CONSUMER_PROTOCOL
        or len(classic.members) > settings.max_size
    ):
        raise GroupIdNotFoundError
    try:
        members = _members(classic, view)
    except MalformedError:
        raise GroupIdNotFoundError from None
    names = frozenset[str]().union(*(member.topic_names for member in members))
    found = metadata_hash(found_topics(view, names).values())
    group = ConsumerGroup(group_id, state.member_memory, classic.history)
    draft = Draft(group, [group_tombstone(group_id)])
    draft.add(
        [
            *(member_record(group_id, member) for member in members),
            epoch_record(group_id, classic.generation_id, found),
            *(target_record(group_id, member.member_id, member.assigned) for member in members),
            target_epoch_record(group_id, classic.generation_id),
            *(current_record(group_id, member) for member in members),
        ]
    )
    return draft


def _members(classic: ClassicGroup, view: TopicsView) -> list[ConsumerMember]:
    members = list(classic.members.values())
    name = classic.protocol_name or selected_protocol(members)
    made, taken = [], set[tuple[bytes, int]]()
    for member in members:
        one = _member(member, name, classic.generation_id, view)
        # A leader may have assigned a partition to several members. The first member keeps it.
        own = assignment_of(
            (topic_id, (number for number in numbers if (topic_id, number) not in taken))
            for topic_id, numbers in one.assigned.items()
        )
        made.append(one._replace(assigned=held_since(one.epoch, own)))
        taken.update(made[-1].held())
    return made


def _member(member: Member, protocol: str, epoch: int, view: TopicsView) -> ConsumerMember:
    subscription = subscription_of(member.metadata(protocol))
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=subscription.topic_names,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        epoch=epoch,
        previous_epoch=epoch,
        assigned=held_since(epoch, assignment_in(member.assignment, view)),
        classic=ClassicSide(member.session_timeout_ms, member.protocols),
    )
