"""Random histories of members of both protocols: no partition has two holders, the records contain
the whole state, and the group becomes stable.

The world checks the first two after each step (`tests.coordinator.group.consumer.world`).
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.coordinator.group.consumer.world import REBALANCE_MS, SESSION_MS, Client, World, topic_id
from tests.coordinator.group.migration.clients import CLASSIC_SESSION_MS, ClassicClient, leave

T = topic_id("t")


class Members(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World({"t": 5})
        self.clients: list[ClassicClient | Client] = []
        self.numbers = iter(range(1000))

    @rule(is_eager=st.booleans())
    @precondition(lambda self: len(self.clients) < 5)
    def join_classic(self, is_eager: bool) -> None:
        self.clients.append(ClassicClient(self.world, is_eager=is_eager))

    @rule()
    @precondition(lambda self: len(self.clients) < 5)
    def join_consumers(self) -> None:
        self.clients.append(Client(self.world, f"m{next(self.numbers)}"))

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def live(self, data: st.DataObject) -> None:
        step(data.draw(st.sampled_from(self.clients)))

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def leave(self, data: st.DataObject) -> None:
        client = self.clients.pop(data.draw(st.integers(0, len(self.clients) - 1)))
        if isinstance(client, Client):
            self.world.leave(client.member_id)
        elif client.waits is None:
            leave(self.world, client.member_id)

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def forget(self, data: st.DataObject) -> None:
        """A member's process dies: it sends no more requests."""
        self.clients.pop(data.draw(st.integers(0, len(self.clients) - 1)))

    @rule(more=st.integers(1, 3))
    def grow(self, more: int) -> None:
        topic = self.world.topics.topic("t")
        self.world.topics.set("t", (topic.partitions_count if topic else 0) + more)

    @rule(ms=st.sampled_from([1_000, CLASSIC_SESSION_MS, SESSION_MS // 2, REBALANCE_MS]))
    def wait(self, ms: int) -> None:
        self.world.pass_ms(ms)

    @rule()
    def settled(self) -> None:
        """Once each member is either live or removed, each partition belongs to one of them."""
        passed_ms = 0
        news = [True]
        while passed_ms <= 3 * REBALANCE_MS or any(news):
            assert passed_ms < 10 * REBALANCE_MS, "they do not settle"
            news = [step(client) for client in self.clients]
            self.world.pass_ms(CLASSIC_SESSION_MS // 3)
            passed_ms += CLASSIC_SESSION_MS // 3
        owned = [number for client in self.clients for number in numbers_of(client)]
        topic = self.world.topics.topic("t")
        assert topic is not None
        wanted = list(range(topic.partitions_count)) if self.clients else []
        assert sorted(owned) == wanted


def step(client: ClassicClient | Client) -> bool:
    return client.live() if isinstance(client, ClassicClient) else client.beat()


def numbers_of(client: ClassicClient | Client) -> set[int]:
    if isinstance(client, ClassicClient):
        return set(client.owned.get("t", ()))
    return set(client.owned.get(T, ()))


Members.TestCase.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
TestMembers = pytest.mark.campaign(Members.TestCase)
