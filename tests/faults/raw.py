"""Helpers of the raw requests in this folder: API keys, topics and coordinators."""

import time
from collections.abc import Iterable

from pykafka_core.protocol import messages as m
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

NONE = 0
LOADING = frozenset((14, 15, 16))
"""Errors of coordinators that are not ready: still loading, not available, or on another node."""
BEING_ENDED = 51
"""CONCURRENT_TRANSACTIONS: the producer's last transaction has not ended yet."""


class Keys:
    """Keys of the APIs that these tests use."""

    PRODUCE, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 2, 8, 9, 10
    JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
    DESCRIBE_GROUPS, CREATE_TOPICS = 15, 19
    INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
    DELETE_GROUPS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS = 42, 61, 65
    CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69


def find_coordinator(connection: Connection, kind: int, name: str) -> None:
    """Make the broker create the coordinators' topic: kind 0 for groups, 1 for transactions."""
    request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
    deadline = time.monotonic() + PATIENCE_S
    while connection.ask(Keys.FIND_COORDINATOR, 4, request).coordinators[0].error_code != NONE:
        assert time.monotonic() < deadline, "there is no coordinator"


def create_topics(connection: Connection, names: Iterable[str]) -> None:
    topics = [
        m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in names
    ]
    response = connection.ask(Keys.CREATE_TOPICS, 7, m.CreateTopicsRequest(topics=topics))
    assert {row.error_code for row in response.topics} == {NONE}


def delete_group(connection: Connection, name: str) -> None:
    response = connection.ask(Keys.DELETE_GROUPS, 2, m.DeleteGroupsRequest(groups_names=[name]))
    assert response.results[0].error_code == NONE
