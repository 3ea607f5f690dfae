"""DescribeTransactions: the producer of a transactional id, and its open transaction."""

from typing import Any

import pytest

from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.handlers.transactions import describe_transactions as handler
from pykafka_core.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tests.handlers.transaction_requests import (
    ID,
    TIMEOUT_MS,
    add,
    describe,
    producer_of,
    transactional_broker,
)


def test_an_open_transaction_is_described() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 1)
    row = describe(broker)
    assert (row.error_code, row.transaction_state) == (0, "Ongoing")
    assert (row.producer_id, row.producer_epoch) == producer
    assert (row.transaction_timeout_ms, row.transaction_start_time_ms) == (
        TIMEOUT_MS,
        broker.core.clock_ms,
    )


def test_an_unknown_id_is_an_error() -> None:
    row = describe(transactional_broker(), "nobody's")
    assert (row.transactional_id, row.error_code) == ("nobody's", 105)


def test_naming_a_transaction_many_times_does_not_multiply_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request of some kilobytes that repeated a transaction of 9,000 partitions 500 times got a
    response of 18 MB.
    """
    broker = transactional_broker()
    add(broker, producer_of(broker), 0, 1)
    described = []

    def counting(*arguments: Any) -> None:
        described.append(arguments)
        describe_transaction(*arguments)

    monkeypatch.setattr(handler, "describe_transaction", counting)
    monkeypatch.setattr(handler, "RESPONSE_BYTES_MAX", 500)
    response = broker.ask(DescribeTransactionsRequest(transactional_ids=[ID, "absent", ID, ID, ID]))
    assert isinstance(response, DescribeTransactionsResponse)
    assert [row.error_code for row in response.transaction_states] == [0, 105, 0, 15, 15]
    assert [len(row.topics) for row in response.transaction_states] == [1, 0, 1, 0, 0]
    assert len(described) == 2


def test_without_a_coordinator_the_request_fails_with_coordinator_not_available() -> None:
    from tests.support.simulated.broker import SimulatedBroker

    assert describe(SimulatedBroker()).error_code == 15
