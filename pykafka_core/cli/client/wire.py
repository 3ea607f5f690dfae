"""Requests that no client library supports, and the brokers that a command sends them to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from pykafka_core import protocol
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import KafkaError, error_of
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
)
from pykafka_core.types import RESOURCE_TOPIC

from .clients import TIMEOUT_S, addresses, unreachable

T = TypeVar("T", bound=Message)

METADATA, METADATA_VERSION = 3, 12
DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION = 32, 4
LIST_REASSIGNMENTS, LIST_REASSIGNMENTS_VERSION = 46, 0
CONTROLLER_TIMEOUT_MS = 15_000
"""Timeout in a broker for requests to the controller."""
Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment
API_VERSIONS, API_VERSIONS_VERSION = 18, 4
"""Version 4 lists all features (KAFKA-17011)."""
NO_LEADER = -1
CLIENT_ID = "pykafka-core-cli"
_WHO_ASKS = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")


class Node(NamedTuple):
    """A broker of the cluster."""

    node_id: int
    host: str
    port: int


class Connection(protocol.Connection):
    """A connection whose errors are those of commands."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port}", timeout_s=TIMEOUT_S, client_id=CLIENT_ID)

    def ask_newest(self, api_key: int, version_max: int, request: Message, response: type[T]) -> T:
        """Send a request in the newest version that the broker has, and wait for its response.

        Raises:
            CliError: The broker lacks the API, or does not describe its APIs.
            ProtocolError: The broker's version cannot carry the request.
            OSError: The broker does not answer.
        """
        try:
            return super().ask_newest(api_key, version_max, request, response)
        except KafkaError as error:
            raise CliError(str(error)) from error

    def describe_features(self) -> ApiVersionsResponse:
        """Ask for features; brokers before Kafka 3.9 omit features that have a level 0.

        Raises:
            CliError: The broker refuses.
            OSError: The broker does not answer.
        """
        response = self.ask_newest(
            API_VERSIONS, API_VERSIONS_VERSION, _WHO_ASKS, ApiVersionsResponse
        )
        check(response.error_code, "the broker does not describe its features")
        return response


class Cluster:
    """The brokers of a cluster, and a connection to each broker that was used."""

    def __init__(self, first: Connection, metadata: MetadataResponse) -> None:
        self._first = first
        self.metadata = metadata
        """The metadata of all topics when the cluster was found."""
        self._connections: dict[int, Connection] = {}
        self.nodes: Mapping[int, Node] = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port)
            for broker in metadata.brokers
        }
        self._leaders = {
            (topic.name or "", partition.partition_index): partition.leader_id
            for topic in metadata.topics
            for partition in topic.partitions
        }
        self._replicas = {
            (topic.name or "", partition.partition_index): tuple(partition.replica_nodes)
            for topic in metadata.topics
            for partition in topic.partitions
        }

    def replicas(self, topics: Sequence[str] | None) -> dict[tuple[str, int], tuple[int, ...]]:
        """Return the replicas of these topics, or of all, when the cluster was found.

        The preferred leader is first.

        Raises:
            CliError: There is no such topic.
        """
        known = {topic for topic, _ in self._replicas}
        if unknown := [topic for topic in topics or () if topic not in known]:
            raise CliError(f"there is no topic {unknown[0]}", "see `pykafka-core topics list`")
        return {
            at: replicas
            for at, replicas in sorted(self._replicas.items())
            if topics is None or at[0] in topics
        }

    def partitions(self, topics: Sequence[str] | None) -> dict[str, list[int]]:
        """Return the partitions of these topics, or of all, by topic.

        Raises:
            CliError: There is no such topic.
        """
        found: dict[str, list[int]] = {}
        for topic, index in self.replicas(topics):
            found.setdefault(topic, []).append(index)
        return found

    def has(self, topic: str) -> bool:
        """Return whether the topic existed when the cluster was found."""
        return any(name == topic for name, _ in self._replicas)

    def any(self) -> Connection:
        """Return the connection to the broker that was found first."""
        return self._first

    def node(self, node_id: int) -> Connection:
        """Return a connection to a broker.

        Raises:
            CliError: There is no such broker, for example because a partition has no leader.
        """
        found = self.nodes.get(node_id)
        if found is None:
            raise CliError("there is no leader now", "try again when its broker has started")
        if node_id not in self._connections:
            self._connections[node_id] = Connection(found.host, found.port)
        return self._connections[node_id]

    def leader(self, topic: str, partition: int) -> Connection:
        """Return a connection to the leader of a partition.

        Raises:
            CliError: There is no such partition, or it has no leader.
        """
        return self.node(self.leader_id(topic, partition))

    def leader_id(self, topic: str, partition: int) -> int:
        """Return the node id of a partition's leader, or `NO_LEADER`.

        Raises:
            CliError: There is no such partition.
        """
        node_id = self._leaders.get((topic, partition))
        if node_id is None:
            raise CliError(f"there is no partition {topic}:{partition}", "see `topics list`")
        return node_id

    def topic_settings(
        self, topics: Iterable[str], names: Sequence[str]
    ) -> dict[str, dict[str, str | None]]:
        """Return settings of topics, by topic and name; a missing topic has none.

        Raises:
            OSError: The broker does not answer.
        """
        of = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[
                of(resource_type=RESOURCE_TOPIC, resource_name=topic, configuration_keys=[*names])
                for topic in topics
            ]
        )
        if not request.resources:
            return {}
        response = self._first.ask_newest(
            DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION, request, DescribeConfigsResponse
        )
        return {
            one.resource_name: {setting.name: setting.value for setting in one.configs}
            for one in response.results
        }

    def reassignments(self) -> dict[tuple[str, int], Ongoing]:
        """Return the reassignments in progress, by topic and partition.

        Raises:
            CliError: The broker refuses.
            OSError: The broker does not answer.
        """
        request = ListPartitionReassignmentsRequest(timeout_ms=CONTROLLER_TIMEOUT_MS, topics=None)
        response = self._first.ask_newest(
            LIST_REASSIGNMENTS,
            LIST_REASSIGNMENTS_VERSION,
            request,
            ListPartitionReassignmentsResponse,
        )
        check(response.error_code, "reassignments cannot be listed")
        return {
            (topic.name, one.partition_index): one
            for topic in response.topics
            for one in topic.partitions
        }

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._first, *self._connections.values()):
            connection.close()


@contextmanager
def cluster(bootstrap: str | None, what: str) -> Iterator[Cluster]:
    """Yield a reachable cluster.

    Errors inside the block become a `CliError` that begins with ``what``.

    Raises:
        CliError: No broker answers.
    """
    first = _connect(bootstrap)
    try:
        request = MetadataRequest(topics=None)
        with _errors(what):
            metadata = first.ask_newest(METADATA, METADATA_VERSION, request, MetadataResponse)
        found = Cluster(first, metadata)
    except BaseException:
        first.close()
        raise
    try:
        with _errors(what):
            yield found
    finally:
        found.close()


@contextmanager
def _errors(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ProtocolError) as error:
        raise CliError(f"{what}: {error}") from error


def _connect(bootstrap: str | None) -> Connection:
    failure: Exception = OSError("no address is given")
    for host, port in addresses(bootstrap):
        try:
            return Connection(host, port)
        except (OSError, OverflowError) as error:
            failure = error
    raise unreachable(bootstrap, failure)


def check_all(failed: Sequence[str], what: str) -> None:
    """Raise all failures, one per line.

    Raises:
        CliError: ``failed`` is not empty; begins with ``what``.
    """
    if failed:
        raise CliError("\n  ".join([f"{what}:", *failed]))


def check(code: int, what: str) -> None:
    """Raise the error of a code.

    Raises:
        CliError: It is not 0; begins with ``what``.
    """
    if code:
        error = error_of(code)
        raise CliError(f"{what}: {error.name}: {error.text}")
