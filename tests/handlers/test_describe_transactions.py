"""DescribeTransactions: who a transactional id belongs to, and what it has open."""

from tests.handlers.transaction_requests import (
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


def test_without_a_coordinator_it_is_not_available() -> None:
    from pykafka_core.testing.simulated_broker import SimulatedBroker

    assert describe(SimulatedBroker()).error_code == 15
