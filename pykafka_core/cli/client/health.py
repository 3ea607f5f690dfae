"""The health of a cluster, from the responses of its brokers; works with Apache Kafka too.

Metadata contains leaders and ISRs, DescribeLogDirs each node's logs and directories. Kafka only
reports failed directories, not single logs.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pykafka_core.cli.client import wire
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import KafkaStorageError, error_of
from pykafka_core.metadata.health import Health, State, health_of, judge_isr, name_of_node
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    MetadataResponse,
)

DESCRIBE_LOG_DIRS, DESCRIBE_LOG_DIRS_VERSION = 35, 3
_MIN_ISR = "min.insync.replicas"

_Found = Iterator[tuple[State, str]]
_Partition = MetadataResponse.MetadataResponsePartition


class Observed(NamedTuple):
    """The health of a cluster.

    Attributes:
        unknown: The parts without a response, one sentence each.
    """

    health: Health
    unknown: list[str]


def observe(cluster: wire.Cluster) -> Observed:
    """Ask one broker about partitions, and each live broker about its logs.

    Raises:
        OSError: The first broker does not answer.
    """
    unknown: list[str] = []
    found = [*_partitions(cluster, unknown)]
    for node_id in sorted(cluster.nodes):
        try:
            found += _logs(cluster.node(node_id), node_id)
        except (CliError, OSError, ProtocolError) as error:
            unknown.append(f"node {node_id} does not describe its logs: {error}")
    return Observed(health_of(found), unknown)


def _partitions(cluster: wire.Cluster, unknown: list[str]) -> _Found:
    partitions = {
        (topic.name or "", one.partition_index): one
        for topic in cluster.metadata.topics
        for one in topic.partitions
    }
    lacking = sorted({topic for (topic, _), one in partitions.items() if _lacks_replicas(one)})
    settings = cluster.topic_settings(lacking, [_MIN_ISR])
    moving = _reassignments(cluster, unknown) if lacking else {}
    for (topic, index), one in sorted(partitions.items()):
        name = f"{topic}-{index}"
        if one.leader_id == wire.NO_LEADER:
            yield State.OFFLINE, name
        elif _lacks_replicas(one):
            # A topic that was deleted since has no settings.
            min_isr = int(settings.get(topic, {}).get(_MIN_ISR) or 1)
            # A replica that a reassignment adds is not missing, as in Kafka's tools and metrics.
            moved = moving.get((topic, index))
            added = () if moved is None else moved.adding_replicas
            count = len(one.replica_nodes) - len(added)
            for state in judge_isr(len(one.isr_nodes), count, min_isr):
                yield state, name


def _reassignments(
    cluster: wire.Cluster, unknown: list[str]
) -> Mapping[tuple[str, int], wire.Ongoing]:
    """Return the reassignments in progress.

    Apache Kafka does not list them without a controller.
    """
    try:
        return cluster.reassignments()
    except (CliError, OSError, ProtocolError) as error:
        unknown.append(f"reassignments are unknown: {error}")
        return {}


def _lacks_replicas(partition: _Partition) -> bool:
    return len(partition.isr_nodes) < len(partition.replica_nodes)


def _logs(broker: wire.Connection, node_id: int) -> list[tuple[State, str]]:
    response = broker.ask_newest(
        DESCRIBE_LOG_DIRS,
        DESCRIBE_LOG_DIRS_VERSION,
        DescribeLogDirsRequest(topics=None),
        DescribeLogDirsResponse,
    )
    if response.error_code:
        raise CliError(error_of(response.error_code).name)
    return [found for one in response.results for found in _directory(one, name_of_node(node_id))]


def _directory(directory: DescribeLogDirsResponse.DescribeLogDirsResult, node: str) -> _Found:
    if directory.error_code == KafkaStorageError.code:
        yield State.FAILED_DIRECTORY, f"{directory.log_dir} of {node}"
    elif directory.error_code:
        raise CliError(f"{directory.log_dir}: {error_of(directory.error_code).name}")
    for state in _states(directory.state):
        yield state, node if state is State.NO_CONTROLLER else f"{directory.log_dir} of {node}"
    for topic in directory.topics:
        for one in topic.partitions:
            for state in _states(one.state):
                yield state, f"{topic.name}-{one.partition_index} of {node}"


def _states(names: str) -> Iterator[State]:
    for name in filter(None, names.split(",")):
        try:
            yield State(name)
        except ValueError:
            raise CliError(f"its state {name} is newer than this command") from None
