"""One classic group: its members and where they are in a rebalance. What requests do to it is in files of their own."""

from collections import Counter
from collections.abc import Collection, Iterable, Set
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.classic.member import Member, Protocols
from pykafka_core.coordinator.group.classic.states import FOLLOWING, ClassicGroupState
from pykafka_core.coordinator.group.classic.subscription import topics_of
from pykafka_core.coordinator.group.history import History
from pykafka_core.coordinator.group.member_memory import Share
from pykafka_core.coordinator.shard import Waiter
from pykafka_core.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

GENERATION_MAX = 2**31 - 1
CONSUMER_PROTOCOL = "consumer"
"""The protocol type whose metadata names topics (``ConsumerProtocol.PROTOCOL_TYPE``)."""


class InitialDelay(NamedTuple):
    """How long the first rebalance of an empty group still waits for more members."""

    delay_ms: int
    remaining_ms: int


class ClassicGroup:
    """A group. New ones are empty and without a protocol: groups that only commit offsets stay so ("simple").

    Attributes:
        state: Changed by `move_to` alone.
        state_timestamp_ms: When it came to this state; None in records of old versions.
        generation_id: Grows by one with each rebalance that is completed.
        protocol_type: What kind of group its first member made it; None without one so far.
        protocol_name: Selected for this generation.
        leader_id: A member while there are any.
        members: By member id, in the order in which they came. Changed by `add`, `remove` and `update` alone.
        static_members: Member ids by group instance id.
        pending_members: Member ids given to those who are to join again with them, with what they are counted with.
        pending_sync: Member ids of those who joined this generation and have not synced.
        awaiting_join: How many members have a ``join_waiter``.
        initial_delay: While the first rebalance of an empty group waits for more members.
        new_member_added: Since the initial delay last began.
        rebalance_reason: Why there was a rebalance last.
        history: What happened lately, for people.
    """

    __slots__ = (
        "_supporters",
        "awaiting_join",
        "generation_id",
        "group_id",
        "history",
        "initial_delay",
        "join_key",
        "leader_id",
        "members",
        "new_member_added",
        "pending_members",
        "pending_sync",
        "protocol_name",
        "protocol_type",
        "rebalance_reason",
        "state",
        "state_timestamp_ms",
        "static_members",
        "sync_key",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp_ms: int | None = None
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: dict[str, Share] = {}
        self.pending_sync: set[str] = set()
        self.awaiting_join = 0
        self.initial_delay: InitialDelay | None = None
        self.new_member_added = False
        self.rebalance_reason = ""
        self.history = History()
        self.join_key = DueInGroup(Due.JOIN, group_id)
        self.sync_key = DueInGroup(Due.SYNC, group_id)
        self._supporters: Counter[str] = Counter()
        """How many members support a protocol."""

    # Questions.

    @property
    def has_members(self) -> bool:
        """Whether anybody is a member; those who are to join again with a member id are not yet."""
        return bool(self.members)

    @property
    def is_simple(self) -> bool:
        """Whether it has only ever committed offsets."""
        return self.protocol_type is None and not self.members and not self.pending_members

    @property
    def empty_since_ms(self) -> int | None:
        """When it became empty; None if it is not, or if that is not known."""
        return self.state_timestamp_ms if self.state is ClassicGroupState.EMPTY else None

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all members'; clients may send negative ones."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        """Whether nobody is waited for: neither members nor those who were given a member id."""
        return len(self.members) == self.awaiting_join and not self.pending_members

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Refuse who is not a member, as ``ClassicGroup.validateMember``.

        Raises:
            UnknownMemberIdError: No member has that id, or that instance id.
            FencedInstanceIdError: Another member id has the instance id.
        """
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is not None and existing != member_id:
                raise FencedInstanceIdError
            if existing is None:
                raise UnknownMemberIdError
        if member_id not in self.members:
            raise UnknownMemberIdError

    def check_generation(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Refuse who is not a member of this generation.

        Raises:
            UnknownMemberIdError: As `check_member`.
            FencedInstanceIdError: As `check_member`.
            IllegalGenerationError: It is in another generation.
        """
        self.check_member(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGenerationError

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        api_version: int | None,
    ) -> None:
        """Refuse a commit of offsets, as ``ClassicGroup.validateOffsetCommit``.

        Within a transaction (``api_version`` is None) nobody has to be named, and no assignment is waited for.

        Raises:
            UnknownMemberIdError: The group has members, and this is none of them.
            FencedInstanceIdError: Another member id has the instance id.
            IllegalGenerationError: It is in another generation.
            RebalanceInProgressError: The generation has no assignment yet.
        """
        if self.state is ClassicGroupState.EMPTY and generation_id < 0:
            return
        transactional = api_version is None
        is_named = generation_id >= 0 or member_id or group_instance_id is not None
        if not is_named and not transactional:
            raise UnknownMemberIdError
        if is_named:
            self.check_generation(member_id, group_instance_id, generation_id)
        if self.state is ClassicGroupState.COMPLETING_REBALANCE and not transactional:
            raise RebalanceInProgressError

    def subscribed_among(self, topics: Collection[str]) -> frozenset[str]:
        """Those topics that members may read, so that their offsets are kept: all of them if that is unknown.

        Nothing of it is remembered: members may say much, and few ask.
        """
        if not self.members or not topics:
            return frozenset()
        known = self.subscribed_topics()
        return frozenset(topics) if known is None else known.intersection(topics)

    def subscribed_topics(self) -> frozenset[str] | None:
        """Topics that members may read; None if unknown, as for other protocols' groups."""
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        name = self.protocol_name
        return topics_of(member.metadata(name) for member in self.members.values())

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether who supports those protocols can be a member besides those there are."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == count for name in names
        )

    # Changes.

    def move_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Come to another state."""
        if state not in FOLLOWING[self.state]:
            raise AssertionError(f"a group cannot become {state} that is {self.state}")
        self.state = state
        self.state_timestamp_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        assert member.member_id not in self.members, "a member is added once"
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending_members.pop(member.member_id, None)
        self._supporters.update(_names(member.protocols))

    def remove(self, member: Member) -> None:
        """Remove a member; nobody waits for its answers any more. If it led, another one does."""
        assert member.join_waiter is None, "who waits is answered first"
        assert member.sync_waiter is None, "who waits is answered first"
        del self.members[member.member_id]
        self.pending_sync.discard(member.member_id)
        self._withdraw(member)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Give a static member's place to who came back with its instance id."""
        assert old.group_instance_id == new.group_instance_id, "it has the same instance id"
        led, must_sync = self.leader_id == old.member_id, old.member_id in self.pending_sync
        self.remove(old)
        self.add(new)
        if led:
            self.leader_id = new.member_id
        if must_sync:
            self.pending_sync.add(new.member_id)

    def update(self, member: Member, protocols: Protocols) -> None:
        """A member supports other protocols, or says something else for them."""
        self._withdraw(member)
        member.protocols = protocols
        self._supporters.update(_names(protocols))

    def wait_for_join(self, member: Member, waiter: Waiter) -> None:
        """Its JoinGroup is answered when the rebalance completes."""
        assert member.join_waiter is None, "a waiter is answered before another one takes its place"
        member.join_waiter = waiter
        self.awaiting_join += 1

    def take_join_waiter(self, member: Member) -> Waiter | None:
        """Who waits for the answer to its JoinGroup; to be answered by the caller."""
        waiter, member.join_waiter = member.join_waiter, None
        self.awaiting_join -= waiter is not None
        return waiter

    def begin_generation(self, now_ms: int) -> None:
        """A rebalance completes: with these members, or without any."""
        # A record may hold the last one there is. No member that lives knows the first ones any more.
        self.generation_id = self.generation_id % GENERATION_MAX + 1
        self.pending_sync.clear()
        members = self.members.values()
        common = {name for name, count in self._supporters.items() if count == len(members)}
        self.protocol_name = _liked_best(members, common) if members else None
        states = ClassicGroupState
        self.move_to(states.COMPLETING_REBALANCE if members else states.EMPTY, now_ms)

    def _withdraw(self, member: Member) -> None:
        for name in _names(member.protocols):
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]


def selected_protocol(members: Collection[Member]) -> str:
    """The protocol that all support and most like best. There is at least one that all support, and one member."""
    supporters = Counter(name for member in members for name in _names(member.protocols))
    candidates = {name for name, count in supporters.items() if count == len(members)}
    return _liked_best(members, candidates)


def _liked_best(members: Collection[Member], candidates: Set[str]) -> str:
    """The candidate with most votes."""
    if len(candidates) == 1:
        return next(iter(candidates))
    votes = Counter([member.vote(candidates) for member in members])
    ((name, _),) = votes.most_common(1)
    return name


def _names(protocols: Protocols) -> Iterable[str]:
    """Names, each once: a client may repeat one."""
    return dict(protocols).keys()
