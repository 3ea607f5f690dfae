"""The throttle of a reassignment: a limit in bytes per second for its copies (KIP-73).

It has two parts. The rates are settings of each broker that replicas are copied from or to, and
must be set at that broker. Topic settings list the throttled replicas: the current replicas of a
partition as leaders, and the added ones as followers. Without these lists a rate throttles nothing,
so removing them removes the throttle.

As with Kafka's `kafka-reassign-partitions`, removing a throttle removes the rates of all brokers,
because it is not known which of them were set for which move. Rates that are the default of all
brokers stay.
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
    """A partition, its current brokers, and the brokers that it is copied to."""

    at: PartitionOf
    sources: Collection[int]
    destinations: Collection[int]


def sources(ongoing: wire.Ongoing) -> Sequence[int]:
    """Return the replicas of a partition before its reassignment started."""
    return without(ongoing.replicas, ongoing.adding_replicas)


def copied(moves: Iterable[Move], ongoing: Mapping[PartitionOf, wire.Ongoing]) -> list[Copied]:
    """Return the copies in progress once ``moves`` have started, in the order of partitions.

    Args:
        ongoing: Reassignments in progress; those of other partitions continue. A replica that is
            being added is not a source.
    """
    found = {at: Copied(at, sources(one), one.adding_replicas) for at, one in ongoing.items()}
    for at, now, then in moves:
        origin = found[at].sources if at in found else now
        found[at] = Copied(at, origin, without(then, origin))
    return [one for _, one in sorted(found.items())]


def throttle(cluster: wire.Cluster, copies: Sequence[Copied], bytes_per_second: int) -> None:
    """Throttle ``copies``; replaces the throttle of their topics.

    Args:
        copies: All copies of each topic that must be throttled.
        bytes_per_second: The limit of each broker, 0 to `RATE_MAX`, separately as leader and as
            follower.

    Raises:
        CliError: A broker that gets a replica is not alive, or a setting is refused; other settings
            may have been set.
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
    """Remove the throttle of those of ``topics`` that have one; see `remove`.

    Without such topics no other broker is asked, because one that hangs would delay this.

    Raises:
        CliError: See `remove`.
    """
    if found := _throttled(cluster, topics):
        remove(cluster, found)


def remove(cluster: wire.Cluster, topics: Iterable[str]) -> None:
    """Remove the throttle of ``topics``, and the rates of all brokers.

    A broker that is not alive keeps its rate, which throttles nothing.

    Raises:
        CliError: A setting could not be removed; all others are.
    """
    no_lists = dict.fromkeys((LEADERS, FOLLOWERS))
    failed = _alter_topics(cluster, dict.fromkeys(topics, no_lists))
    failed += _alter_nodes(cluster, cluster.nodes, dict.fromkeys(RATES))
    wire.check_all(failed, _CANNOT_LIFT)


def _throttled(cluster: wire.Cluster, topics: Iterable[str]) -> list[str]:
    """Return those of ``topics`` that list throttled replicas."""
    settings = cluster.topic_settings(sorted(set(topics)), [LEADERS, FOLLOWERS])
    return [topic for topic, found in settings.items() if any(found.values())]


def _lists(copies: Iterable[Copied]) -> dict[str, str]:
    """Return the setting values for the replicas of one topic: ``PARTITION:BROKER,…``."""
    leaders, followers = [], []
    for (_, partition), sources, destinations in copies:
        leaders += [f"{partition}:{node}" for node in sources]
        followers += [f"{partition}:{node}" for node in destinations]
    return {LEADERS: ",".join(leaders), FOLLOWERS: ",".join(followers)}


_Settings = Mapping[str, str] | Mapping[str, None]
"""None deletes a setting."""


def _alter_topics(cluster: wire.Cluster, settings: Mapping[str, _Settings]) -> list[str]:
    """Alter settings of topics, and return the failures. A deleted topic has nothing to remove."""
    resources = [_resource(RESOURCE_TOPIC, topic, own) for topic, own in settings.items()]
    return _alter(cluster.any(), resources)


def _alter_nodes(cluster: wire.Cluster, nodes: Iterable[int], settings: _Settings) -> list[str]:
    """Alter settings of the live brokers among ``nodes``, and return the failures.

    It uses new connections: a broker closes idle ones while a move is awaited, or may have
    restarted.
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
    response = connection.ask_newest(
        ALTER_CONFIGS, ALTER_CONFIGS_VERSION, request, IncrementalAlterConfigsResponse
    )
    names = {RESOURCE_TOPIC: "topic", RESOURCE_BROKER: "broker"}
    return [
        f"{names[one.resource_type]} {one.resource_name}: {one.error_message or error_of(one.error_code).text}"
        for one in response.responses
        if one.error_code not in (0, UnknownTopicOrPartitionError.code)
    ]
