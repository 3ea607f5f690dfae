"""``transactions``: list and describe transactional ids, abort a transaction that hangs."""

import time
from collections.abc import Iterator
from typing import Annotated

import typer

from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.options import Bootstrap, Json, not_empty
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.errors import TransactionalIdNotFoundError
from pykafka_core.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC

from .wire import Cluster, check, cluster

FIND_COORDINATOR, FIND_COORDINATOR_VERSION, TRANSACTION = 10, 4, 1
WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 27, 61, 65, 66

app = typer.Typer(
    help="List and describe transactional ids, and abort a transaction that hangs.",
    no_args_is_help=True,
)

TransactionalIds = Annotated[
    list[str], typer.Argument(parser=not_empty, metavar="IDS...", help="Transactional ids.")
]


@app.command("list")
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="Only these: Ongoing, PrepareCommit, CompleteCommit..."),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """List transactional ids with their producers and states."""
    with cluster(bootstrap, "cannot list transactions") as found:
        rows = sorted(_listed(found, state or []), key=lambda row: str(row["transactional_id"]))
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no transactions")


@app.command()
def describe(
    transactional_ids: TransactionalIds, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Show each id's producer, its state, how long its transaction is open, and where it has written."""
    with cluster(bootstrap, "cannot describe transactions") as found:
        rows = [_described(found, name) for name in transactional_ids]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no transactions")


@app.command()
def abort(
    partition: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", parser=not_empty)],
    producer_id: Annotated[
        int | None,
        typer.Option(min=0, help="Whose transaction; needed if there is more than one."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Abort without asking.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Abort the transaction that is open in a partition, so that readers of what is committed get on.

    For transactions that hang: one whose producer lives is its coordinator's to end, by its timeout.
    """
    topic, _, number = partition.rpartition(":")
    if not topic or not number.isdigit():
        raise CliError(f"{partition!r} is not TOPIC:PARTITION", exit_code=USAGE)
    with cluster(bootstrap, f"cannot abort in {partition}") as found:
        state = _open_transaction(found, topic, int(number), producer_id)
        if not yes:
            typer.confirm(
                f"Abort the transaction of producer {state.producer_id} in {partition}, "
                f"open since offset {state.current_txn_start_offset}?",
                abort=True,
            )
        _abort(found, topic, int(number), state)
    print(f"aborted the transaction of producer {state.producer_id} in {partition}")


def _listed(found: Cluster, states: list[str]) -> Iterator[dict[str, object]]:
    for node_id in found.nodes:
        answer = found.node(node_id).ask(
            LIST_TRANSACTIONS,
            0,
            ListTransactionsRequest(state_filters=states),
            ListTransactionsResponse,
        )
        check(answer.error_code, f"broker {node_id} cannot list transactions")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise CliError(f"no transaction has state {unknown}", exit_code=USAGE)
        for row in answer.transaction_states:
            yield {
                "transactional_id": row.transactional_id,
                "state": row.transaction_state,
                "producer_id": row.producer_id,
                "coordinator": node_id,
            }


def _described(found: Cluster, transactional_id: str) -> dict[str, object]:
    what = f"cannot describe {transactional_id!r}"
    if not found.has(TRANSACTION_TOPIC):  # to ask for a coordinator would create it
        check(TransactionalIdNotFoundError.code, what)
    coordinator = found.any().ask(
        FIND_COORDINATOR,
        FIND_COORDINATOR_VERSION,
        FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]),
        FindCoordinatorResponse,
    )
    (place,) = coordinator.coordinators
    check(place.error_code, f"cannot find the coordinator of {transactional_id!r}")
    answer = found.node(place.node_id).ask(
        DESCRIBE_TRANSACTIONS,
        0,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
    )
    (row,) = answer.transaction_states
    check(row.error_code, what)
    is_open = row.transaction_start_time_ms >= 0 and bool(row.topics)
    open_ms = max(int(time.time() * 1000) - row.transaction_start_time_ms, 0)
    return {
        "transactional_id": transactional_id,
        "state": row.transaction_state,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "timeout_ms": row.transaction_timeout_ms,
        "open_ms": open_ms if is_open else None,
        "coordinator": place.node_id,
        "partitions": [
            f"{topic.topic}:{partition}" for topic in row.topics for partition in topic.partitions
        ],
    }


def _open_transaction(
    found: Cluster, topic: str, partition: int, producer_id: int | None
) -> DescribeProducersResponse.ProducerState:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[partition])
    answer = found.leader(topic, partition).ask(
        DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[asked]), DescribeProducersResponse
    )
    row = answer.topics[0].partitions[0]
    check(row.error_code, f"cannot see who writes to {topic}:{partition}")
    open_ones = [
        state
        for state in row.active_producers
        if state.current_txn_start_offset >= 0 and producer_id in (None, state.producer_id)
    ]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise CliError(f"no transaction is open in {topic}:{partition}")
    ids = ", ".join(str(state.producer_id) for state in open_ones)
    raise CliError(
        f"producers {ids} have transactions open in {topic}:{partition}",
        "say whose with --producer-id",
        exit_code=USAGE,
    )


def _abort(
    found: Cluster, topic: str, partition: int, state: DescribeProducersResponse.ProducerState
) -> None:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator_epoch=max(state.coordinator_epoch, 0),
        transaction_result=False,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
        ],
    )
    answer = found.leader(topic, partition).ask(
        WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse
    )
    check(answer.markers[0].topics[0].partitions[0].error_code, f"cannot abort in {topic}")
