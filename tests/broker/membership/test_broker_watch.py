"""The active controller's watch of broker processes: the events that prove the end of a process."""

from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core._core import Replied
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.membership.broker_liveness import (
    PAUSE_NS,
    PAUSE_NS_MAX,
    PURPOSE,
    BrokerWatch,
)
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.errors import (
    DuplicateBrokerRegistrationError,
    KafkaStorageError,
    NotControllerError,
)
from pykafka_core.protocol.messages import BrokerHeartbeatResponse
from tests.handlers.cluster_world import ClusterWorld
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core

BROKER = 2


class Watch:
    """The watch of controller 1 over broker 2, whose host the test simulates."""

    def __init__(self) -> None:
        self.world = ClusterWorld([BROKER])
        self.core = FakeCore()
        self.core.clock_ns = self.world.now_ns
        self._services = create_services(cast("Core", self.core))
        self._asked: list[LocalRequest] = []
        self._watch = BrokerWatch(
            self._services, node_id=1, listener="internal", ask=self._asked.append
        )
        (at,) = self.world.image.brokers[BROKER].endpoints
        self._peer = PURPOSE, at.host, at.port

    def take_over(self) -> None:
        """Become the active controller after another one has unfenced the brokers."""
        self.look()

    def look(self) -> None:
        self._watch.look(self.world.image, self.world.active)
        self._handle()

    def listen(self) -> None:
        self.core.peers.add(self._peer)

    def respond(self) -> None:
        (token,) = self.core.sent
        self.core.reply(token, b"")
        self._handle()

    def end_connection(self, *, is_gone: bool) -> None:
        """Close the connection from the broker's side; if its process is gone, it no longer
        listens.
        """
        if is_gone:
            self.core.peers.discard(self._peer)
        self.core.disconnect(self._peer)
        self._handle()

    def end(self) -> None:
        self._watch.end()
        self._handle()

    def restart(self) -> None:
        """End the broker's session, and unfence its next process."""
        self.world.stop_hearing_of(BROKER)
        process = self.world.processes[BROKER] = self.world.start(BROKER)
        self.world.heartbeat(process)
        self.core.clock_ns = self.world.now_ns

    def pass_ns(self, ns: int) -> None:
        self.core.clock_ns += ns
        self._services.timers.run(self.core.clock_ns)
        self._handle()

    def refuse(self, error_code: int) -> None:
        """Fail the last request of the watch: it was not committed, or is in doubt."""
        self._asked.pop().respond(BrokerHeartbeatResponse(error_code=error_code))

    @property
    def is_fenced(self) -> bool:
        """Commit the requests of the watch; return whether the broker is fenced."""
        while self._asked:
            self.world.decide(self._asked.pop(0).decide)
        return self.world.image.brokers[BROKER].fenced

    def _handle(self) -> None:
        for event in self.core.wait(self.core.clock_ns):
            assert isinstance(event, Replied)
            completed = Completed(event.error_code, -1, event)
            self._services.completions.complete(event.token, completed)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_registered_broker_that_refuses_connections_is_fenced(watch: Watch) -> None:
    watch.listen()
    watch.take_over()
    assert len(watch.core.sent) == 1
    watch.end_connection(is_gone=True)
    watch.pass_ns(PAUSE_NS)
    assert watch.is_fenced
    broker = watch.world.image.brokers[BROKER]
    assert not watch.world.active.sessions.is_valid(broker, watch.world.now_ns)


def test_broker_that_stopped_before_the_controller_took_over_is_fenced(watch: Watch) -> None:
    watch.take_over()
    assert watch.is_fenced


def test_closed_connection_is_reopened_and_fences_no_broker(watch: Watch) -> None:
    watch.listen()
    watch.take_over()
    for _ in range(3):
        watch.end_connection(is_gone=False)
        assert len(watch.core.sent) == 0
        watch.pass_ns(8 * PAUSE_NS)
        assert len(watch.core.sent) == 1
    assert not watch.is_fenced


def test_process_whose_connection_ended_may_be_replaced_until_its_next_heartbeat(
    watch: Watch,
) -> None:
    watch.listen()
    watch.take_over()
    old = watch.world.processes[BROKER]
    assert watch.world.register(BROKER, 77).error_code == DuplicateBrokerRegistrationError.code
    watch.end_connection(is_gone=False)
    watch.world.now_ns = watch.core.clock_ns + 1
    watch.world.heartbeat(old)
    assert watch.world.register(BROKER, 77).error_code == DuplicateBrokerRegistrationError.code
    watch.pass_ns(8 * PAUSE_NS)
    watch.end_connection(is_gone=False)
    assert watch.world.register(BROKER, 77).error_code == 0
    assert watch.world.image.brokers[BROKER].epoch != old.epoch


def test_process_that_ended_unnoticed_may_be_replaced(watch: Watch) -> None:
    watch.listen()
    watch.take_over()
    watch.restart()
    watch.look()
    watch.core.clock_ns += 1
    watch.end_connection(is_gone=False)
    assert watch.world.register(BROKER, 77).error_code == 0


def test_heartbeat_from_before_the_end_of_the_connection_does_not_count(
    watch: Watch,
) -> None:
    watch.listen()
    watch.take_over()
    watch.core.clock_ns += 1
    watch.end_connection(is_gone=False)
    watch.world.heartbeat(watch.world.processes[BROKER])
    assert watch.world.register(BROKER, 77).error_code == 0


def test_broker_that_is_unfenced_before_it_listens_is_not_fenced(watch: Watch) -> None:
    watch.listen()
    watch.take_over()
    watch.core.peers.clear()
    watch.restart()
    watch.look()
    watch.pass_ns(PAUSE_NS)
    assert not watch.is_fenced
    watch.listen()
    watch.pass_ns(8 * PAUSE_NS)
    watch.respond()
    watch.end_connection(is_gone=True)
    watch.pass_ns(8 * PAUSE_NS)
    assert watch.is_fenced


def test_refused_connection_does_not_fence_the_next_process_of_a_broker(watch: Watch) -> None:
    watch.take_over()
    watch.restart()
    assert not watch.is_fenced


@pytest.mark.parametrize("responses", [1, 3])
def test_failed_fencing_is_retried_while_the_process_is_down(watch: Watch, responses: int) -> None:
    watch.take_over()
    for _ in range(responses):
        watch.refuse(KafkaStorageError.code)
        watch.pass_ns(PAUSE_NS_MAX)
    assert watch.is_fenced


def test_failed_fencing_is_not_retried_once_the_process_listens(
    watch: Watch,
) -> None:
    watch.take_over()
    watch.listen()
    watch.refuse(KafkaStorageError.code)
    watch.pass_ns(PAUSE_NS_MAX)
    assert not watch.is_fenced


def test_former_controller_does_not_retry_fencing(
    watch: Watch,
) -> None:
    watch.take_over()
    watch.end()
    watch.refuse(NotControllerError.code)
    watch.pass_ns(PAUSE_NS_MAX)
    assert not watch.is_fenced


def test_former_controller_watches_no_brokers(watch: Watch) -> None:
    watch.listen()
    watch.take_over()
    watch.end()
    watch.core.peers.clear()
    watch.pass_ns(8 * PAUSE_NS)
    assert not watch.is_fenced
    assert not watch.core.sent
