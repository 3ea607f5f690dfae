"""Random histories of a group: no partition has two holders, epochs increase, the records contain
the whole state, and the group becomes stable.

The world checks the first three after each step (`world.World`, `world.Client`).
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.coordinator.group.consumer.world import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Client,
    World,
    settle,
    topic_id,
)

NAMES = ("t", "u")
SUBSCRIPTIONS = st.sampled_from([("t",), ("u",), NAMES])


class Members(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World({"t": 4, "u": 3})
        self.clients: dict[str, Client] = {}
        self.away: set[str] = set()
        self.epoch = 0
        self.numbers = iter(range(1000))

    @rule(topics=SUBSCRIPTIONS, static=st.booleans())
    @precondition(lambda self: len(self.clients) < 5)
    def join(self, topics: tuple[str, ...], static: bool) -> None:
        member_id = f"m{next(self.numbers)}"
        said = {"instance_id": f"i-{member_id}"} if static else {}
        self.clients[member_id] = Client(self.world, member_id, *topics, **said)

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def beat(self, data: st.DataObject) -> None:
        self.clients[data.draw(st.sampled_from(sorted(self.clients)))].beat()

    @rule(data=st.data(), topics=SUBSCRIPTIONS)
    @precondition(lambda self: self.clients)
    def subscribe(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        client.topics = topics
        client.beat(topic_names=frozenset(topics))

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def leave(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        del self.clients[member_id]
        self.world.leave(member_id)

    @rule(data=st.data())
    @precondition(lambda self: any(client.said for client in self.clients.values()))
    def restart(self, data: st.DataObject) -> None:
        """A static member leaves temporarily and rejoins with another member id."""
        static = sorted(name for name, client in self.clients.items() if client.said)
        old = self.clients.pop(data.draw(st.sampled_from(static)))
        self.world.leave(old.member_id, -2, old.said["instance_id"])
        member_id = f"m{next(self.numbers)}"
        self.clients[member_id] = Client(self.world, member_id, *old.topics, **old.said)

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def forget(self, data: st.DataObject) -> None:
        """A member's process dies: it sends no more requests."""
        del self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    def partitions_count(self, name: str) -> int:
        found = self.world.topics.topic(name)
        return found.partitions_count if found else 0

    @rule(name=st.sampled_from(NAMES), more=st.integers(1, 3))
    def grow(self, name: str, more: int) -> None:
        self.world.topics.set(name, self.partitions_count(name) + more)

    @rule(duration_ms=st.sampled_from([1_000, SESSION_MS // 2, REBALANCE_MS]))
    def wait(self, duration_ms: int) -> None:
        self.world.pass_ms(duration_ms)

    @rule()
    def settled(self) -> None:
        """Once each member is either live or removed, all have their target assignments."""
        for _ in range(2):
            self.world.pass_ms(SESSION_MS - 1)
            for client in self.clients.values():
                client.beat()
        settle(list(self.clients.values()))
        if not self.clients:
            return
        group = self.world.group
        assert group.state.value == "Stable"
        subscribed = {name for client in self.clients.values() for name in client.topics}
        owned = [
            (topic, number)
            for client in self.clients.values()
            for topic, numbers in client.owned.items()
            for number in numbers
        ]
        assert sorted(owned) == sorted(
            (topic_id(name), number)
            for name in subscribed
            for number in range(self.partitions_count(name))
        )

    @invariant()
    def the_groups_epoch_grows(self) -> None:
        group = self.world.shard.consumer_groups.get(GROUP)
        if group is not None:
            assert group.epoch >= self.epoch
            self.epoch = group.epoch


Members.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMembers = pytest.mark.campaign(Members.TestCase)
