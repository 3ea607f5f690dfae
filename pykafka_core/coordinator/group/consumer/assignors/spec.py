"""The input and the result of an assignor."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.member import NOTHING, Assignment


class MemberSpec(NamedTuple):
    """An assignor's view of a member: its subscribed topics and its previous target assignment."""

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment = NOTHING


Assignor = Callable[[Collection[MemberSpec], Mapping[bytes, int]], Mapping[str, Assignment]]
"""Maps members, and the partition counts of all their topics, to assignments by member id. Each
partition of a subscribed topic goes to exactly one subscriber of the topic."""


def subscribers_of(subscriptions: Collection[frozenset[bytes]]) -> Mapping[bytes, list[int]]:
    """Return the subscribers of each topic as indexes of ``subscriptions``, unsorted.

    Members with equal subscriptions are added together, because most members of a group have the
    same subscription.
    """
    places: dict[frozenset[bytes], list[int]] = {}
    for place, topic_ids in enumerate(subscriptions):
        places.setdefault(topic_ids, []).append(place)
    found: dict[bytes, list[int]] = defaultdict(list)
    for topic_ids, equal in places.items():
        for topic_id in topic_ids:
            found[topic_id] += equal
    return found
