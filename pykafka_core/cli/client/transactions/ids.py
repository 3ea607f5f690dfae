"""Transactional ids, from the lists and descriptions of their coordinators."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pykafka_core.cli.client.wire import Cluster, check
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.errors import TransactionalIdNotFoundError
from pykafka_core.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC

FIND_COORDINATOR, FIND_COORDINATOR_VERSION, TRANSACTION = 10, 4, 1
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66


class Listed(NamedTuple):
    """A row of the list of transactional ids."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


class Described(NamedTuple):
    """A transactional id. ``open_ms``: how long its transaction has been open; None without one."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    open_ms: int | None
    coordinator: int
    partitions: Sequence[str]


def listed(
    found: Cluster, *, states: Sequence[str] = (), producer_ids: Sequence[int] = ()
) -> Iterator[Listed]:
    """List the transactional ids of each broker, by state and producer.

    Ids whose coordinator is not loaded or has no leader are missing: see `check_all_respond`.

    Raises:
        CliError: A coordinator cannot list them, for example while it loads; or there is no such
            state.
    """
    for node_id in found.nodes:
        response = found.node(node_id).ask_newest(
            LIST_TRANSACTIONS,
            0,
            ListTransactionsRequest(
                state_filters=list(states), producer_id_filters=list(producer_ids)
            ),
            ListTransactionsResponse,
        )
        check(response.error_code, f"broker {node_id} cannot list transactions")
        if response.unknown_state_filters:
            unknown = ", ".join(response.unknown_state_filters)
            raise CliError(f"no transaction has state {unknown}", exit_code=USAGE)
        for row in response.transaction_states:
            yield Listed(
                row.transactional_id, row.transaction_state, row.producer_id, coordinator=node_id
            )


def described(found: Cluster, transactional_id: str) -> Described:
    """Ask the coordinator of a transactional id for its producer and transaction.

    Raises:
        CliError: There is no such id, or its coordinator does not answer.
    """
    what = f"cannot describe {transactional_id!r}"
    if not found.has(TRANSACTION_TOPIC):  # looking up a coordinator would create the topic
        check(TransactionalIdNotFoundError.code, what)
    coordinator = found.any().ask_newest(
        FIND_COORDINATOR,
        FIND_COORDINATOR_VERSION,
        FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]),
        FindCoordinatorResponse,
    )
    (place,) = coordinator.coordinators
    check(place.error_code, f"cannot find the coordinator of {transactional_id!r}")
    response = found.node(place.node_id).ask_newest(
        DESCRIBE_TRANSACTIONS,
        0,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
    )
    (row,) = response.transaction_states
    check(row.error_code, what)
    is_open = row.transaction_start_time_ms >= 0 and bool(row.topics)
    open_ms = max(int(time.time() * 1000) - row.transaction_start_time_ms, 0)
    return Described(
        transactional_id=transactional_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        timeout_ms=row.transaction_timeout_ms,
        open_ms=open_ms if is_open else None,
        coordinator=place.node_id,
        partitions=[
            f"{topic.topic}:{partition}" for topic in row.topics for partition in topic.partitions
        ],
    )
