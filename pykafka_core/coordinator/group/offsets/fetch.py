"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import KafkaError


class Reader(NamedTuple):
    """A member and its epoch, or neither."""

    member_id: str | None = None
    epoch: int = NO_EPOCH


class Fetched(NamedTuple):
    """Offsets by topic and partition at one time.

    Attributes:
        offsets: No topic without offsets.
        unstable: The partitions with offsets of open transactions.
        topic_ids: The ids of the requested topics; None if a topic does not exist.
        refused: Error codes of members that may not read them.
    """

    offsets: Mapping[str, Mapping[int, Committed]]
    unstable: frozenset[TopicPartition]
    topic_ids: Mapping[str, bytes | None]
    refused: Mapping[Reader, int]


def fetch_offsets(
    group_id: str,
    topics: Collection[str] | None,
    readers: Collection[Reader],
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Respond with a `Fetched` of those topics, or of all.

    The offsets are copied, because the response is built in slices while other requests commit.

    All readers share one copy.
    """
    consumers = state.consumer_groups.get(group_id)
    refused = {} if consumers is None else _refused(consumers, readers)
    offsets = dict(current_offsets(state, group_id, topics))
    topic_ids = {name: state.topic_id(name) for name in (offsets if topics is None else topics)}
    pending = state.offsets.pending_places(group_id)
    result.respond(waiter, Fetched(offsets, pending, topic_ids, refused))


def _refused(group: ConsumerGroup, readers: Iterable[Reader]) -> dict[Reader, int]:
    refused: dict[Reader, int] = {}
    for reader in readers:
        try:
            group.check_fetch(*reader)
        except KafkaError as error:
            refused[reader] = error.code
    return refused
