"""One classic group: its members and the state of its rebalance.

Each request is handled in its own file.
"""

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
    """Time for which the first rebalance of an empty group still waits for more members."""

    delay_ms: int
    remaining_ms: int


class ClassicGroup:
    """A group.

    A new group is empty and has no protocol; groups that only commit offsets stay so ("simple").

    Attributes:
        state: Changed only by `move_to`.
        state_timestamp_ms: Time of the last state change; None in records of old versions.
        generation_id: Incremented with each completed rebalance.
        protocol_type: Set by the first member; None before.
        protocol_name: The protocol selected for this generation.
        leader_id: A member id, if there are members.
        members: By member id, in the order in which they joined. Changed only by `add`, `remove`
            and `update`.
        static_members: Member ids by group instance id.
        pending_members: Member ids whose clients must join again with them, and their share of the
            memory.
        pending_sync: Ids of members that joined this generation and have not synced.
        awaiting_join: Number of members with a ``join_waiter``.
        initial_delay: Set while the first rebalance of an empty group waits for more members.
        new_member_added: A member was added since the initial delay last started.
        rebalance_reason: Reason of the last rebalance.
        history: Recent events, for people.
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
        """Number of members that support a protocol."""

    # Queries.

    @property
    def has_members(self) -> bool:
        """Return whether there are members; pending members do not count."""
        return bool(self.members)

    @property
    def empty_since_ms(self) -> int | None:
        """Time at which the group became empty; None if it is not empty or the time is unknown."""
        return self.state_timestamp_ms if self.state is ClassicGroupState.EMPTY else None

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members; clients may send negative values."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        """Return whether no JoinGroup is missing, from members or pending members."""
        return len(self.members) == self.awaiting_join and not self.pending_members

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Check that the client is a member, as ``ClassicGroup.validateMember``.

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
        """Check that the client is a member of this generation.

        Raises:
            UnknownMemberIdError: See `check_member`.
            FencedInstanceIdError: See `check_member`.
            IllegalGenerationError: The client is in another generation.
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
        """Check a commit of offsets, as ``ClassicGroup.validateOffsetCommit``.

        Within a transaction (``api_version`` is None) the request need not name a member, and the
        group need not have an assignment.

        Raises:
            UnknownMemberIdError: The group is in use, and the request names no member of it.
            FencedInstanceIdError: Another member id has the instance id.
            IllegalGenerationError: The member is in another generation.
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
        """Return those of ``topics`` that members may read, whose offsets are kept; all of them if
        unknown.

        The result is not cached: metadata may be large, and this is rarely called.
        """
        if not self.members or not topics:
            return frozenset()
        known = self.subscribed_topics()
        return frozenset(topics) if known is None else known.intersection(topics)

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that members may read; None if unknown, for example for another
        protocol type.
        """
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        name = self.protocol_name
        return topics_of(member.metadata(name) for member in self.members.values())

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member with these protocols is compatible with the current members."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == count for name in names
        )

    # Changes.

    def move_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Change the state."""
        if state not in FOLLOWING[self.state]:
            raise AssertionError(f"a group cannot become {state} that is {self.state}")
        self.state = state
        self.state_timestamp_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member; the first one becomes the leader."""
        assert member.member_id not in self.members, "a member is added once"
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending_members.pop(member.member_id, None)
        self._supporters.update(_names(member.protocols))

    def remove(self, member: Member) -> None:
        """Remove a member that has no pending request.

        If it was the leader, another member becomes leader.
        """
        assert member.join_waiter is None, "a waiting member gets its response first"
        assert member.sync_waiter is None, "a waiting member gets its response first"
        del self.members[member.member_id]
        self.pending_sync.discard(member.member_id)
        self._withdraw(member)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Replace a static member by a new member with the same instance id."""
        assert old.group_instance_id == new.group_instance_id, "it has the same instance id"
        led, must_sync = self.leader_id == old.member_id, old.member_id in self.pending_sync
        self.remove(old)
        self.add(new)
        if led:
            self.leader_id = new.member_id
        if must_sync:
            self.pending_sync.add(new.member_id)

    def update(self, member: Member, protocols: Protocols) -> None:
        """Replace the protocols of a member, or their metadata."""
        self._withdraw(member)
        member.protocols = protocols
        self._supporters.update(_names(protocols))

    def wait_for_join(self, member: Member, waiter: Waiter) -> None:
        """Keep the JoinGroup request until the rebalance completes."""
        assert member.join_waiter is None, "a waiter is answered before another one takes its place"
        member.join_waiter = waiter
        self.awaiting_join += 1

    def take_join_waiter(self, member: Member) -> Waiter | None:
        """Return and clear the pending JoinGroup of the member; the caller must respond to it."""
        waiter, member.join_waiter = member.join_waiter, None
        self.awaiting_join -= waiter is not None
        return waiter

    def begin_generation(self, now_ms: int) -> None:
        """Complete a rebalance with the current members, if any."""
        # The generation id wraps around after the int32 maximum, to 1.
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
    """Return the protocol that all members support and most prefer.

    Needs a member and a common protocol.
    """
    supporters = Counter(name for member in members for name in _names(member.protocols))
    candidates = {name for name, count in supporters.items() if count == len(members)}
    return _liked_best(members, candidates)


def _liked_best(members: Collection[Member], candidates: Set[str]) -> str:
    """Return the candidate with the most votes."""
    if len(candidates) == 1:
        return next(iter(candidates))
    votes = Counter([member.vote(candidates) for member in members])
    ((name, _),) = votes.most_common(1)
    return name


def _names(protocols: Protocols) -> Iterable[str]:
    """Return each protocol name once; a client may repeat one."""
    return dict(protocols).keys()
