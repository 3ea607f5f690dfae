"""DescribeTransactions and ListTransactions: the transactions as clients see them."""

from functools import partial

import pytest

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.coordinator.transaction.list_transactions import (
    TransactionFilters,
    list_transactions,
    listed,
)
from pykafka_core.protocol.messages import DescribeTransactionsResponse, ListTransactionsResponse
from tests.coordinator.transaction.world import (
    COMPLETE_COMMIT,
    EMPTY,
    NOW_MS,
    ONGOING,
    T0,
    T1,
    TIMEOUT_MS,
    U0,
    World,
    transaction,
)


def test_a_transaction_is_described_with_its_partitions_by_topic() -> None:
    world = World(transaction(ONGOING, partitions=(U0, T1, T0)))
    read = world.ask(partial(describe_transaction, "x", Budget(UNRESERVED_BYTES_MAX)))
    assert isinstance(read, Read)
    assert read.value == (
        DescribeTransactionsResponse.TransactionState(
            transactional_id="x",
            transaction_state="Ongoing",
            transaction_timeout_ms=TIMEOUT_MS,
            transaction_start_time_ms=NOW_MS,
            producer_id=7,
            producer_epoch=5,
            topics=[
                DescribeTransactionsResponse.TopicData(topic="t", partitions=[0, 1]),
                DescribeTransactionsResponse.TopicData(topic="u", partitions=[0]),
            ],
        )
    )


STORED = (
    transaction(EMPTY, transactional_id="empty", producer_id=1),
    transaction(ONGOING, transactional_id="old", producer_id=2, start_ms=NOW_MS - 50_000),
    transaction(ONGOING, transactional_id="new", producer_id=3),
    transaction(COMPLETE_COMMIT, transactional_id="ended", producer_id=4, start_ms=NOW_MS - 99_000),
)
ALL = ["empty", "old", "new", "ended"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (TransactionFilters(), ALL),
        (TransactionFilters(states={ONGOING}), ["old", "new"]),
        (TransactionFilters(states=frozenset()), []),
        (TransactionFilters(producer_ids={1, 4, 9}), ["empty", "ended"]),
        (TransactionFilters(duration_ms=0), ["empty", "old", "ended"]),
        (TransactionFilters(duration_ms=49_999), ["empty", "old", "ended"]),
        (TransactionFilters(duration_ms=50_000), ["empty", "ended"]),
        (TransactionFilters(matches=lambda name: "e" in name), ["empty", "new", "ended"]),
        (TransactionFilters({ONGOING}, {3, 4}, -1, str.islower), ["new"]),
        (TransactionFilters({ONGOING}, {4}), []),
    ],
)
def test_only_transactions_that_pass_all_filters_are_listed(
    filters: TransactionFilters, names: list[str]
) -> None:
    response = World(*STORED).ask(list_transactions)
    assert response == STORED
    assert [one.transactional_id for one in STORED if filters.take(one, NOW_MS)] == names


def test_a_row_has_the_producer_id_and_the_state() -> None:
    expected = ListTransactionsResponse.TransactionState(
        transactional_id="ended", producer_id=4, transaction_state="CompleteCommit"
    )
    assert listed(STORED[3]) == expected
