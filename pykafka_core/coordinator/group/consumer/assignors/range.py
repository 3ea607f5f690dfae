"""The assignor `range`: each member gets a contiguous range of every topic's partitions, so
partitions with equal numbers go to the same member if the topics have equal partition counts and
subscribers.

Like ``RangeAssignor``: subscribers are sorted, static members first by instance id, so that a
static member that rejoins gets the same ranges; the first ones get one partition more. Previous
assignments are ignored.
"""

from collections.abc import Collection, Mapping

from pykafka_core.coordinator.group.consumer.assignors.spec import MemberSpec, subscribers_of
from pykafka_core.coordinator.group.consumer.member import Assignment


def assign_range(
    members: Collection[MemberSpec], counts: Mapping[bytes, int]
) -> Mapping[str, Assignment]:
    """An `Assignor` for members with any subscriptions."""
    ordered = sorted(members, key=_order)
    made: dict[str, dict[bytes, frozenset[int]]] = {one.member_id: {} for one in ordered}
    subscribers = subscribers_of([one.topic_ids for one in ordered])
    for topic_id, count in counts.items():
        numbers = sorted(subscribers.get(topic_id, ()))
        if numbers:
            _share(topic_id, count, [ordered[number].member_id for number in numbers], made)
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
    for place, member_id in enumerate(subscribers[:count]):
        end = start + quota + (place < extra)
        if start < end:
            made[member_id][topic_id] = frozenset(range(start, end))
        start = end
