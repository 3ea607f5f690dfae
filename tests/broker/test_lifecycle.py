"""When a broker that joins says that its metadata have reached its registration."""

from typing import TYPE_CHECKING, cast

from pykafka_core.broker.runtime.foundation import found
from pykafka_core.broker.runtime.membership.lifecycle import Joining, Lifecycle
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import DuplicateBrokerRegistrationError
from pykafka_core.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)
from pykafka_core.testing.fake_core import FakeCore
from tests.broker.asked_channel import AskedChannel

if TYPE_CHECKING:
    from pykafka_core._core import Core
    from pykafka_core.broker.runtime.membership.controller_channel import (
        ControllerChannel,
    )

EPOCH = 14
"""Offset of the registration's record."""
JOINING = Joining(Identity("cluster", 3, bytes(16)), bytes(16), (), None, -1, 2000, 9000)


class _Core(FakeCore):
    def registered(self, _epoch: int) -> None:
        pass


class _Joins(AskedChannel):
    """A broker whose requests wait for the test.

    Attributes:
        offset: What its metadata reach.
    """

    def __init__(self) -> None:
        super().__init__()
        self.offset = EPOCH - 1
        self.core = _Core()
        self._foundation = found(cast("Core", self.core))
        self.lifecycle = Lifecycle(
            self._foundation,
            channel=cast("ControllerChannel", self),
            joining=JOINING,
            metadata_offset=lambda: self.offset,
            refused=lambda _reason: None,
        )
        self.lifecycle.register()

    def registered(self) -> "_Joins":
        """It gets its epoch."""
        self.answer(BrokerRegistrationResponse(broker_epoch=EPOCH))
        return self

    def pass_ms(self, ms: int) -> None:
        """Timers run that are due by then."""
        self.core.clock_ns += ms * 1_000_000
        self._foundation.timers.run(self.core.clock_ns)

    @property
    def heartbeats(self) -> list[int]:
        """The offsets that are told in heartbeats under way."""
        return [
            cast("BrokerHeartbeatRequest", request).current_metadata_offset
            for request, _ in self.asked
        ]


def test_a_registration_that_arrives_during_a_heartbeat_is_told_in_the_next_one_at_once() -> None:
    broker = _Joins().registered()
    assert broker.heartbeats == [EPOCH - 1]
    broker.offset = EPOCH
    broker.lifecycle.beat_soon()
    assert broker.heartbeats == [EPOCH - 1]
    broker.answer(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    assert broker.heartbeats == [EPOCH]


def test_a_broker_that_is_fenced_although_it_told_its_registration_waits_for_its_interval() -> None:
    broker = _Joins().registered()
    broker.offset = EPOCH
    broker.answer(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    broker.answer(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=True))
    assert broker.heartbeats == []


def test_a_registration_that_arrives_between_heartbeats_is_told_at_once() -> None:
    broker = _Joins().registered()
    broker.answer(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    assert broker.heartbeats == []
    broker.offset = EPOCH
    broker.lifecycle.beat_soon()
    assert broker.heartbeats == [EPOCH]


def test_a_broker_that_is_not_registered_yet_asks_again_soon_and_then_less_often() -> None:
    broker = _Joins()
    for pause_ms in (100, 200, 400, 800, 1600, 2000, 2000):
        broker.answer(BrokerRegistrationResponse(error_code=DuplicateBrokerRegistrationError.code))
        broker.pass_ms(pause_ms - 1)
        assert broker.asked == []
        broker.pass_ms(1)
        assert len(broker.asked) == 1
