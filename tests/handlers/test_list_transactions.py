"""ListTransactions: all of this node's, or those that pass the filters."""

import pytest

from pykafka_core.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from pykafka_core.testing.simulated_broker import SimulatedBroker
from tests.handlers.transaction_requests import add, producer_of, transactional_broker


def listed(broker: SimulatedBroker, version: int = 2, **filters: object) -> dict[str, str]:
    request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
    answer = broker.ask(request, version)
    assert isinstance(answer, ListTransactionsResponse)
    assert answer.error_code == 0
    return {row.transactional_id: row.transaction_state for row in answer.transaction_states}


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
    answer = broker_with_two().ask(ListTransactionsRequest(state_filters=["Nonsense"]))
    assert isinstance(answer, ListTransactionsResponse)
    assert (answer.unknown_state_filters, answer.transaction_states) == (["Nonsense"], [])


@pytest.mark.parametrize("pattern", ["(", "a{1000000}", "(" * 200 + ")" * 200])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    answer = broker_with_two().ask(ListTransactionsRequest(transactional_id_pattern=pattern))
    assert isinstance(answer, ListTransactionsResponse)
    assert answer.error_code == 128


def test_without_a_coordinator_there_are_none() -> None:
    assert listed(SimulatedBroker()) == {}
