"""OffsetCommit in a classic or a simple group."""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.session import touch
from pykafka_core.coordinator.group.offsets.records import group_of, offset_record
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, NO_EXPIRY, NO_TOPIC_ID, Committed
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.errors import GroupIdNotFoundError, IllegalGenerationError

NOT_FOUND_VERSION = 9
"""From here on clients know GROUP_ID_NOT_FOUND."""
NO_RETENTION = -1


class NewOffset(NamedTuple):
    """What is to be committed for a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes = NO_TOPIC_ID


class Commit(NamedTuple):
    """A request's part that is judged by the group.

    Args:
        offsets: Those that can be committed; there may be none.
        retention_ms: How long they are kept, or `NO_RETENTION`: as the broker's settings say.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    retention_ms: int
    offsets: Sequence[NewOffset]
    api_version: int
    transactional: bool = False


def commit_offsets(commit: Commit, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Commit all offsets, or none; answered with None. A commit keeps its member's session alive.

    Raises:
        GroupIdNotFoundError: There is no such group, and a generation of it is named.
        IllegalGenerationError: The same, of older versions; or the member is in another generation.
        RebalanceInProgressError: The generation has no assignment yet.
        UnknownMemberIdError: The group has members, and this is none of them.
        FencedInstanceIdError: Another member id has the instance id.
        RecordListTooLargeError: They do not fit into one batch.
    """
    check_commit(commit, state)
    made = new_offsets(commit, turn.now_ms)
    turn.append([offset_record(commit.group_id, *one) for one in made])
    group = group_of(state, commit.group_id)
    for topic, partition, committed in made:
        state.offsets.put(group.group_id, topic, partition, committed)
    touch(state, group, commit.member_id, turn.now_ns)
    turn.answer(waiter, None)


def check_commit(commit: Commit, state: GroupState) -> None:
    """Whether its group takes a commit.

    Raises:
        KafkaError: As `commit_offsets`.
    """
    group = state.groups.get(commit.group_id)
    if group is not None:
        group.check_commit(
            commit.member_id,
            commit.group_instance_id,
            commit.generation_id,
            transactional=commit.transactional,
        )
    elif commit.generation_id >= 0:
        is_new = commit.api_version >= NOT_FOUND_VERSION and not commit.transactional
        raise GroupIdNotFoundError if is_new else IllegalGenerationError


def new_offsets(commit: Commit, now_ms: int) -> list[tuple[str, int, Committed]]:
    """Topic, partition and what is stored of each."""
    return [
        (new.topic, new.partition, _committed(new, commit.retention_ms, now_ms))
        for new in commit.offsets
    ]


def _committed(new: NewOffset, retention_ms: int, now_ms: int) -> Committed:
    """As it is stored: a record with an expiry time has neither leader epoch nor topic id."""
    if retention_ms == NO_RETENTION:
        return Committed(
            new.offset, new.leader_epoch, new.metadata, now_ms, NO_EXPIRY, new.topic_id
        )
    return Committed(new.offset, NO_EPOCH, new.metadata, now_ms, now_ms + retention_ms)
