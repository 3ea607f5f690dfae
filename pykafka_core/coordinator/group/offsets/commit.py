"""OffsetCommit in a group of either kind."""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.session import touch
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.offsets.records import OffsetRecords, ensure_group
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, NO_EXPIRY, NO_TOPIC_ID, Committed
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import KeyValue, Turn, Waiter
from pykafka_core.errors import GroupIdNotFoundError, IllegalGenerationError

NOT_FOUND_VERSION = 9
"""From here on clients know GROUP_ID_NOT_FOUND."""
NO_RETENTION = -1
_TIMESTAMP_MAX = 2**63 - 1


class NewOffset(NamedTuple):
    """What is to be committed for a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes = NO_TOPIC_ID


class StoredOffset(NamedTuple):
    """As it will be stored, with its record."""

    topic: str
    topic_id: bytes
    partition: int
    committed: Committed
    record: KeyValue


def stored_offset(
    records: OffsetRecords, new: NewOffset, retention_ms: int, now_ms: int
) -> StoredOffset:
    """How an offset is stored. Takes some microseconds: many are made in slices, before their shard's turn.

    Args:
        records: Of the group that commits it, and its topic.
        new: What is committed.
        retention_ms: How long it is kept, or `NO_RETENTION`: as the broker's settings say.
        now_ms: The wall clock.
    """
    committed = _committed(new, retention_ms, now_ms)
    record = records.of(new.partition, committed)
    return StoredOffset(new.topic, new.topic_id, new.partition, committed, record)


class Commit(NamedTuple):
    """A request's part that is judged by the group.

    Args:
        offsets: Those that can be committed; there may be none.
        api_version: Of OffsetCommit; None within a transaction.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Sequence[StoredOffset]
    api_version: int | None


def commit_offsets(commit: Commit, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Commit all offsets, or none; answered with None. A commit keeps its member's session alive.

    Raises:
        GroupIdNotFoundError: There is no such group, and a generation of it is named.
        IllegalGenerationError: The same, of older versions; or the member is in another generation.
        RebalanceInProgressError: The generation has no assignment yet.
        UnknownMemberIdError: The group has members, and this is none of them.
        FencedInstanceIdError: Another member id has the instance id.
        StaleMemberEpochError: A consumer group's member did not have all this in that epoch.
        UnsupportedVersionError: The request cannot have a member epoch, and names a member of a consumer group.
        TurnFullError: They do not fit into one batch.
    """
    check_commit(commit, state)
    turn.append([one.record for one in commit.offsets])
    ensure_group(state, commit.group_id)
    for one in commit.offsets:
        state.offsets.put(commit.group_id, one.topic, one.partition, one.committed)
    group = state.any_group(commit.group_id)
    if isinstance(group, ClassicGroup):
        touch(state, group, commit.member_id, turn.now_ns)
    turn.answer(waiter, None)


def check_commit(commit: Commit, state: GroupState) -> None:
    """Have the group judge who commits, as ``OffsetMetadataManager.validateOffsetCommit``.

    Raises:
        KafkaError: As `commit_offsets`.
    """
    group, version = state.any_group(commit.group_id), commit.api_version
    who = commit.member_id, commit.group_instance_id, commit.generation_id
    if isinstance(group, ConsumerGroup):
        places = ((one.topic_id, one.partition) for one in commit.offsets)
        group.check_commit(*who, version, places)
    elif group is not None:
        group.check_commit(*who, version)
    elif commit.generation_id >= 0:
        is_new = version is not None and version >= NOT_FOUND_VERSION
        raise GroupIdNotFoundError if is_new else IllegalGenerationError


def _committed(new: NewOffset, retention_ms: int, now_ms: int) -> Committed:
    """As it is stored: a record with an expiry time has neither leader epoch nor topic id."""
    if retention_ms == NO_RETENTION:
        return Committed(
            new.offset, new.leader_epoch, new.metadata, now_ms, NO_EXPIRY, new.topic_id
        )
    expire_ms = min(now_ms + retention_ms, _TIMESTAMP_MAX)
    return Committed(new.offset, NO_EPOCH, new.metadata, now_ms, expire_ms)
