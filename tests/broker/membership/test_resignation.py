"""Property of `Resignation`: bounds of the ISR, and a grace between two changes of a replica."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_core.broker.runtime.membership.trust import GRACE_NS
from pykafka_core.handlers.cluster import assign_replicas_to_dirs
from pykafka_core.protocol.messages import Message
from tests.broker.membership.failing_broker import (
    OWN,
    QUICK,
    SECOND,
    SESSION_MS,
    THIRD,
    FailingBroker,
)

REPLICAS = ((OWN, SECOND, THIRD), (SECOND, THIRD, OWN), (OWN, SECOND), (OWN,))
EVENTS: dict[str, Callable[[FailingBroker], object]] = {
    "full": FailingBroker.fill_disk,
    "free": FailingBroker.free_disk,
    "slow": lambda broker: setattr(broker.core, "probe", (0, SESSION_MS)),
    "hangs": lambda broker: setattr(broker.core, "probe", None),
    "mediocre": lambda broker: setattr(broker.core, "probe", (0, 1000)),
    "quick": lambda broker: setattr(broker.core, "probe", QUICK),
    "stall": lambda broker: broker.core.waits_ms.update({0: SESSION_MS, 1: SESSION_MS}),
    "no stall": lambda broker: broker.core.waits_ms.clear(),
    "second ends": lambda broker: fence(broker, SECOND),
    "second returns": lambda broker: unfence(broker, SECOND),
    "third ends": lambda broker: fence(broker, THIRD),
    "third returns": lambda broker: unfence(broker, THIRD),
    "heartbeat": FailingBroker.pass_heartbeats,
    "while": lambda broker: broker.pass_heartbeats(5),
}


def fence(broker: FailingBroker, node: int) -> None:
    broker.world.heartbeat(broker.world.processes[node], fence=True)


def unfence(broker: FailingBroker, node: int) -> None:
    broker.world.heartbeat(broker.world.processes[node])


def join(broker: FailingBroker) -> None:
    """Leaders take back each replica that may be in sync."""
    for index, replicas in enumerate(REPLICAS):
        found = broker.world.partition(index)
        if found.leader >= 0:
            able = [
                node
                for node in replicas
                if not broker.world.image.brokers[node].fenced
                and (node != OWN or not broker.has_lost(index))
            ]
            broker.world.alter_isr(broker.world.processes[found.leader], able, index=index)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*EVENTS, "join"]), max_size=40), st.integers(1, 3))
def test_resignations_stay_within_their_bounds_and_change_once_in_a_grace_period(
    names: list[str], min_isr: int
) -> None:
    """The controller here accepts everything, as Apache Kafka's does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assign_replicas_to_dirs, "check_resignation", lambda *_: None)
        broker = FailingBroker(*REPLICAS, min_isr=min_isr)
        watch = Watch(broker, min_isr)
        for name in names:
            if name == "join":
                join(broker)
            else:
                EVENTS[name](broker)
        watch.ends()


class Watch:
    """Checks each request when it is decided."""

    def __init__(self, broker: FailingBroker, min_isr: int) -> None:
        self._broker = broker
        self._min_isr = min_isr
        self._decide = broker.decides
        self._changed_ns: dict[int, int] = {}
        broker.decides = self._decided

    def _decided(self, request: Message) -> Message | None:
        world = self._broker.world
        before = [world.partition(index) for index in range(len(REPLICAS))]
        response = self._decide(request)
        for index, old in enumerate(before):
            new = world.partition(index)
            if new.directories != old.directories:
                now_ns = self._broker.core.now_ns()
                assert now_ns - self._changed_ns.get(index, -GRACE_NS) >= GRACE_NS
                self._changed_ns[index] = now_ns
            if new.isr != old.isr:
                alive = [node for node in new.isr if not world.image.brokers[node].fenced]
                assert len(alive) >= max(2, min(self._min_isr, len(REPLICAS[index])))
                assert new.leader in new.isr
        return response

    def ends(self) -> None:
        """Once all works again every replica is back."""
        broker = self._broker
        EVENTS["no stall"](broker)
        broker.free_disk()
        broker.pass_heartbeats(90)
        assert not any(broker.has_lost(index) for index in range(len(REPLICAS)))
