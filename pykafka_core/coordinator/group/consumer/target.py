"""The target assignment of a consumer group: what the assignor makes of its members and topics."""

from collections.abc import Iterable, Mapping

from pykafka_core.coordinator.group.consumer.assignors.range import assign_range
from pykafka_core.coordinator.group.consumer.assignors.spec import Assignor, MemberSpec
from pykafka_core.coordinator.group.consumer.assignors.uniform import assign_uniform
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.member import Assignment
from pykafka_core.coordinator.group.consumer.records import target_epoch_record, target_record
from pykafka_core.coordinator.group.consumer.topics import TopicsView, found_topics
from pykafka_core.coordinator.shard import KeyValue

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""By the names that clients know."""


def assignor_name(group: ConsumerGroup, default: str) -> str:
    """The assignor that most members like, or the broker's."""
    preferred = group.preferred_assignor()
    return default if preferred is None else preferred


def target_records(
    group: ConsumerGroup, view: TopicsView, default_assignor: str, now_ms: int
) -> list[KeyValue]:
    """Records of a new target assignment for the group's epoch: of those members whose target changes.

    A target that a member does not have yet is a change too, even to nothing.
    """
    # A group written by a broker with other assignors may like one that is not here.
    name = assignor_name(group, default_assignor)
    assign = ASSIGNORS.get(name, ASSIGNORS[default_assignor])
    topics = found_topics(view, set(group.subscribed_names()))
    counts = {topic.topic_id: topic.partitions_count for topic in topics.values()}
    ids = {name: topic.topic_id for name, topic in topics.items()}
    made = assign(_specs(group, ids), counts)
    changed = _changed(group, made)
    records = [target_record(group.group_id, member_id, made[member_id]) for member_id in changed]
    return [*records, target_epoch_record(group.group_id, group.epoch, now_ms)]


def _specs(group: ConsumerGroup, ids: Mapping[str, bytes]) -> list[MemberSpec]:
    """All members; those of equal subscriptions share one set of topics, since that is made topic by topic."""
    known: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
    specs = []
    for member_id, member in group.members.items():
        subscription = member.topic_names, member.topic_regex
        topic_ids = known.get(subscription)
        if topic_ids is None:
            names = group.names_of(member)
            topic_ids = known[subscription] = frozenset(filter(None, map(ids.get, names)))
        target = group.target(member_id)
        specs.append(MemberSpec(member_id, member.instance_id, topic_ids, target))
    return specs


def _changed(group: ConsumerGroup, made: Mapping[str, Assignment]) -> Iterable[str]:
    return [
        member_id
        for member_id in group.members
        # Most have the same object again, which need not be compared partition by partition.
        if (known := group.targets.get(member_id)) is not made[member_id]
        and known != made[member_id]
    ]
