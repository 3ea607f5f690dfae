"""What an assignor is given, and what it makes."""

from collections.abc import Callable, Collection, Mapping, Set
from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.member import NOTHING, Assignment


class MemberSpec(NamedTuple):
    """A member as an assignor sees it: the topics it is subscribed to, and what it is to have so far."""

    member_id: str
    instance_id: str | None
    topic_ids: Set[bytes]
    target: Assignment = NOTHING


Assignor = Callable[[Collection[MemberSpec], Mapping[bytes, int]], Mapping[str, Assignment]]
"""From members and the partition counts of all their topics to every member's assignment, by member id: each partition
of a topic that somebody subscribes to goes to exactly one of its subscribers."""
