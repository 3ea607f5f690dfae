"""The group coordinator's shard: implements `pykafka_core.coordinator.shard.Shard`."""

from collections.abc import Mapping
from itertools import islice

from pykafka_core.coordinator.group.classic.due import arm_loaded, run_due
from pykafka_core.coordinator.group.classic.keys import DueInGroup
from pykafka_core.coordinator.group.classic.records import replay_group
from pykafka_core.coordinator.group.consumer.replay import KINDS as CONSUMER_KINDS
from pykafka_core.coordinator.group.consumer.replay import replay_consumer_group
from pykafka_core.coordinator.group.consumer.timers.due import (
    DueInConsumerGroup,
    arm_loaded_consumers,
    run_consumer_due,
)
from pykafka_core.coordinator.group.offsets.deleted_topics import (
    REMOVAL,
    remove_gone,
    remove_of_absent_topics,
    topics_deleted,
)
from pykafka_core.coordinator.group.offsets.deletion import DELETION, remove_detached
from pykafka_core.coordinator.group.offsets.expiry import EXPIRY, arm_expiry, expire
from pykafka_core.coordinator.group.offsets.records import (
    ensure_group,
    replay_marker,
    replay_offset,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.protocol.coordinator_records import GROUP_KEYS

OFFSET_COMMIT_KINDS = tuple(
    kind
    for kind, name in enumerate(GROUP_KEYS)
    if name in ("LegacyOffsetCommitKey", "OffsetCommitKey")
)
GROUP_METADATA_KIND = GROUP_KEYS.index("GroupMetadataKey")


class GroupShard(GroupState):
    """The groups of one partition."""

    __slots__ = ()

    def replay(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Apply a stored record; records of unknown kinds are skipped.

        Raises:
            ProtocolError: The bytes cannot be decoded as a record of their kind.
        """
        kind = int.from_bytes(key[:2], "big", signed=True)
        if kind in OFFSET_COMMIT_KINDS:
            replay_offset(self, producer_id, key, value)
        elif kind == GROUP_METADATA_KIND:
            replay_group(self, key, value)
        elif kind in CONSUMER_KINDS:
            replay_consumer_group(self, key, value)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Apply the end of a transaction that committed offsets."""
        replay_marker(self, producer_id, committed=committed)

    def loaded(self, result: CoordinatorResult) -> None:
        """Set the deadlines of loaded members and of offset expiry.

        A crash may leave offsets of a deleted group: a simple group is created for them.
        """
        for group_id in self.offsets.group_ids():
            ensure_group(self, group_id)
        arm_loaded(self, result)
        arm_loaded_consumers(self, result)
        arm_expiry(self, result)
        remove_of_absent_topics(self, result)

    def run_due(self, result: CoordinatorResult) -> None:
        """Run the first deadline that has passed, if any."""
        for key in islice(self.deadlines.take_due(result.due_ns), 1):
            if key == EXPIRY:
                expire(self, result)
            elif key == REMOVAL:
                remove_gone(self, result)
            elif key == DELETION:
                remove_detached(self, result)
            elif isinstance(key, DueInConsumerGroup):
                run_consumer_due(self, key, result)
            else:
                assert isinstance(key, DueInGroup), "expiry or something in a group"
                run_due(self, key, result)

    def topics_deleted(self, topics: Mapping[str, bytes], result: CoordinatorResult) -> None:
        """Remove the offsets of deleted topics."""
        topics_deleted(self, topics, result)
