"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.deleted_topics import of_current
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, Committed, GoneTopics, Place
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter


class Fetched(NamedTuple):
    """Offsets by topic and partition at one time.

    Theory of operation. The response is built in slices, so the offsets are those of one time:
    commits that land in between change nothing. Whether a topic was deleted is looked up when its
    slice is built. So the response may lack a topic that was deleted after that time, as in Kafka,
    which removes the offsets of a deleted topic at any time.

    Attributes:
        offsets: All offsets in the topics, also those of deleted topics.
        unstable: The partitions with offsets of open transactions.
        gone: Topics that were deleted before.
        topic_id: Returns the id of a topic by its name, None if the topic does not exist now.
    """

    offsets: Mapping[str, Mapping[int, Committed]]
    unstable: frozenset[Place]
    gone: GoneTopics
    topic_id: Callable[[str], bytes | None]

    def current(self, topic: str) -> Mapping[int, Committed]:
        """Return the offsets of a topic that do not belong to deleted topics of its name."""
        partitions = self.offsets.get(topic)
        if partitions is None:
            return {}
        return of_current(partitions, self.topic_id(topic), self.gone.ids(topic))


def fetch_offsets(
    group_id: str,
    topics: Collection[str] | None,
    state: GroupState,
    waiter: Waiter,
    turn: Turn,
    *,
    member_id: str | None = None,
    member_epoch: int = NO_EPOCH,
) -> None:
    """Respond with a `Fetched` of those topics, or of all.

    Raises:
        UnknownMemberIdError: The request names an unknown member of a consumer group.
        StaleMemberEpochError: The member is in another epoch.
    """
    consumers = state.consumer_groups.get(group_id)
    if consumers is not None:
        consumers.check_fetch(member_id, member_epoch)
    offsets = state.offsets
    fetched = Fetched(
        offsets.snapshot(group_id, topics),
        offsets.pending_places(group_id),
        offsets.gone_topics(),
        state.topic_id,
    )
    turn.answer(waiter, fetched)
