"""Administration of a cluster under load, by raw requests: replicas, leaders and brokers."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pykafka_core.protocol import messages as m
from tests.faults.cluster.clusters import Cluster, NotBackError
from tests.faults.cluster.views import partitions
from tests.faults.raw import NONE
from tests.support.patience import ATTEMPT_S, PATIENCE_S
from tests.support.wire import Connection

ELECT_LEADERS, ALTER_PARTITION_REASSIGNMENTS, UNREGISTER_BROKER = 43, 45, 64
BROKER_ID_NOT_REGISTERED = 102
PREFERRED = 0


def reassign(cluster: Cluster, replicas: Sequence[int]) -> None:
    """Move all partitions to these nodes, the first as preferred leader; return once it is decided.

    Raises:
        NotBackError: No node accepts the request within `PATIENCE_S`.
    """

    def taken(connection: Connection, address: str) -> int:
        names = (row.name for row in partitions(address, None))
        return _reassigned(connection, ((name, replicas) for name in names))

    _until_taken(cluster, taken)


def reassign_each(cluster: Cluster, wanted: Mapping[str, Sequence[int]]) -> None:
    """Move each partition, named by its directory, to its nodes; return once that is decided.

    Raises:
        NotBackError: As for `reassign`.
    """
    _until_taken(cluster, lambda connection, _: _reassigned(connection, wanted.items()))


def elect_preferred(cluster: Cluster) -> None:
    """Elect the preferred leader of each partition, if it is in sync.

    Raises:
        NotBackError: As for `reassign`.
    """
    _until_taken(cluster, _elected)


def unregister(cluster: Cluster, broker: int) -> None:
    """Unregister a broker that has stopped.

    Raises:
        NotBackError: As for `reassign`.
    """
    _until_taken(cluster, lambda connection, _: _unregistered(connection, broker))


def _until_taken(cluster: Cluster, ask: Callable[[Connection, str], int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    said: object = None
    while time.monotonic() < deadline:
        for node in cluster.up:
            address = cluster.address(node)
            try:
                with Connection(address, ATTEMPT_S) as connection:
                    said = ask(connection, address)
            except OSError as error:
                said = error
            if said == NONE:
                return
        time.sleep(0.1)
    raise NotBackError(f"no node takes what an administrator asks: {said!r}")


def _reassigned(connection: Connection, wanted: Iterable[tuple[str, Sequence[int]]]) -> int:
    of = m.AlterPartitionReassignmentsRequest
    rows: dict[str, list[Any]] = defaultdict(list)
    for name, replicas in wanted:
        topic, _, index = name.rpartition("-")
        rows[topic].append(
            of.ReassignablePartition(partition_index=int(index), replicas=list(replicas))
        )
    topics = [of.ReassignableTopic(name=name, partitions=found) for name, found in rows.items()]
    request = of(timeout_ms=int(1000 * ATTEMPT_S), topics=topics)
    response = connection.ask(ALTER_PARTITION_REASSIGNMENTS, 0, request)
    codes = {row.error_code for topic in response.responses for row in topic.partitions}
    return int(response.error_code or max(codes, key=abs, default=NONE))


def _elected(connection: Connection, _: str) -> int:
    """Ignore which partitions change: some have that leader already, or it is out of sync."""
    request = m.ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=None, timeout_ms=int(1000 * ATTEMPT_S)
    )
    return int(connection.ask(ELECT_LEADERS, 2, request).error_code)


def _unregistered(connection: Connection, broker: int) -> int:
    """Return the error code, NONE if an earlier attempt without a response has succeeded."""
    request = m.UnregisterBrokerRequest(broker_id=broker)
    code = int(connection.ask(UNREGISTER_BROKER, 0, request).error_code)
    return NONE if code == BROKER_ID_NOT_REGISTERED else code
