"""DescribeQuorum requests to any broker; also determines whether a leader is known."""

from typing import NamedTuple

from pykafka_core.cli.client import wire
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import BrokerNotAvailableError, RequestTimedOutError, error_of
from pykafka_core.metadata.health import Health, State, name_of_node
from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from pykafka_core.types import METADATA_TOPIC

DESCRIBE_QUORUM, VERSION = 55, 2
"""Kafka supports version 1 since 3.3 and 2 since 3.9.

Version 1 is enough for leader, epoch and offsets.
"""
NOBODY = -1
SILENT_MS_MAX = 5000
"""Limit for a live voter.

A voter fetches every half second, and a leader resigns sooner if a majority does not fetch.
"""

Partition = DescribeQuorumResponse.PartitionData


class Described(NamedTuple):
    """The response of a broker.

    Attributes:
        partition: The metadata log from its leader; None if there is no leader, or no controller
            answered.
        error_code: The reason if there is no partition; otherwise 0.
        nodes: The addresses of voters as controllers; empty for brokers before Kafka 3.9.
    """

    partition: Partition | None
    error_code: int
    nodes: tuple[DescribeQuorumResponse.Node, ...] = ()

    @property
    def problem(self) -> str:
        """Return a sentence for users; empty if a controller leads."""
        if not self.error_code:
            return ""
        name = error_of(self.error_code).name
        return f"no controller answers ({name}): topics cannot be created or changed"


NO_RESPONSE = Described(None, RequestTimedOutError.code)
"""A broker without a controller holds the request for longer than a command waits."""


def ask_quorum(cluster: wire.Cluster, health: Health) -> Described:
    """Ask a broker that has a controller.

    The connection cannot be used for other requests afterwards.

    Args:
        cluster: The brokers of the cluster.
        health: The health of these brokers.
    """
    without = health[State.NO_CONTROLLER]
    for node_id in sorted(cluster.nodes):
        if name_of_node(node_id) in without:
            continue
        try:
            return describe_quorum(cluster.node(node_id))
        except TimeoutError:
            return NO_RESPONSE
        except (CliError, OSError):  # it has stopped since
            continue
    return NO_RESPONSE


def describe_quorum(broker: wire.Connection) -> Described:
    """Ask one broker.

    Raises:
        CliError: The broker refuses the request.
        OSError: The broker does not answer.
    """
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    return described(broker.ask_newest(DESCRIBE_QUORUM, VERSION, request, DescribeQuorumResponse))


def described(response: DescribeQuorumResponse) -> Described:
    """Return the contents of a response.

    An unknown leader is an error, even if the response has none.
    """
    found = response.topics[0].partitions[0] if response.topics else None
    code = response.error_code or (found.error_code if found is not None else 0)
    if not code and (found is None or found.leader_id == NOBODY):
        code = BrokerNotAvailableError.code
    return Described(None if code else found, code, tuple(response.nodes))
