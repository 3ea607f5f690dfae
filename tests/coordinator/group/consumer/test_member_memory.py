"""The memory of members of consumer groups counts together with that of classic groups' members."""

from sys import getsizeof

from hypothesis import settings
from hypothesis.stateful import invariant

from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.errors import CoordinatorNotAvailableError
from tests.coordinator.group.consumer.test_converges import Members
from tests.coordinator.group.consumer.world import World

NOT_AVAILABLE = CoordinatorNotAvailableError.code
MANY = tuple(f"topic-{number}" for number in range(500))


def said(shard: GroupShard) -> int:
    """Return the memory of the members, computed from all values that clients sent."""
    return sum(
        2048
        + sum(
            getsizeof(text)
            for text in (one.client_id, one.instance_id, one.rack_id, one.topic_regex)
        )
        + sum(64 + getsizeof(name) for name in one.topic_names)
        for group in shard.consumer_groups.values()
        for one in group.members.values()
    )


class CountedMembers(Members):
    @invariant()
    def the_count_is_the_sum_over_all_members(self) -> None:
        shard = self.world.shard
        assert shard.member_memory.held == said(shard)
        other = self.world.reloaded()
        assert other.member_memory.held == said(other)


TestCount = CountedMembers.TestCase
TestCount.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def full_world() -> World:
    """Return a group with one member, without memory for another one."""
    world = World()
    world.join("a", *MANY)
    world.shard.member_memory.bytes_max = world.shard.member_memory.held
    return world


def test_new_member_above_the_memory_limit_gets_coordinator_not_available() -> None:
    world = full_world()
    assert world.join("b") == NOT_AVAILABLE
    assert set(world.group.members) == {"a"}


def test_new_member_joins_after_others_have_left() -> None:
    world = full_world()
    world.leave("a")
    assert world.join("b").error_code == 0


def test_member_can_heartbeat_and_shrink_its_subscription_while_memory_is_full() -> None:
    world = full_world()
    epoch = world.group.members["a"].epoch
    assert world.beat("a", epoch).error_code == 0
    assert world.beat("a", epoch, topic_names=frozenset(MANY[:9])).error_code == 0


def test_member_that_would_exceed_the_memory_limit_is_unchanged() -> None:
    world = full_world()
    epoch = world.group.members["a"].epoch
    held = world.shard.member_memory.held
    assert world.beat("a", epoch, topic_names=frozenset((*MANY, "t"))) == NOT_AVAILABLE
    assert world.group.members["a"].topic_names == frozenset(MANY)
    assert world.shard.member_memory.held == held
