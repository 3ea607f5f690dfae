"""One consumer group: its members, their target assignment, and who holds which partition."""

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
"""Of a group in which nothing is assigned yet, as in Kafka since 4.3; in 4.2 it was 0."""
NO_TIME_MS = 0
"""Time of a target assignment that was not calculated: the next one need not wait."""
REFRESH_INTERVAL_MS = 10_000
"""Until regular expressions are matched again, as ``REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`` of Kafka."""
NO_EPOCH = -1
"""Of a commit that names no member."""
COMMIT_VERSION = 9
"""From here on OffsetCommit has a member epoch."""


class ResolvedRegex(NamedTuple):
    """What a regular expression matched, in which version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class RegexesSeen(NamedTuple):
    """When all regular expressions of a group were matched last, and with which topics; not stored."""

    version: object = None
    time_ms: int = -REFRESH_INTERVAL_MS

    def is_due(self, version: object, now_ms: int) -> bool:
        """Whether they are to be matched with the topics of a version."""
        return self.version is not version and now_ms >= self.time_ms + REFRESH_INTERVAL_MS


class ConsumerGroup:
    """A group as its records say; only those change it (`consumer.replay`).

    Attributes:
        epoch: Grows with each change that needs a new assignment.
        metadata_hash: Of the topics that it is subscribed to (`consumer.topics`).
        assignment_epoch: The group's epoch for which ``targets`` were calculated.
        assignment_time_ms: When that was.
        members: By member id.
        static_members: Member ids by instance id.
        targets: What members are to have in the end, by member id.
        holders: Member ids by topic id and partition: who may read it, or has not given it up.
        history: What happened lately; not stored.
        regexes: What the members' regular expressions matched.
        regexes_seen: Since when that is so.
        topics_version: The topics for which ``metadata_hash`` was judged last; not stored.
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
        """How many members name a topic."""
        self._regexes: Counter[str] = Counter()
        """How many members have a regular expression."""
        self._assignors: Counter[str] = Counter()
        """How many members would like an assignor."""
        self._reconciled: Counter[int] = Counter()
        """How many members have all that the target of an epoch gives them."""
        self._classic_count = 0
        """How many members use the classic protocol."""
        self._protocols: Counter[str] = Counter()
        """How many of those support a protocol."""

    # Questions.

    @property
    def has_members(self) -> bool:
        """Whether anybody is a member, or comes back soon."""
        return bool(self.members)

    @property
    def is_classic_only(self) -> bool:
        """Whether no member uses the consumer protocol."""
        return self._classic_count == len(self.members)

    @property
    def state(self) -> ConsumerGroupState:
        """Where it is in a rebalance."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self._reconciled[self.assignment_epoch] == len(self.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        """The member.

        Raises:
            UnknownMemberIdError: There is none of that id.
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member with that instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def member_of(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member with both ids.

        Raises:
            UnknownMemberIdError: None has that id, or that instance id.
            FencedInstanceIdError: Another member id has the instance id.
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
            GroupMaxSizeReachedError: It is not a member, nor the successor of a static one.
        """
        if member_id in self.members or instance_id in self.static_members:
            return
        if len(self.members) >= max_size:
            raise GroupMaxSizeReachedError

    def target(self, member_id: str) -> Assignment:
        """What a member is to have."""
        return self.targets.get(member_id, NOTHING)

    def holder(self, topic_id: bytes, partition: int) -> str | None:
        """Who holds a partition."""
        return self.holders.get(topic_id, {}).get(partition)

    def is_free(self, topic_id: bytes, partition: int) -> bool:
        """Whether nobody holds a partition."""
        return self.holder(topic_id, partition) is None

    def subscribed_names(self) -> Iterator[str]:
        """Names of topics that members are subscribed to; one may come more than once."""
        yield from self._subscribers
        for regex in self._regexes:
            if regex in self.regexes:
                yield from self.regexes[regex].topics

    def names_of(self, member: ConsumerMember) -> Collection[str]:
        """Names of the topics that a member is subscribed to."""
        resolved = self.regexes.get(member.topic_regex or "")
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def is_subscribed(self, topic: str) -> bool:
        """Whether members may read a topic, so that its offsets are kept."""
        return topic in self._subscribers or any(
            topic in self.regexes[regex].topics for regex in self._regexes if regex in self.regexes
        )

    def subscribed_among(self, topics: Collection[str]) -> frozenset[str]:
        """Those topics that members may read."""
        return frozenset(filter(self.is_subscribed, topics))

    def own_regexes(self) -> Iterator[str]:
        """The members' regular expressions, each once."""
        return iter(self._regexes)

    def has_regex(self, regex: str) -> bool:
        """Whether a member subscribes by this regular expression."""
        return regex in self._regexes

    def is_only_one_with(self, regex: str | None) -> bool:
        """Whether one member alone subscribes by this regular expression."""
        return self._regexes[regex or ""] == 1

    def preferred_assignor(self) -> str | None:
        """What most of those members like who say so; None if none does."""
        return max(self._assignors, key=lambda name: (self._assignors[name], name), default=None)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether others hold partitions that a member is to have."""
        return any(
            number not in member.assigned.get(topic_id, ()) and not self.is_free(topic_id, number)
            for topic_id, numbers in self.target(member.member_id).items()
            for number in numbers
        )

    def common_protocols(self) -> frozenset[str]:
        """Names of protocols that all members of the classic protocol support."""
        count = self._classic_count
        return frozenset(
            name for name, supporters in self._protocols.items() if supporters == count
        )

    def supports_classic(self, names: Collection[str]) -> bool:
        """Whether who supports those protocols can be a classic member besides those there are."""
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
        """Refuse a commit of offsets, as ``ConsumerGroup.validateOffsetCommit``.

        An epoch before the member's will do for partitions that it had by then (KIP-1251).

        Args:
            member_id: Who commits.
            group_instance_id: Not looked at of members; the epoch says enough.
            member_epoch: Its epoch; negative if it is no member.
            api_version: Of OffsetCommit; None within a transaction, where nobody has to be named.
            partitions: Those of the commit, by topic id.

        Raises:
            UnknownMemberIdError: The group has members, and this is none of them.
            UnsupportedVersionError: That version has no member epoch.
            StaleMemberEpochError: It was not in that epoch with all these partitions.
            IllegalGenerationError: The same of a classic member, whose client has only this error.
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
        """Refuse to tell offsets, as ``ConsumerGroup.validateOffsetFetch``.

        Raises:
            UnknownMemberIdError: This is no member.
            StaleMemberEpochError: It is in another epoch.
            IllegalGenerationError: The same of a classic member.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise StaleMemberEpochError if member.classic is None else IllegalGenerationError

    def copy(self) -> "ConsumerGroup":
        """Another group that is the same so far, with the same history; else neither changes the other."""
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

    # Changes, by records alone.

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace what is known of it."""
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
        """Remove a member, if there is one of that id."""
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
        """Each counter that a member is a part of, with its keys there."""
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
        # A log that was compacted in part may show a partition with its next holder before the last one gives it up.
        holders = self.holders.get(topic_id, {})
        if holders.get(partition) == member_id:
            del holders[partition]
            if not holders:
                del self.holders[topic_id]


def check_epoch(member: ConsumerMember, received: int, owned: Assignment | None) -> None:
    """Refuse a heartbeat of another epoch, as ``throwIfConsumerGroupMemberEpochIsInvalid``.

    Raises:
        FencedMemberEpochError: It is not the member's epoch; nor the one before, of a member that lost an answer and
            owns nothing but what is assigned to it.
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
