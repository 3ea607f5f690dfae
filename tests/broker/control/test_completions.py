"""Requests that wait for the core: completed by the core, at the timeout, or dropped with their
connection.
"""

import pytest

from pykafka_core._core import Cancelled, Maintained
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.errors import BrokerNotAvailableError
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from tests.support.simulated.broker import SimulatedBroker

REQUEST_TIMED_OUT = 7
MINUTES_NS = 10 * 60 * 10**9


def test_token_completes_once_unless_it_was_cancelled() -> None:
    completions, seen = Completions(), list[Completed]()
    done, cancelled = completions.open(seen.append), completions.open(seen.append)
    completions.cancel(cancelled)
    for token in (done, cancelled, done, 10**6):
        completions.complete(token, Completed(0, 5))
    assert (seen, len(completions)) == ([Completed(0, 5)], 0)


class Stalled:
    """A broker whose core starts maintenance, which only the test completes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker = SimulatedBroker()
        topic = CreateTopicsRequest.CreatableTopic(
            name="orders", num_partitions=2, replication_factor=1
        )
        self.broker.ask(CreateTopicsRequest(topics=[topic]))
        self.tokens: list[int] = []
        monkeypatch.setattr(
            self.broker.core, "delete_before", lambda token, *_: self.tokens.append(token)
        )

    def send(self, timeout_ms: int) -> int:
        partition = DeleteRecordsRequest.DeleteRecordsPartition
        topic = DeleteRecordsRequest.DeleteRecordsTopic(
            name="orders",
            partitions=[partition(partition_index=index, offset=0) for index in range(2)],
        )
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
        sent = self.broker.send(request)
        self.broker.run()
        return sent

    def complete(self, token: int, offset: int) -> None:
        self.broker.core.push(Maintained(token, 0, offset))
        self.broker.run()

    def pass_time(self, duration_ns: int) -> None:
        self.broker.core.clock_ns += duration_ns
        self.broker.control.timers.run(self.broker.core.clock_ns)
        self.broker.run()

    def results(self, request: int) -> list[tuple[int, int]] | None:
        response = self.broker.response(request)
        if response is None:
            return None
        assert isinstance(response, DeleteRecordsResponse)
        return [(p.low_watermark, p.error_code) for t in response.topics for p in t.partitions]

    def is_waiting(self) -> bool:
        dispatcher = self.broker.dispatcher
        return bool(dispatcher._completions) or not dispatcher.idle


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Stalled:
    return Stalled(monkeypatch)


def test_completion_may_take_minutes(stalled: Stalled) -> None:
    request = stalled.send(timeout_ms=2**31 - 1)
    stalled.pass_time(MINUTES_NS)
    stalled.complete(stalled.tokens[1], 4)
    assert stalled.results(request) is None
    stalled.pass_time(MINUTES_NS)
    stalled.complete(stalled.tokens[0], 3)
    assert stalled.results(request) == [(3, 0), (4, 0)]
    assert not stalled.is_waiting()
    assert len(stalled.broker.control.timers) == 0


def test_unfinished_operation_fails_with_request_timed_out(stalled: Stalled) -> None:
    """The connection waited as long as the disk, whatever the request's timeout was."""
    request = stalled.send(timeout_ms=30_000)
    stalled.complete(stalled.tokens[0], 3)
    stalled.pass_time(29 * 10**9)
    assert stalled.results(request) is None
    stalled.pass_time(10**9)
    assert stalled.results(request) == [(3, 0), (-1, REQUEST_TIMED_OUT)]
    assert not stalled.is_waiting()
    stalled.complete(stalled.tokens[1], 4)
    assert stalled.results(request) == [(3, 0), (-1, REQUEST_TIMED_OUT)]


def test_operations_of_a_closed_connection_are_forgotten(stalled: Stalled) -> None:
    request = stalled.send(timeout_ms=2**31 - 1)
    stalled.broker.core.push(Cancelled(request))
    stalled.broker.run()
    assert not stalled.is_waiting()
    assert len(stalled.broker.control.timers) == 0
    stalled.complete(stalled.tokens[0], 3)
    assert stalled.results(request) is None


def test_stop_fails_operations_that_wait_for_the_core(stalled: Stalled) -> None:
    request = stalled.send(timeout_ms=2**31 - 1)
    stalled.broker.dispatcher.fail_all(BrokerNotAvailableError.code)
    assert not stalled.is_waiting()
    assert request in stalled.broker.core.closed_connections
