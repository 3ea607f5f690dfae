"""The assignor `range`: of each topic a member has a run of partitions, so those of equal numbers meet in a member.

As ``RangeAssignor``: subscribers in order, static ones first by instance id, so that a member that comes back has the
same runs; the first ones have one partition more. It does not look at what members had.
"""

from collections.abc import Collection, Mapping

from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec
from pykafka_core.coordinator.group.consumer.member import Assignment


def assign_range(
    members: Collection[MemberSpec], counts: Mapping[bytes, int]
) -> Mapping[str, Assignment]:
    """An `Assignor`."""
    ordered = sorted(members, key=_order)
    made: dict[str, dict[bytes, frozenset[int]]] = {one.member_id: {} for one in ordered}
    for topic_id, count in counts.items():
        subscribers = [one.member_id for one in ordered if topic_id in one.topic_ids]
        if subscribers:
            _share(topic_id, count, subscribers, made)
    return made


def _order(member: MemberSpec) -> tuple[bool, str]:
    dynamic = member.instance_id is None
    return dynamic, member.member_id if member.instance_id is None else member.instance_id


def _share(
    topic_id: bytes,
    count: int,
    subscribers: list[str],
    made: Mapping[str, dict[bytes, frozenset[int]]],
) -> None:
    quota, extra = divmod(count, len(subscribers))
    start = 0
    for place, member_id in enumerate(subscribers):
        end = start + quota + (place < extra)
        if start < end:
            made[member_id][topic_id] = frozenset(range(start, end))
        start = end
