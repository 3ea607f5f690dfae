"""One consumer group: its members, their target assignments, and the holder of each partition."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from pykafka_core.coordinator.group.consumer.member import (
    NOTHING,
    Assignment,
    ConsumerGroupState,
    ConsumerMember,
    MemberState,
    is_subset,
)
from pykafka_core.coordinator.group.consumer.topics import NO_METADATA_HASH
from pykafka_core.coordinator.group.history import History
from pykafka_core.coordinator.group.member_memory import MemberMemory, Share
from pykafka_core.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)

INITIAL_EPOCH = 1
"""Epoch of a group without assignments, as in Kafka since 4.3; in 4.2 it was 0."""
NO_TIME_MS = 0
"""Time of a target assignment that was not calculated: the next one may be calculated at once."""
REFRESH_INTERVAL_MS = 10_000
"""Minimum time before regular expressions are matched again, like Kafka's
``REGEX_BATCH_REFRESH_MIN_INTERVAL_MS``."""
NO_EPOCH = -1
"""Member epoch of a commit that does not come from a member."""
COMMIT_VERSION = 9
"""The first version of OffsetCommit with a member epoch."""


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched, and the version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class RegexesSeen(NamedTuple):
    """The time at which all regular expressions of a group were last matched, and the version of
    the topics; not stored.
    """

    version: object = None
    time_ms: int = -REFRESH_INTERVAL_MS

    def is_due(self, version: object, now_ms: int) -> bool:
        """Return whether they must be matched with this version of the topics."""
        return self.version is not version and now_ms >= self.time_ms + REFRESH_INTERVAL_MS


class ConsumerGroup:
    """The state of a group, which only its records change (`consumer.replay`).

    Attributes:
        epoch: Increases with each change that needs a new assignment.
        metadata_hash: Hash of the topics that the group is subscribed to (`consumer.topics`).
        assignment_epoch: The group's epoch for which ``targets`` were calculated.
        assignment_time_ms: The time of that calculation.
        members: Members by member id.
        static_members: Member ids by instance id.
        targets: Target assignments by member id.
        holders: The member id that holds a partition, by topic id and partition: the partition is
            assigned to the member, or the member has not revoked it yet.
        history: Recent events; not stored.
        regexes: The topics that the members' regular expressions matched.
        regexes_seen: The last time that all of them were matched; not stored.
        topics_version: The topics that ``metadata_hash`` was last compared with; not stored.
    """

    __slots__ = (
        "_assignors",
        "_classic_count",
        "_protocols",
        "_reconciled",
        "_regexes",
        "_share",
        "_subscribers",
        "assignment_epoch",
        "assignment_time_ms",
        "epoch",
        "group_id",
        "history",
        "holders",
        "members",
        "metadata_hash",
        "regexes",
        "regexes_seen",
        "static_members",
        "targets",
        "topics_version",
    )

    def __init__(self, group_id: str, memory: MemberMemory, history: History | None = None) -> None:
        self.group_id = group_id
        self.history = History() if history is None else history
        self._share = Share(memory)
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = NO_METADATA_HASH
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_time_ms = NO_TIME_MS
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self.holders: dict[bytes, dict[int, str]] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.regexes_seen = RegexesSeen()
        self.topics_version: object = None
        self._subscribers: Counter[str] = Counter()
        """Number of members that subscribe to a topic by name."""
        self._regexes: Counter[str] = Counter()
        """Number of members with a regular expression."""
        self._assignors: Counter[str] = Counter()
        """Number of members that prefer an assignor."""
        self._reconciled: Counter[int] = Counter()
        """Number of members in state STABLE by member epoch."""
        self._classic_count = 0
        """Number of members that use the classic protocol."""
        self._protocols: Counter[str] = Counter()
        """Number of classic members that support a protocol."""

    # Queries.

    @property
    def has_members(self) -> bool:
        """Whether the group has members, including static members that have left temporarily."""
        return bool(self.members)

    @property
    def is_classic_only(self) -> bool:
        """Whether no member uses the consumer protocol."""
        return self._classic_count == len(self.members)

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group's rebalance."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self._reconciled[self.assignment_epoch] == len(self.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member.

        Raises:
            UnknownMemberIdError: The group has no member with this id.
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """Return the member with an instance id, if any."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def member_of(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """Return the member with both ids.

        Raises:
            UnknownMemberIdError: No member has this member id, or this instance id.
            FencedInstanceIdError: The instance id belongs to another member id.
        """
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise UnknownMemberIdError
        if member.member_id != member_id:
            raise FencedInstanceIdError
        return member

    def check_size(self, member_id: str, instance_id: str | None, max_size: int) -> None:
        """Refuse a member that makes the group larger than ``max_size``.

        Raises:
            GroupMaxSizeReachedError: The group is full, and this is neither a member nor the
                successor of a static member.
        """
        if member_id in self.members or instance_id in self.static_members:
            return
        if len(self.members) >= max_size:
            raise GroupMaxSizeReachedError

    def target(self, member_id: str) -> Assignment:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, NOTHING)

    def holder(self, topic_id: bytes, partition: int) -> str | None:
        """Return the id of the member that holds a partition; None if it is free."""
        return self.holders.get(topic_id, {}).get(partition)

    def is_free(self, topic_id: bytes, partition: int) -> bool:
        """Return whether no member holds a partition."""
        return self.holder(topic_id, partition) is None

    def subscribed_names(self) -> Iterator[str]:
        """Yield the names of subscribed topics; a name may be repeated."""
        yield from self._subscribers
        for regex in self._regexes:
            if regex in self.regexes:
                yield from self.regexes[regex].topics

    def names_of(self, member: ConsumerMember) -> Collection[str]:
        """Return the names of the topics that a member is subscribed to."""
        resolved = self.regexes.get(member.topic_regex or "")
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member is subscribed to a topic, so that its offsets are kept."""
        return topic in self._subscribers or any(
            topic in self.regexes[regex].topics for regex in self._regexes if regex in self.regexes
        )

    def subscribed_among(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of the topics that a member is subscribed to."""
        return frozenset(filter(self.is_subscribed, topics))

    def own_regexes(self) -> Iterator[str]:
        """Return the members' regular expressions, each once."""
        return iter(self._regexes)

    def has_regex(self, regex: str) -> bool:
        """Return whether a member subscribes with this regular expression."""
        return regex in self._regexes

    def is_only_one_with(self, regex: str | None) -> bool:
        """Return whether exactly one member subscribes with this regular expression."""
        return self._regexes[regex or ""] == 1

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members prefer; None if no member has a preference."""
        return max(self._assignors, key=lambda name: (self._assignors[name], name), default=None)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Return whether other members hold partitions of a member's target."""
        return any(
            number not in member.assigned.get(topic_id, ()) and not self.is_free(topic_id, number)
            for topic_id, numbers in self.target(member.member_id).items()
            for number in numbers
        )

    def common_protocols(self) -> frozenset[str]:
        """Return the names of the protocols that all classic members support."""
        count = self._classic_count
        return frozenset(
            name for name, supporters in self._protocols.items() if supporters == count
        )

    def supports_classic(self, names: Collection[str]) -> bool:
        """Return whether a classic member with these protocols may join: one of them must be common
        to all classic members.
        """
        count = self._classic_count
        return any(self._protocols[name] == count for name in names) if count else bool(names)

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        member_epoch: int,
        api_version: int | None,
        partitions: Iterable[tuple[bytes, int]],
    ) -> None:
        """Refuse an invalid commit of offsets, like ``ConsumerGroup.validateOffsetCommit``.

        An epoch before the member's current one is accepted if the member held all partitions of
        the commit in that epoch (KIP-1251).

        Args:
            member_id: The member that commits.
            group_instance_id: Only shows whether the commit comes from a member; it is not
                compared, because the epoch suffices.
            member_epoch: The member's epoch; negative if the commit does not come from a member.
            api_version: The version of OffsetCommit; None within a transaction, where the member is
                optional.
            partitions: Topic ids and partitions of the commit.

        Raises:
            UnknownMemberIdError: The group has members, but not this one.
            UnsupportedVersionError: This version has no member epoch.
            StaleMemberEpochError: The epoch is not the member's, or the member did not hold all
                partitions in it.
            IllegalGenerationError: The same for a classic member, whose client only has this error.
        """
        transactional = api_version is None
        is_named = member_epoch != NO_EPOCH or member_id or group_instance_id is not None
        if (member_epoch < 0 and not self.members) or (transactional and not is_named):
            return
        member = self.member(member_id)
        is_classic = member.classic is not None
        if api_version is not None and api_version < COMMIT_VERSION and not is_classic:
            raise UnsupportedVersionError
        if not _may_commit(member, member_epoch, partitions):
            raise IllegalGenerationError if is_classic else StaleMemberEpochError

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse an invalid fetch of offsets, like ``ConsumerGroup.validateOffsetFetch``.

        Raises:
            UnknownMemberIdError: The group has no such member.
            StaleMemberEpochError: The member is in another epoch.
            IllegalGenerationError: The same for a classic member.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise StaleMemberEpochError if member.classic is None else IllegalGenerationError

    def copy(self) -> "ConsumerGroup":
        """Return an independent copy; both share only the history."""
        other = ConsumerGroup(self.group_id, self._share.memory, self.history)
        other._share.grow(self._share.size)
        for name in (
            "epoch",
            "metadata_hash",
            "assignment_epoch",
            "assignment_time_ms",
            "topics_version",
            "regexes_seen",
            "_classic_count",
        ):
            setattr(other, name, getattr(self, name))
        for name in ("members", "static_members", "targets", "regexes"):
            setattr(other, name, dict(getattr(self, name)))
        for name in ("_subscribers", "_regexes", "_assignors", "_reconciled", "_protocols"):
            setattr(other, name, Counter(getattr(self, name)))
        other.holders = {topic_id: dict(held) for topic_id, held in self.holders.items()}
        return other

    # Changes, made only by records.

    def put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        self._withdraw(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self._share.grow(member.size)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for counter, keys in self._counted(member):
            counter.update(keys)
        self._classic_count += member.classic is not None
        for topic_id, partition in member.held():
            self.holders.setdefault(topic_id, {})[partition] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove the member with this id, if any."""
        self._withdraw(self.members.pop(member_id, None))

    def _withdraw(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        self._share.grow(-member.size)
        if self.static_members.get(member.instance_id or "") == member.member_id:
            del self.static_members[member.instance_id or ""]
        for counter, keys in self._counted(member):
            for key in keys:
                _decrement(counter, key)
        self._classic_count -= member.classic is not None
        for topic_id, partition in member.held():
            self._release(topic_id, partition, member.member_id)

    def _counted(self, member: ConsumerMember) -> Iterator[tuple[Counter[Any], Iterable[object]]]:
        """Yield each counter that includes the member, with the member's keys."""
        yield self._subscribers, member.topic_names
        if member.topic_regex:
            yield self._regexes, (member.topic_regex,)
        if member.server_assignor is not None:
            yield self._assignors, (member.server_assignor,)
        if member.state is MemberState.STABLE:
            yield self._reconciled, (member.epoch,)
        if member.classic is not None:
            yield self._protocols, member.classic.protocol_names

    def _release(self, topic_id: bytes, partition: int, member_id: str) -> None:
        # A partially compacted log may contain a partition's next holder before the record with
        # which the previous one releases it.
        holders = self.holders.get(topic_id, {})
        if holders.get(partition) == member_id:
            del holders[partition]
            if not holders:
                del self.holders[topic_id]


def check_epoch(member: ConsumerMember, received: int, owned: Assignment | None) -> None:
    """Refuse a heartbeat with another epoch, like ``throwIfConsumerGroupMemberEpochIsInvalid``.

    Raises:
        FencedMemberEpochError: The epoch is not the member's. The previous epoch is accepted if the
            member owns only partitions that are assigned to it: it has missed a response.
    """
    if received == member.epoch:
        return
    is_late = received < member.epoch and received == member.previous_epoch
    if not is_late or not is_subset(owned, member.assigned):
        raise FencedMemberEpochError


def _may_commit(
    member: ConsumerMember, epoch: int, partitions: Iterable[tuple[bytes, int]]
) -> bool:
    if epoch >= member.epoch:
        return epoch == member.epoch
    return all(
        (got_in := member.got_in(topic_id, number)) is not None and got_in <= epoch
        for topic_id, number in partitions
    )


def _decrement(counter: Counter[Any], key: object) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
