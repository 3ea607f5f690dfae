"""ListTransactions: all transactional ids of this node, or those that match the filters."""

from itertools import count

import pytest

from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS
from pykafka_core.coordinator.transaction.list_transactions import TransactionFilters
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.protocol.messages import (
    FindCoordinatorRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tests.handlers.transaction_requests import add, producer_of, transactional_broker
from tests.support.simulated.broker import SimulatedBroker


def listed(broker: SimulatedBroker, version: int = 2, **filters: object) -> dict[str, str]:
    request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
    response = broker.ask(request, version)
    assert isinstance(response, ListTransactionsResponse)
    assert response.error_code == 0
    return {row.transactional_id: row.transaction_state for row in response.transaction_states}


def broker_with_two() -> SimulatedBroker:
    broker = transactional_broker()
    producer_of(broker, "idle-1")
    add(broker, producer_of(broker, "busy-1"), 0, name="busy-1")
    return broker


@pytest.mark.parametrize("version", range(3))
def test_all_are_listed_without_a_filter(version: int) -> None:
    assert listed(broker_with_two(), version) == {"idle-1": "Empty", "busy-1": "Ongoing"}


def test_states_producers_and_patterns_filter() -> None:
    broker = broker_with_two()
    assert listed(broker, state_filters=["Ongoing"]) == {"busy-1": "Ongoing"}
    assert listed(broker, producer_id_filters=[10**9]) == {}
    assert listed(broker, transactional_id_pattern="busy-[0-9]+") == {"busy-1": "Ongoing"}
    assert listed(broker, transactional_id_pattern="busy") == {}
    broker.core.clock_ms += 1000
    assert "busy-1" in listed(broker, duration_filter=999)
    assert "busy-1" not in listed(broker, duration_filter=1000)


def test_unknown_states_are_named_and_match_nothing() -> None:
    response = broker_with_two().ask(ListTransactionsRequest(state_filters=["Nonsense"]))
    assert isinstance(response, ListTransactionsResponse)
    assert (response.unknown_state_filters, response.transaction_states) == (["Nonsense"], [])


@pytest.mark.parametrize("pattern", ["(", "a{1000000}", "(" * 200 + ")" * 200])
def test_invalid_pattern_is_rejected(pattern: str) -> None:
    response = broker_with_two().ask(ListTransactionsRequest(transactional_id_pattern=pattern))
    assert isinstance(response, ListTransactionsResponse)
    assert response.error_code == 128


def test_many_transactions_are_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """All transactions of a shard were filtered in one turn: 26 ms for 25,000 and a pattern."""
    broker = SimulatedBroker({"transaction.state.log.num.partitions": "1"})
    broker.ask(FindCoordinatorRequest(key="idle", key_type=1), 3)
    for number in range(30):
        producer_of(broker, f"idle-{number}")
    judged, passed = list[str](), count()
    real_take, now_ns = TransactionFilters.take, broker.core.now_ns

    def take(filters: TransactionFilters, transaction: Transaction, now_ms: int) -> bool:
        judged.append(transaction.transactional_id)
        return real_take(filters, transaction, now_ms)

    monkeypatch.setattr(TransactionFilters, "take", take)
    monkeypatch.setattr(
        broker.core, "now_ns", lambda: now_ns() + next(passed) * TIME_SLICE_NS // 10
    )
    request = broker.send(ListTransactionsRequest(transactional_id_pattern="idle-1?[0-9]"))
    at_once, busy = 0, True
    while busy or broker.response(request) is None:
        before = len(judged)
        for event in broker.core.wait(0):
            broker.dispatcher.take(event)
        busy = broker.dispatcher.advance()
        at_once = max(at_once, len(judged) - before)
    assert len(judged) == 30
    assert at_once < 15
    response = broker.response(request)
    assert isinstance(response, ListTransactionsResponse)
    assert len(response.transaction_states) == 20


def test_without_a_coordinator_the_list_is_empty() -> None:
    assert listed(SimulatedBroker()) == {}
