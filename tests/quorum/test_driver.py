"""The driver of a replica: the time of its events, and the writes of quorum-state."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.quorum.events import Request, Respond, Send
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.replica import begin
from pykafka_core.quorum.roles import Leader
from pykafka_core.quorum.rpc import Vote
from pykafka_core.quorum.transition import HELD_MAX
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch, ReplicaKey
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core
    from pykafka_core.broker.runtime.quorum.raft_transport import Exchange
    from pykafka_core.broker.storage.snapshot_parts import SnapshotParts

ONE, TWO, THREE = (ReplicaKey(node, bytes(15) + bytes((node,))) for node in (1, 2, 3))
MS = 1_000_000


class Silent:
    """An exchange without connections."""

    def know(self, _: object) -> None:
        pass

    def send(self, sent: Send, _: object) -> None:
        pass

    def respond(self, reply: Respond, _: object) -> None:
        pass


class Driven:
    """A driver of voter 1, whose quorum-state is written on the thread of a real write."""

    def __init__(self, voters: Sequence[ReplicaKey]) -> None:
        self.core = FakeCore()
        self.written: list[ElectionState] = []
        self.ends = threading.Event()
        self.ends.set()
        log = LogState.loaded(0, ())
        self.driver = ReplicaDriver(
            create_services(cast("Core", self.core)),
            exchange=cast("Exchange", Silent()),
            initial=begin(ONE, tuple(voters), ElectionState(5, 2), log, now_ms=0, seed=1),
            persist=self._write,
            parts=cast("SnapshotParts", None),
            make_way=lambda: False,
        )
        self.driver.begin()

    def _write(self, state: ElectionState, _: object) -> None:
        self.ends.wait()
        self.written.append(state)

    def settle(self) -> None:
        """Take the end of the running write, and of the one that it led to."""
        for _ in range(2):
            self.driver.finish()
            self.driver.advance()


def test_the_epoch_and_the_vote_of_one_request_are_written_together() -> None:
    driven = Driven((ONE, TWO, THREE))
    driven.driver.handle(Request(0, 1, Vote(TWO, ONE, 9, OffsetAndEpoch(0, 0), False)))
    driven.settle()
    assert driven.written == [ElectionState(9, voted=TWO)]


def test_dropped_responses_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    driven = Driven((ONE, TWO, THREE))
    driven.ends.clear()
    for number in range(HELD_MAX + 500):
        vote = Vote(TWO, ONE, 9, OffsetAndEpoch(0, 0), False)
        driven.driver.handle(Request(0, number, vote))
    driven.ends.set()
    driven.settle()
    assert [record.message for record in caplog.records] == [
        "quorum-state is not written: over 1000 responses wait for it"
    ]


def test_the_age_of_an_append_begins_with_the_command() -> None:
    """The own vote took four seconds; the leader's first append did not."""
    driven = Driven((ONE,))
    driven.core.clock_ns = 4000 * MS
    driven.settle()
    role = driven.driver.quorum.role
    assert isinstance(role, Leader)
    assert role.appending_since_ms == 4000
