"""The throttle of a reassignment: what is copied for it takes no more than so many bytes a second. KIP-73.

It has two parts. Rates are settings of each broker that replicas are copied from or to, and only that broker itself
takes them. Which replicas a rate is for, topics say: where a partition is, as leaders, and where it goes, as
followers. A rate throttles nothing without these lists, so a throttle is gone once they are.

As with Kafka's `kafka-reassign-partitions`, whoever removes a throttle removes the rates of all brokers: nothing tells
which of them were set for which move. Rates that are the default of all brokers are not touched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pykafka_core.cli.errors import CliError
from pykafka_core.errors import UnknownTopicOrPartitionError, error_of
from pykafka_core.metadata.reassignments import without
from pykafka_core.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

from . import wire
from .reassignment import Move, PartitionOf

ALTER_CONFIGS, ALTER_CONFIGS_VERSION = 44, 1
SET, DELETE = 0, 1
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
RATE_MAX = 2**63 - 1
_CANNOT = "cannot throttle"
_CANNOT_LIFT = "the throttle is not removed everywhere"

_Request = IncrementalAlterConfigsRequest


class Copied(NamedTuple):
    """A partition, the brokers that have it, and those that it is copied to."""

    at: PartitionOf
    sources: Collection[int]
    destinations: Collection[int]


def sources(ongoing: wire.Ongoing) -> Sequence[int]:
    """Where a partition was before it began to be moved."""
    return without(ongoing.replicas, ongoing.adding_replicas)


def copied(moves: Iterable[Move], ongoing: Mapping[PartitionOf, wire.Ongoing]) -> list[Copied]:
    """What is copied once ``moves`` begin, in the order of partitions.

    Args:
        ongoing: Reassignments in progress; those of other partitions go on. A replica that is being added is no source.
    """
    found = {at: Copied(at, sources(one), one.adding_replicas) for at, one in ongoing.items()}
    for at, now, then in moves:
        origin = found[at].sources if at in found else now
        found[at] = Copied(at, origin, without(then, origin))
    return [one for _, one in sorted(found.items())]


def throttle(cluster: wire.Cluster, copies: Sequence[Copied], bytes_per_second: int) -> None:
    """Throttle ``copies``; replaces the throttle that their topics have.

    Args:
        copies: All of each topic that are to be throttled.
        bytes_per_second: Of each broker, from 0 to `RATE_MAX`, once as leader and once as follower.

    Raises:
        CliError: A broker that gets a replica is not there, or a setting is refused; some may be set then.
    """
    destinations = {node for one in copies for node in one.destinations}
    if gone := destinations - set(cluster.nodes):
        raise CliError(f"{_CANNOT}: there is no broker {min(gone)} now", "see `cluster status`")
    lists = {
        topic: _lists([one for one in copies if one.at.topic == topic])
        for topic in sorted({one.at.topic for one in copies})
    }
    wire.check_all(_alter_topics(cluster, lists), _CANNOT)
    nodes = destinations.union(*(one.sources for one in copies))
    rates = dict.fromkeys(RATES, str(bytes_per_second))
    wire.check_all(_alter_nodes(cluster, nodes, rates), _CANNOT)


def lift(cluster: wire.Cluster, topics: Iterable[str]) -> None:
    """Remove the throttle of those of ``topics`` that have one, as `remove` does.

    Brokers are not asked otherwise, as one that hangs holds this up.

    Raises:
        CliError: As `remove`.
    """
    if found := _throttled(cluster, topics):
        remove(cluster, found)


def remove(cluster: wire.Cluster, topics: Iterable[str]) -> None:
    """Remove the throttle of ``topics``, and the rates of all brokers.

    A broker that is not there keeps its rate, which throttles nothing.

    Raises:
        CliError: A setting is not removed; all others are.
    """
    no_lists = dict.fromkeys((LEADERS, FOLLOWERS))
    failed = _alter_topics(cluster, dict.fromkeys(topics, no_lists))
    failed += _alter_nodes(cluster, cluster.nodes, dict.fromkeys(RATES))
    wire.check_all(failed, _CANNOT_LIFT)


def _throttled(cluster: wire.Cluster, topics: Iterable[str]) -> list[str]:
    """Those of ``topics`` that say which replicas are throttled."""
    settings = cluster.topic_settings(sorted(set(topics)), [LEADERS, FOLLOWERS])
    return [topic for topic, found in settings.items() if any(found.values())]


def _lists(copies: Iterable[Copied]) -> dict[str, str]:
    """Replicas of one topic as its settings have them: ``PARTITION:BROKER,…``."""
    leaders, followers = [], []
    for (_, partition), sources, destinations in copies:
        leaders += [f"{partition}:{node}" for node in sources]
        followers += [f"{partition}:{node}" for node in destinations]
    return {LEADERS: ",".join(leaders), FOLLOWERS: ",".join(followers)}


_Settings = Mapping[str, str] | Mapping[str, None]
"""None deletes a setting."""


def _alter_topics(cluster: wire.Cluster, settings: Mapping[str, _Settings]) -> list[str]:
    """Alter settings of topics, and say what failed. A topic that is gone has nothing to remove."""
    resources = [_resource(RESOURCE_TOPIC, topic, own) for topic, own in settings.items()]
    return _alter(cluster.any(), resources)


def _alter_nodes(cluster: wire.Cluster, nodes: Iterable[int], settings: _Settings) -> list[str]:
    """Alter settings of those of ``nodes`` that are there, and say what failed.

    Over new connections: a broker closes those that are not used while a move is waited for, or has restarted.
    """
    failed = []
    for node in sorted(set(nodes) & set(cluster.nodes)):
        resource = _resource(RESOURCE_BROKER, str(node), settings)
        found = cluster.nodes[node]
        try:
            with wire.Connection(found.host, found.port) as connection:
                failed += _alter(connection, [resource])
        except OSError as error:
            failed.append(f"broker {node}: {error}")
    return failed


def _resource(kind: int, name: str, settings: _Settings) -> _Request.AlterConfigsResource:
    return _Request.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            _Request.AlterableConfig(
                name=setting, config_operation=DELETE if value is None else SET, value=value
            )
            for setting, value in settings.items()
        ],
    )


def _alter(
    connection: wire.Connection, resources: Sequence[_Request.AlterConfigsResource]
) -> list[str]:
    request = _Request(resources=list(resources))
    answer = connection.ask(
        ALTER_CONFIGS, ALTER_CONFIGS_VERSION, request, IncrementalAlterConfigsResponse
    )
    names = {RESOURCE_TOPIC: "topic", RESOURCE_BROKER: "broker"}
    return [
        f"{names[one.resource_type]} {one.resource_name}: {one.error_message or error_of(one.error_code).text}"
        for one in answer.responses
        if one.error_code not in (0, UnknownTopicOrPartitionError.code)
    ]
