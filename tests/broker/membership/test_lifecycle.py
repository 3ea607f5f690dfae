"""When a joining broker reports that its metadata has reached its registration."""

from typing import TYPE_CHECKING, cast

from pykafka_core.broker.runtime.membership.lifecycle import Joining, Lifecycle
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import DuplicateBrokerRegistrationError, StaleBrokerEpochError
from pykafka_core.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)
from tests.broker.membership.asked_channel import AskedChannel
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core
    from pykafka_core.broker.runtime.membership.controller_channel import (
        ControllerChannel,
    )

EPOCH = 14
"""Offset of the registration record."""
JOINING = Joining(Identity("cluster", 3, bytes(16)), bytes(16), (), None, -1, 2000, 9000)


class _Core(FakeCore):
    def registered(self, _epoch: int) -> None:
        pass


class _Joins(AskedChannel):
    """A broker whose requests are completed by the test.

    Attributes:
        offset: The last applied metadata offset.
        cordoned: Directories that the metadata cordons.
    """

    def __init__(self) -> None:
        super().__init__()
        self.offset = EPOCH - 1
        self.cordoned: tuple[bytes, ...] | None = None
        self.core = _Core()
        self._services = create_services(cast("Core", self.core))
        self.replicas = self._services.replicas
        self.lifecycle = Lifecycle(
            self._services,
            channel=cast("ControllerChannel", self),
            joining=JOINING,
            metadata_offset=lambda: self.offset,
            cordoned=lambda: self.cordoned,
            refused=lambda _reason: None,
        )
        self.lifecycle.register()

    def registered(self) -> "_Joins":
        """Complete the registration with an epoch."""
        self.respond(BrokerRegistrationResponse(broker_epoch=EPOCH))
        return self

    def refused(self, pause_ms: int) -> None:
        """Reject the registration, which is retried after a delay."""
        self.respond(BrokerRegistrationResponse(error_code=DuplicateBrokerRegistrationError.code))
        self.pass_ms(pause_ms - 1)
        assert self.asked == []
        self.pass_ms(1)
        assert len(self.asked) == 1

    def pass_ms(self, ms: int) -> None:
        """Let time pass, and run the timers that are due."""
        self.core.clock_ns += ms * 1_000_000
        self._services.timers.run(self.core.clock_ns)

    @property
    def cordoned_in_heartbeats(self) -> list[list[bytes] | None]:
        """Return the cordoned directories in the pending heartbeats."""
        return [
            cast("BrokerHeartbeatRequest", request).cordoned_log_dirs for request, _ in self.asked
        ]

    @property
    def heartbeats(self) -> list[int]:
        """Return the metadata offsets in the pending heartbeats."""
        return [
            cast("BrokerHeartbeatRequest", request).current_metadata_offset
            for request, _ in self.asked
        ]


def test_registration_applied_during_a_heartbeat_is_reported_by_the_next_one_at_once() -> None:
    broker = _Joins().registered()
    assert broker.heartbeats == [EPOCH - 1]
    broker.offset = EPOCH
    broker.lifecycle.beat_soon()
    assert broker.heartbeats == [EPOCH - 1]
    broker.respond(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    assert broker.heartbeats == [EPOCH]


def test_broker_still_fenced_after_reporting_its_registration_waits_for_its_interval() -> None:
    broker = _Joins().registered()
    broker.offset = EPOCH
    broker.respond(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    broker.respond(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=True))
    assert broker.heartbeats == []


def test_registration_applied_between_heartbeats_is_reported_at_once() -> None:
    broker = _Joins().registered()
    broker.respond(BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False))
    assert broker.heartbeats == []
    broker.offset = EPOCH
    broker.lifecycle.beat_soon()
    assert broker.heartbeats == [EPOCH]


def test_cordoned_directories_are_sent_at_once_and_in_each_heartbeat() -> None:
    broker = _Joins()
    broker.cordoned = ()
    broker.registered()
    assert broker.cordoned_in_heartbeats == [None]
    broker.offset = EPOCH
    broker.respond(BrokerHeartbeatResponse(is_fenced=False))
    for cordoned in ((), (bytes(16),)):
        broker.cordoned = cordoned
        broker.lifecycle.beat_soon()
        assert broker.cordoned_in_heartbeats == [list(cordoned)]
        broker.respond(BrokerHeartbeatResponse(is_fenced=False))
        broker.lifecycle.beat_soon()
        assert broker.asked == []
    broker.pass_ms(JOINING.heartbeat_ms)
    assert broker.cordoned_in_heartbeats == [[bytes(16)]]


def test_unregistered_broker_retries_soon_and_then_less_often() -> None:
    broker = _Joins()
    for pause_ms in (100, 200, 400, 500, 500):
        broker.refused(pause_ms)


def test_silent_controller_is_asked_again_like_one_that_rejects() -> None:
    broker = _Joins()
    broker.respond(None)
    broker.pass_ms(100)
    assert len(broker.asked) == 1


def test_controller_counts_as_missing_from_a_session_without_a_reply_to_the_next_reply() -> None:
    broker = _Joins()
    create_services = [broker.replicas.lacks_controller]
    for response in (None, BrokerRegistrationResponse(broker_epoch=EPOCH), None):
        broker.pass_ms(100)
        broker.respond(response)
        create_services.append(broker.replicas.lacks_controller)
    broker.pass_ms(JOINING.heartbeat_ms)
    broker.respond(BrokerHeartbeatResponse(error_code=StaleBrokerEpochError.code))
    create_services.append(broker.replicas.lacks_controller)
    assert create_services == [False, True, False, True, False]


def test_broker_that_has_to_register_again_retries_soon() -> None:
    broker = _Joins()
    broker.refused(100)
    broker.refused(200)
    broker.registered().respond(BrokerHeartbeatResponse(error_code=StaleBrokerEpochError.code))
    broker.refused(100)


def test_leaving_broker_sends_heartbeats_in_quick_succession() -> None:
    broker = _Joins().registered()
    broker.respond(BrokerHeartbeatResponse(is_fenced=False))
    broker.lifecycle.leave(lambda: None)
    broker.respond(BrokerHeartbeatResponse(is_fenced=False, should_shut_down=False))
    assert broker.asked == []
    broker.pass_ms(50)
    assert len(broker.asked) == 1
