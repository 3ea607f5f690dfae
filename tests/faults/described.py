"""The broker's descriptions of groups, offsets, producers and transactions, for comparisons.

Results are in the order of the request, because Kafka responds in any order.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from pykafka_core.protocol import messages as m
from tests.faults.raw import LOADING, Keys
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection


class Named(NamedTuple):
    """The names to describe; offsets are those of partition 0 of a topic."""

    classic: list[str]
    modern: list[str]
    topics: list[str]
    transactions: list[str]
    committed: list[tuple[str, str]]
    """Pairs of group and topic."""


def described(connection: Connection, named: Named) -> dict[str, Any]:
    """Return all descriptions, once the coordinators have loaded."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = {
            "groups": describe_groups(connection, named.classic),
            "consumer groups": describe_consumer_groups(connection, named.modern),
            "producers": describe_producers(connection, named.topics),
            "transactions": describe_transactions(connection, named.transactions),
            "offsets": [committed(connection, *place) for place in named.committed],
            "ends": {topic: ends(connection, topic) for topic in named.topics},
        }
        if not LOADING.intersection(error_codes(found)):
            return found
        assert time.monotonic() < deadline, "the coordinators do not load"


def error_codes(found: Any) -> Iterator[int]:
    """Yield the error codes of all messages in it, at any depth."""
    if isinstance(found, dict):
        found = found.values()
    elif not isinstance(found, list | tuple):
        if hasattr(found, "error_code"):
            yield found.error_code
        return
    for one in found:
        yield from error_codes(one)


def describe_groups(connection: Connection, names: list[str]) -> list[Any]:
    request = m.DescribeGroupsRequest(groups=names)
    response = connection.ask(Keys.DESCRIBE_GROUPS, 6, request)
    groups = sorted(response.groups, key=lambda one: names.index(one.group_id))
    for group in groups:
        group.members.sort(key=lambda one: one.member_id)
    return groups


def describe_consumer_groups(connection: Connection, names: list[str]) -> list[Any]:
    request = m.ConsumerGroupDescribeRequest(group_ids=names)
    groups = list(connection.ask(Keys.CONSUMER_GROUP_DESCRIBE, 1, request).groups)
    for group in groups:
        for member in group.members:
            for assignment in (member.assignment, member.target_assignment):
                assignment.topic_partitions.sort(key=lambda one: one.topic_name)
    return groups


def describe_producers(connection: Connection, topics: list[str]) -> list[Any]:
    asked = [
        m.DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0]) for name in topics
    ]
    request = m.DescribeProducersRequest(topics=asked)
    response = connection.ask(Keys.DESCRIBE_PRODUCERS, 0, request)
    found = sorted(response.topics, key=lambda one: topics.index(one.name))
    partitions = [one.partitions[0] for one in found]
    for partition in partitions:
        partition.active_producers.sort(key=lambda one: one.producer_id)
    return partitions


def describe_transactions(connection: Connection, names: list[str]) -> list[Any]:
    request = m.DescribeTransactionsRequest(transactional_ids=names)
    response = connection.ask(Keys.DESCRIBE_TRANSACTIONS, 0, request)
    states = sorted(response.transaction_states, key=lambda one: names.index(one.transactional_id))
    for state in states:
        state.topics.sort(key=lambda one: one.topic)
    return states


def committed(connection: Connection, group: str, topic: str) -> Any:
    """Return the row of partition 0. It has an error while a transaction may still change it."""
    wanted = m.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
    request = m.OffsetFetchRequest(groups=[asked], require_stable=True)
    response = connection.ask(Keys.OFFSET_FETCH, 9, request).groups[0]
    return response.topics[0].partitions[0] if response.topics else response


def ends(connection: Connection, topic: str) -> tuple[int, int]:
    """Return the last stable offset and the high watermark of partition 0."""
    found = []
    for isolation in (1, 0):
        partition = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        wanted = m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
        request = m.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[wanted])
        found.append(connection.ask(Keys.LIST_OFFSETS, 9, request).topics[0].partitions[0].offset)
    return found[0], found[1]
