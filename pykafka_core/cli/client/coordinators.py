"""Checks that a coordinator answers for each partition of a coordinator topic.

ListTransactions and ListGroups omit partitions whose coordinator is not loaded, also in Apache
Kafka, and a partition without a leader has no broker to ask. So a list without an id proves that
the id does not exist only if each partition has a coordinator. `check_all_respond` describes one id
of each partition: any response of its coordinator is enough, even that the id does not exist.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from pykafka_core.cli.errors import CliError
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.errors import (
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC

from .wire import METADATA, METADATA_VERSION, NO_LEADER, Cluster, Connection, check

DESCRIBE_GROUPS, DESCRIBE_GROUPS_VERSION = 15, 5
"""The last version that describes a missing group as dead, without an error."""
DESCRIBE_TRANSACTIONS = 65


class Kind(NamedTuple):
    """A kind of coordinator.

    Attributes:
        topic: The topic whose leaders are the coordinators.
        describe: Describes ids at a coordinator; returns their error codes, 0 for an id that does
            not exist.
    """

    topic: str
    describe: Callable[[Connection, list[str]], Mapping[str, int]]


def check_all_respond(found: Cluster, kind: Kind, what: str) -> None:
    """Raise unless a coordinator answers for each partition of the kind's topic, if there is one.

    Raises:
        CliError: Some partitions have no response; lists them with the reasons, and begins with
            ``what``.
    """
    leaders = _leaders(found, kind.topic)
    partitions: defaultdict[str, list[int]] = defaultdict(list)
    for index, reason in sorted(_without_response(found, kind, leaders).items()):
        partitions[reason].append(index)
    if partitions:
        lines = (
            f"{kind.topic}:{','.join(map(str, indexes))}: {reason}"
            for reason, indexes in partitions.items()
        )
        raise CliError(
            "\n  ".join([f"{what}: no coordinator answers for", *lines]),
            "start the brokers of these partitions, or look for the reason in the logs of those that run; "
            "then try again",
        )


def _leaders(found: Cluster, topic: str) -> dict[int, int]:
    """Return the current leader of each partition.

    Asks by name, because all topics means those that may be seen.
    """
    asked = MetadataRequest.MetadataRequestTopic(name=topic)
    request = MetadataRequest(topics=[asked], allow_auto_topic_creation=False)
    response = found.any().ask_newest(METADATA, METADATA_VERSION, request, MetadataResponse)
    (row,) = response.topics
    if row.error_code == UnknownTopicOrPartitionError.code:
        return {}
    check(row.error_code, f"cannot find the leaders of {topic}")
    return {one.partition_index: one.leader_id for one in row.partitions}


def _without_response(found: Cluster, kind: Kind, leaders: Mapping[int, int]) -> dict[int, str]:
    """Return the reasons for missing responses, by partition."""
    reasons: dict[int, str] = {}
    ids = _id_of_each(len(leaders))
    for leader in sorted(set(leaders.values())):
        led = [index for index, one in leaders.items() if one == leader]
        if leader == NO_LEADER:
            reasons |= dict.fromkeys(led, "it has no leader")
            continue
        try:
            codes = kind.describe(found.node(leader), [ids[index] for index in led])
        except (CliError, OSError, ProtocolError) as error:
            reasons |= dict.fromkeys(led, f"broker {leader}: {error}")
            continue
        for index in led:
            if code := codes[ids[index]]:
                reasons[index] = f"broker {leader}: {error_of(code).name}"
    return reasons


def _id_of_each(partitions_count: int) -> Sequence[str]:
    """Return an id for each partition."""
    ids: dict[int, str] = {}
    names = (f"pykafka-core-cli-{number}" for number in count())
    while len(ids) < partitions_count:
        name = next(names)
        ids.setdefault(coordinator_partition(name, partitions_count), name)
    return [ids[index] for index in range(partitions_count)]


def _describe_transactions(coordinator: Connection, ids: list[str]) -> Mapping[str, int]:
    request = DescribeTransactionsRequest(transactional_ids=ids)
    response = coordinator.ask_newest(
        DESCRIBE_TRANSACTIONS, 0, request, DescribeTransactionsResponse
    )
    codes = {row.transactional_id: row.error_code for row in response.transaction_states}
    absent = TransactionalIdNotFoundError.code
    return {name: 0 if code == absent else code for name, code in codes.items()}


def _describe_groups(coordinator: Connection, ids: list[str]) -> Mapping[str, int]:
    request = DescribeGroupsRequest(groups=ids)
    response = coordinator.ask_newest(
        DESCRIBE_GROUPS, DESCRIBE_GROUPS_VERSION, request, DescribeGroupsResponse
    )
    return {group.group_id: group.error_code for group in response.groups}


GROUPS = Kind(GROUP_TOPIC, _describe_groups)
TRANSACTIONS = Kind(TRANSACTION_TOPIC, _describe_transactions)
