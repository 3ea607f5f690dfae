"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, Committed, Place
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter


class Fetched(NamedTuple):
    """Offsets by topic and partition at one time.

    Attributes:
        offsets: No topic without offsets.
        unstable: The partitions with offsets of open transactions.
        topic_ids: The ids of the requested topics; None if a topic does not exist.
    """

    offsets: Mapping[str, Mapping[int, Committed]]
    unstable: frozenset[Place]
    topic_ids: Mapping[str, bytes | None]


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

    The offsets are copied, because the response is built in slices while other requests commit.

    Raises:
        UnknownMemberIdError: The request names an unknown member of a consumer group.
        StaleMemberEpochError: The member is in another epoch.
    """
    consumers = state.consumer_groups.get(group_id)
    if consumers is not None:
        consumers.check_fetch(member_id, member_epoch)
    offsets = dict(current_offsets(state, group_id, topics))
    topic_ids = {name: state.topic_id(name) for name in (offsets if topics is None else topics)}
    turn.answer(waiter, Fetched(offsets, state.offsets.pending_places(group_id), topic_ids))
