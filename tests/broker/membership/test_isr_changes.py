"""A leader's ISR changes at the controller: after lost responses, rejections and concurrent
changes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core._core import Replica
from pykafka_core.broker.runtime.membership.alter_partition_manager import RETRY_NS, IsrChanges
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.errors import (
    FencedLeaderEpochError,
    IneligibleReplicaError,
    NotControllerError,
    StaleBrokerEpochError,
    UnknownServerError,
)
from pykafka_core.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tests.broker.membership.asked_channel import AskedChannel
from tests.handlers.cluster_world import TOPIC_ID, ClusterWorld
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core
    from pykafka_core.broker.runtime.membership.controller_channel import (
        ControllerChannel,
    )

LEADER, FOLLOWER = 1, 2
Settled = tuple[int, str, Sequence[int], int]


class _Core(FakeCore):
    """Numbers proposals, and records their results."""

    def __init__(self) -> None:
        super().__init__()
        self.proposed: list[tuple[tuple[int, int], ...]] = []
        self.settled: list[Settled] = []

    def propose_isr(
        self, _: object, epoch: int, partition_epoch: int, isr: tuple[tuple[int, int], ...]
    ) -> int:
        self.proposed.append(isr)
        return len(self.proposed)

    def settle_isr(
        self, proposal: int, outcome: str, isr: Sequence[int] = (), partition_epoch: int = -1
    ) -> None:
        self.settled.append((proposal, outcome, tuple(isr), partition_epoch))


class Leader(AskedChannel):
    """The ISR changes of one leader, whose requests are completed by the test."""

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__()
        self.world = world
        self.core = _Core()
        self._services = create_services(cast("Core", self.core))
        self._changes = IsrChanges(
            self._services,
            channel=cast("ControllerChannel", self),
            broker=lambda: (LEADER, world.processes[LEADER].epoch),
            image=lambda: world.image,
        )

    def hear_lagging(self, index: int = 0) -> None:
        epoch = self.world.partition(index).leader_epoch
        self._changes.note(Replica(TOPIC_ID, index, epoch, FOLLOWER, "lagging", 0))

    def decide(self) -> AlterPartitionResponse:
        """Commit the first request; return the controller's response."""
        response = self.world.ask(self.asked[0][0], 3)
        assert isinstance(response, AlterPartitionResponse)
        return response

    def pass_ns(self, ns: int) -> None:
        self.core.clock_ns += ns
        self._services.timers.run(self.core.clock_ns)


@pytest.fixture
def leader() -> Leader:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [1, 2, 3])
    return Leader(world)


def _refused(error_code: int) -> AlterPartitionResponse:
    of = AlterPartitionResponse
    partition = of.PartitionData(partition_index=0, error_code=error_code)
    return of(topics=[of.TopicData(topic_id=TOPIC_ID, partitions=[partition])])


def test_change_is_settled_with_the_committed_isr(leader: Leader) -> None:
    leader.hear_lagging()
    leader.respond(leader.decide())
    assert leader.core.settled == [(1, "committed", (1, 3), 1)]
    assert leader.world.partition().isr == (1, 3)


@pytest.mark.parametrize("code", [None, NotControllerError.code, StaleBrokerEpochError.code])
def test_change_without_a_reply_is_requested_again(leader: Leader, code: int | None) -> None:
    leader.hear_lagging()
    leader.respond(None if code is None else AlterPartitionResponse(error_code=code))
    assert (leader.core.settled, leader.asked) == ([], [])
    leader.pass_ns(RETRY_NS)
    leader.respond(leader.decide())
    assert leader.core.settled == [(1, "committed", (1, 3), 1)]


def test_committed_change_with_a_lost_reply_is_not_made_twice(
    leader: Leader,
) -> None:
    leader.hear_lagging()
    leader.decide()
    leader.respond(None)
    leader.pass_ns(RETRY_NS)
    leader.respond(leader.decide())
    assert leader.world.partition().partition_epoch == 1
    assert [settled[:2] for settled in leader.core.settled] == [(1, "unknown")]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(IneligibleReplicaError.code, "rejected"), (FencedLeaderEpochError.code, "unknown")],
)
def test_rejected_change_is_not_requested_again(leader: Leader, code: int, outcome: str) -> None:
    leader.hear_lagging()
    leader.respond(_refused(code))
    leader.pass_ns(RETRY_NS)
    assert leader.asked == []
    assert [settled[1] for settled in leader.core.settled] == [outcome]


def test_new_changes_are_sent_together_with_failed_ones(leader: Leader) -> None:
    leader.hear_lagging(0)
    leader.hear_lagging(1)
    assert len(leader.asked) == 1
    leader.respond(_refused(UnknownServerError.code))
    leader.pass_ns(RETRY_NS)
    (request, _), *others = leader.asked
    assert others == []
    topics = cast("AlterPartitionRequest", request).topics
    assert [p.partition_index for topic in topics for p in topic.partitions] == [0, 1]
