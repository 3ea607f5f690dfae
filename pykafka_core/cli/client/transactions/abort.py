"""``transactions abort``: ends the open transaction of a partition.

The coordinators are asked first. If one of them has the transaction open, that coordinator ends it
in all its partitions: it fences the producer, whose commit then fails. A marker that the command
wrote into one partition would abort a part of the transaction, and the producer's commit would
succeed. So only a transaction without a coordinator, which hangs, gets a marker from this command,
and nothing is aborted while a coordinator does not answer.

After the user agrees, everything is checked again: the transaction may have ended since it was
shown, and its producer may have started the next one. The second check also shows that it was open
while the coordinators were asked: one that ended just then would look like one that hangs.
"""

import time
from typing import Annotated, NamedTuple

import typer

from pykafka_core.cli.client.clients import TIMEOUT_S
from pykafka_core.cli.client.coordinators import TRANSACTIONS, check_all_respond
from pykafka_core.cli.client.wire import Cluster, check, cluster
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.options import Bootstrap, Json, Yes, not_empty
from pykafka_core.cli.output import agree, print_json, print_table
from pykafka_core.errors import ConcurrentTransactionsError, ProducerFencedError
from pykafka_core.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from .ids import Described, described, listed

INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION = 22, 4
WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS = 27, 61
_ONGOING = "Ongoing"
_RETRY_S = 0.1


class Open(NamedTuple):
    """An open transaction in a partition.

    Attributes:
        start_offset: Offset of its first record in the partition.
        owner: Its transactional id; None if it hangs: each coordinator answered, and none has it.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    owner: Described | None

    def is_same(self, other: "Open") -> bool:
        """Return whether it is the same transaction, and ends in the same way."""
        return self._key == other._key

    @property
    def _key(self) -> tuple[object, ...]:
        owner = None if self.owner is None else self.owner.transactional_id
        return self.producer_id, self.producer_epoch, self.start_offset, owner


def abort(
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", parser=not_empty, help="The partition.")
    ],
    producer_id: Annotated[
        int | None,
        typer.Option(min=0, help="Producer of the transaction; required if several are open."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the transaction, but do not abort it.")
    ] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Abort the open transaction of a partition, so that read_committed consumers can continue.

    Use it for hanging transactions. If a coordinator still has the transaction open, its producer
    is fenced, and it is aborted in all its partitions. The transaction is shown first.
    """
    topic, _, number = partition.rpartition(":")
    if not topic or not number.isdigit():
        raise CliError(f"{partition!r} is not TOPIC:PARTITION", exit_code=USAGE)
    what = f"cannot abort in {partition}"
    with cluster(bootstrap, what) as found:
        one = _open_transaction(found, topic, int(number), producer_id)
    _show(one, as_json=as_json)
    if dry_run:
        return
    if not yes:
        agree("Abort it?", refused="nothing was aborted", option="--yes aborts without asking")
    with cluster(bootstrap, what) as found:
        now = _open_transaction(found, topic, int(number), one.producer_id)
        if not now.is_same(one):
            raise CliError(
                f"{what}: the transaction has changed since it was shown", "run it again"
            )
        _end(found, now)
    if not as_json:
        print(f"aborted the transaction of producer {one.producer_id} in {partition}")


def _open_transaction(found: Cluster, topic: str, partition: int, producer_id: int | None) -> Open:
    state = _open_in_partition(found, topic, partition, producer_id)
    owner = _owner(found, f"{topic}:{partition}", state.producer_id)
    if owner is not None and owner.state != _ONGOING:
        raise CliError(
            f"broker {owner.coordinator} is ending the transaction of {owner.transactional_id!r}: "
            f"{owner.state}",
            "it ends when the leaders of all its partitions have written its markers",
        )
    return Open(
        topic=topic,
        partition=partition,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator_epoch=max(state.coordinator_epoch, 0),
        start_offset=state.current_txn_start_offset,
        owner=owner,
    )


def _owner(found: Cluster, partition: str, producer_id: int) -> Described | None:
    """Return the transactional id of this producer's open transaction in the partition.

    Raises:
        CliError: No coordinator has it, and one of them does not answer.
    """
    for one in listed(found, producer_ids=[producer_id]):
        of_coordinator = described(found, one.transactional_id)
        if partition in of_coordinator.partitions:
            return of_coordinator
    check_all_respond(
        found, TRANSACTIONS, f"cannot check whether the transaction in {partition} hangs"
    )
    return None


def _show(one: Open, *, as_json: bool) -> None:
    owner, at = one.owner, f"{one.topic}:{one.partition}"
    row = {
        "producer_id": one.producer_id,
        "start_offset": one.start_offset,
        "partitions": [at] if owner is None else list(owner.partitions),
        "hangs": owner is None,
        "transactional_id": None if owner is None else owner.transactional_id,
        "coordinator": None if owner is None else owner.coordinator,
        "open_ms": None if owner is None else owner.open_ms,
        "timeout_ms": None if owner is None else owner.timeout_ms,
    }
    if as_json:
        print_json(row)
        return
    print_table([row], title=f"transaction in {at}", empty="")
    if owner is None:
        print("It hangs: no coordinator has it open. It would be aborted in this partition only.")
    else:
        print(
            "It does not hang. Its producer would be fenced, and it would be aborted in all these partitions."
        )


def _end(found: Cluster, one: Open) -> None:
    if one.owner is None:
        _write_marker(found, one)
    else:
        _fence(found, one.owner)


def _fence(found: Cluster, owner: Described) -> None:
    """Start the next epoch of the producer, so that its coordinator aborts the transaction.

    The request has producer id and epoch (KIP-360), so that a producer that has started since is
    not fenced.
    """
    request = InitProducerIdRequest(
        transactional_id=owner.transactional_id,
        transaction_timeout_ms=owner.timeout_ms,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
    )
    deadline = time.monotonic() + TIMEOUT_S
    aborting = False
    while True:
        response = found.node(owner.coordinator).ask_newest(
            INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION, request, InitProducerIdResponse
        )
        if aborting and response.error_code == ProducerFencedError.code:
            return  # its epoch has ended
        if response.error_code != ConcurrentTransactionsError.code or time.monotonic() > deadline:
            check(response.error_code, f"cannot fence the producer of {owner.transactional_id!r}")
            if not aborting:
                raise CliError(f"the transaction of {owner.transactional_id!r} has ended already")
            return
        aborting = True
        time.sleep(_RETRY_S)  # the coordinator writes markers


def _open_in_partition(
    found: Cluster, topic: str, partition: int, producer_id: int | None
) -> DescribeProducersResponse.ProducerState:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[partition])
    response = found.leader(topic, partition).ask_newest(
        DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[asked]), DescribeProducersResponse
    )
    row = response.topics[0].partitions[0]
    check(row.error_code, f"cannot describe the producers of {topic}:{partition}")
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
        "choose one with --producer-id",
        exit_code=USAGE,
    )


def _write_marker(found: Cluster, one: Open) -> None:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        coordinator_epoch=one.coordinator_epoch,
        transaction_result=False,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                name=one.topic, partition_indexes=[one.partition]
            )
        ],
    )
    response = found.leader(one.topic, one.partition).ask_newest(
        WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse
    )
    check(response.markers[0].topics[0].partitions[0].error_code, f"cannot abort in {one.topic}")
