"""The target assignment of a consumer group: the result of its assignor."""

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
"""Assignors by the names that clients use."""


def assignor_name(group: ConsumerGroup, default: str) -> str:
    """Return the assignor that most members prefer, or the broker's default."""
    preferred = group.preferred_assignor()
    return default if preferred is None else preferred


def target_records(
    group: ConsumerGroup, view: TopicsView, default_assignor: str, now_ms: int
) -> list[KeyValue]:
    """Return the records of a new target assignment for the group's epoch: one for each member
    whose target has changed, and one for the epoch.

    The first target of a member is always stored, even if it is empty.
    """
    # Another broker may have stored a preferred assignor that this version does not have.
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
    """Return all members. Members with equal subscriptions share one set of topics, because it
    takes time to build.
    """
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
        # Most members get the same object again, which saves a comparison of all partitions.
        if (known := group.targets.get(member_id)) is not made[member_id]
        and known != made[member_id]
    ]
