"""AddPartitionsToTxn: all partitions of a transaction are added, or none; brokers can also verify
partitions without adding them.
"""

import pytest

from tests.handlers.offset_requests import broker_with_topic
from tests.handlers.transaction_requests import (
    ID,
    add,
    describe,
    end,
    init,
    producer_of,
    transactional_broker,
)


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added_in_every_version(version: int) -> None:
    broker = transactional_broker()
    assert add(broker, producer_of(broker), 0, 2, version=version) == [0, 0]
    described = describe(broker)
    assert described.transaction_state == "Ongoing"
    assert [(one.topic, one.partitions) for one in described.topics] == [("orders", [0, 2])]


@pytest.mark.parametrize("version", range(6))
def test_no_partition_is_added_if_one_does_not_exist(version: int) -> None:
    broker = transactional_broker()
    assert add(broker, producer_of(broker), 0, 3, version=version) == [55, 3]
    assert describe(broker).transaction_state == "Empty"


@pytest.mark.parametrize(("version", "code"), [(1, 47), (2, 90), (3, 90), (5, 90)])
def test_an_older_producer_is_fenced(version: int, code: int) -> None:
    broker = transactional_broker()
    old = producer_of(broker)
    producer_of(broker)
    assert add(broker, old, 0, version=version) == [code]


def test_unknown_producer_id_is_rejected() -> None:
    broker = transactional_broker()
    assert add(broker, (12_345, 0), 0) == [49]
    producer_of(broker)
    assert add(broker, (12_345, 0), 0) == [49]


def test_broker_can_verify_partitions_of_a_transaction() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 1)
    assert add(broker, producer, 0, 1, 2, version=5, verify_only=True) == [120, 0, 120]
    assert add(broker, producer, 3, version=5, verify_only=True) == [3]


def test_without_a_coordinator_the_request_fails_with_coordinator_not_available() -> None:
    assert add(broker_with_topic(), (0, 0), 0) == [15]


def test_next_transaction_starts_after_the_last_one_completes() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    assert end(broker, producer, commit=True)[0] == 0
    assert add(broker, producer, 1) == [0]
    assert init(broker)[0] == 51
    assert describe(broker, ID).transaction_state == "CompleteAbort"
