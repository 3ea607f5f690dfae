"""OffsetCommit for classic and consumer groups."""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.session import touch
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.offsets.records import OffsetRecords, ensure_group
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, NO_EXPIRY, NO_TOPIC_ID, Committed
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, KeyValue, Waiter
from pykafka_core.errors import GroupIdNotFoundError, IllegalGenerationError

NOT_FOUND_VERSION = 9
"""The first version with GROUP_ID_NOT_FOUND."""
NO_RETENTION = -1
_TIMESTAMP_MAX = 2**63 - 1


class NewOffset(NamedTuple):
    """An offset to commit for a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes = NO_TOPIC_ID


class StoredOffset(NamedTuple):
    """An offset with its record."""

    topic: str
    topic_id: bytes
    partition: int
    committed: Committed
    record: KeyValue


def stored_offset(
    records: OffsetRecords, new: NewOffset, retention_ms: int, now_ms: int
) -> StoredOffset:
    """Return an offset with its record.

    This takes some microseconds, so large commits are prepared in slices before the turn of the
    shard.

    Args:
        records: Records of the group and the topic.
        new: The offset to commit.
        retention_ms: Retention from the request, or `NO_RETENTION` for the broker's settings.
        now_ms: Wall-clock time.
    """
    committed = _committed(new, retention_ms, now_ms)
    record = records.of(new.partition, committed)
    return StoredOffset(new.topic, new.topic_id, new.partition, committed, record)


class Commit(NamedTuple):
    """The part of a request that the group checks.

    Args:
        offsets: The valid offsets; may be empty.
        api_version: Version of OffsetCommit; None within a transaction.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Sequence[StoredOffset]
    api_version: int | None


def commit_offsets(
    commit: Commit, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Commit all offsets, or none.

    The response is None, or the ids of the topics whose offsets were not committed, because they
    were deleted after the request was judged.

    A commit extends the session of a classic member.

    Raises:
        GroupIdNotFoundError: There is no such group, and the request names a generation.
        IllegalGenerationError: The same in versions below 9; or the member is in another
            generation.
        RebalanceInProgressError: The generation has no assignment yet.
        UnknownMemberIdError: The group is in use, and the request names no member of it.
        FencedInstanceIdError: Another member id has the instance id.
        StaleMemberEpochError: The member of a consumer group did not own all partitions in that
            epoch.
        UnsupportedVersionError: This version has no member epoch, and names a member of a consumer
            group.
        BatchFullError: The records do not fit into one batch.
    """
    commit, deleted = without_deleted(commit, state)
    check_commit(commit, state)
    result.append([one.record for one in commit.offsets])
    ensure_group(state, commit.group_id)
    for one in commit.offsets:
        state.offsets.put(commit.group_id, one.topic, one.partition, one.committed)
    group = state.any_group(commit.group_id)
    if isinstance(group, ClassicGroup):
        touch(state, group, commit.member_id, result.now_ns)
    result.respond(waiter, deleted or None)


def without_deleted(commit: Commit, state: GroupState) -> tuple[Commit, frozenset[bytes]]:
    """Return the commit without offsets of topics that do not exist any more, and their ids.

    The removal of a deleted topic's offsets does not find offsets that are committed after it.
    """
    names = {one.topic_id: one.topic for one in commit.offsets}
    deleted = frozenset(one for one, name in names.items() if state.topic_id(name) != one)
    if deleted:
        kept = [one for one in commit.offsets if one.topic_id not in deleted]
        commit = commit._replace(offsets=kept)
    return commit, deleted


def check_commit(commit: Commit, state: GroupState) -> None:
    """Check the member that commits, as ``OffsetMetadataManager.validateOffsetCommit``.

    Raises:
        KafkaError: See `commit_offsets`.
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
    """Return the stored values.

    A record with an expiry time has neither a leader epoch nor a topic id. The id is kept in
    memory: without it, the removal of a deleted topic's offsets would include an offset of a new
    topic.
    """
    if retention_ms == NO_RETENTION:
        return Committed(
            new.offset, new.leader_epoch, new.metadata, now_ms, NO_EXPIRY, new.topic_id
        )
    expire_ms = min(now_ms + retention_ms, _TIMESTAMP_MAX)
    return Committed(new.offset, NO_EPOCH, new.metadata, now_ms, expire_ms, new.topic_id)
