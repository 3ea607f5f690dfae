"""DescribeQuorum, asked of any broker: one place that says when nobody is known to lead."""

from typing import NamedTuple

from pykafka_core.cli.client import wire
from pykafka_core.cli.errors import CliError
from pykafka_core.errors import BrokerNotAvailableError, RequestTimedOutError, error_of
from pykafka_core.metadata.health import Health, State, name_of_node
from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from pykafka_core.types import METADATA_TOPIC

DESCRIBE_QUORUM, VERSION = 55, 2
"""Kafka has 1 since 3.3 and 2 since 3.9; the first is enough for leader, epoch and offsets."""
NOBODY = -1
SILENT_MS_MAX = 5000
"""Of a voter that is there: it fetches every half second, and its leader resigns sooner if a majority does not."""

Partition = DescribeQuorumResponse.PartitionData


class Described(NamedTuple):
    """What a broker said.

    Attributes:
        partition: The metadata log as its leader sees it; None if nobody leads, or no controller answered.
        error_code: Why there is none; 0 if there is one.
        nodes: Where voters are reached as controllers; brokers before Kafka 3.9 do not say it.
    """

    partition: Partition | None
    error_code: int
    nodes: tuple[DescribeQuorumResponse.Node, ...] = ()

    @property
    def problem(self) -> str:
        """A sentence for users; empty if a controller leads."""
        if not self.error_code:
            return ""
        name = error_of(self.error_code).name
        return f"no controller answers ({name}): topics cannot be created or changed"


NO_ANSWER = Described(None, RequestTimedOutError.code)
"""A broker without a controller keeps the question for longer than a command waits."""


def ask_quorum(cluster: wire.Cluster, health: Health) -> Described:
    """Ask a broker that has a controller. Nothing else can be asked on its connection afterwards.

    Args:
        cluster: Its brokers.
        health: As they described it.
    """
    without = health[State.NO_CONTROLLER]
    for node_id in sorted(cluster.nodes):
        if name_of_node(node_id) in without:
            continue
        try:
            return describe_quorum(cluster.node(node_id))
        except TimeoutError:
            return NO_ANSWER
        except (CliError, OSError):  # it is not alive any more
            continue
    return NO_ANSWER


def describe_quorum(broker: wire.Connection) -> Described:
    """Ask a broker.

    Raises:
        CliError: It cannot be asked.
        OSError: It does not answer.
    """
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    return described(broker.ask(DESCRIBE_QUORUM, VERSION, request, DescribeQuorumResponse))


def described(answer: DescribeQuorumResponse) -> Described:
    """What an answer says. A leader that is not known is an error, also where the answer names none."""
    found = answer.topics[0].partitions[0] if answer.topics else None
    code = answer.error_code or (found.error_code if found is not None else 0)
    if not code and (found is None or found.leader_id == NOBODY):
        code = BrokerNotAvailableError.code
    return Described(None if code else found, code, tuple(answer.nodes))
