"""What an assignor is given, and what it makes."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.member import NOTHING, Assignment


class MemberSpec(NamedTuple):
    """A member as an assignor sees it: the topics it is subscribed to, and what it is to have so far."""

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment = NOTHING


Assignor = Callable[[Collection[MemberSpec], Mapping[bytes, int]], Mapping[str, Assignment]]
"""From members and the partition counts of all their topics to every member's assignment, by member id: each partition
of a topic that somebody subscribes to goes to exactly one of its subscribers."""


def subscribers_of(subscriptions: Collection[frozenset[bytes]]) -> Mapping[bytes, list[int]]:
    """Who is subscribed to a topic, by places in ``subscriptions``; the places are in no order.

    Those with equal subscriptions are added at once: a group's members mostly have the same.
    """
    places: dict[frozenset[bytes], list[int]] = {}
    for place, topic_ids in enumerate(subscriptions):
        places.setdefault(topic_ids, []).append(place)
    found: dict[bytes, list[int]] = defaultdict(list)
    for topic_ids, equal in places.items():
        for topic_id in topic_ids:
            found[topic_id] += equal
    return found
