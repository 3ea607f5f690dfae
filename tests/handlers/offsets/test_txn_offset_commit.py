"""TxnOffsetCommit: accepted as part of the transaction, or rejected without any effect."""

import pytest

from pykafka_core.errors import (
    InvalidGroupIdError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    TransactionAbortableError,
)
from pykafka_core.types import GROUP_TOPIC
from tests.handlers.group_requests import joined
from tests.handlers.groups.test_consumer_group_heartbeat import beat
from tests.handlers.offset_requests import fetch
from tests.handlers.transaction_requests import (
    add_offsets,
    commit_offsets,
    describe,
    end,
    producer_of,
    transactional_broker,
)


@pytest.mark.parametrize("version", range(5))
def test_partition_of_the_group_must_be_in_the_transaction(version: int) -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    refused = InvalidTxnStateError if version < 4 else TransactionAbortableError
    assert commit_offsets(broker, producer, {0: 5}, version) == [refused.code]
    add_offsets(broker, producer)
    assert commit_offsets(broker, producer, {0: 5, 1: 6}, version) == [0, 0]
    end(broker, producer, commit=True)
    assert [row[0] for row in fetch(broker, [0, 1]).values()] == [5, 6]


@pytest.mark.parametrize("version", [5, 6])
def test_from_version_5_on_the_group_partition_is_added(version: int) -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    assert commit_offsets(broker, producer, {0: 5}, version) == [0]
    assert [topic.topic for topic in describe(broker).topics] == [GROUP_TOPIC]
    assert end(broker, producer, commit=True, version=5)[0] == 0
    assert fetch(broker, [0])[0][0] == 5


def test_aborted_offsets_are_not_fetched() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    commit_offsets(broker, producer, {0: 5}, 5)
    end(broker, producer, commit=False, version=5)
    assert fetch(broker, [0], require_stable=True)[0] == (-1, -1, "", 0)


def test_a_fenced_producer_commits_nothing() -> None:
    broker = transactional_broker()
    old = producer_of(broker)
    producer_of(broker)
    for version in range(7):
        assert commit_offsets(broker, old, {0: 5}, version) == [InvalidProducerEpochError.code]
    assert fetch(broker, [0], require_stable=True)[0] == (-1, -1, "", 0)


@pytest.mark.parametrize(("version", "unknown_topic"), [(5, 3), (6, 100)])
def test_missing_partitions_do_not_block_the_commit_of_others(
    version: int, unknown_topic: int
) -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    assert commit_offsets(broker, producer, {0: 5, 9: 1}, version) == [0, 3]
    assert commit_offsets(broker, producer, {0: 5}, version, topic="absent") == [unknown_topic]
    assert commit_offsets(broker, producer, {1: 5}, 5, metadata="m" * 4097) == [12]


@pytest.mark.parametrize("version", range(7))
def test_a_group_needs_a_name_in_a_transaction(version: int) -> None:
    broker = transactional_broker()
    assert commit_offsets(broker, producer_of(broker), {0: 5}, version, group_id="") == [
        InvalidGroupIdError.code
    ]


def test_members_are_checked_from_version_3_on() -> None:
    broker = transactional_broker()
    producer, member = producer_of(broker), joined(broker)
    codes = [
        commit_offsets(
            broker, producer, {0: 5}, 5, member_id=name, generation_id_or_member_epoch=generation
        )
        for name, generation in (("stranger", 1), (member, 2), (member, 1))
    ]
    assert codes == [[25], [22], [0]]


@pytest.mark.parametrize(("version", "stale"), [(5, 22), (6, 113)])
def test_a_stale_member_epoch_is_an_illegal_generation_up_to_version_5(
    version: int, stale: int
) -> None:
    broker = transactional_broker()
    epoch = beat(broker).member_epoch
    producer = producer_of(broker)
    codes = [
        commit_offsets(
            broker, producer, {0: 5}, version, member_id=name, generation_id_or_member_epoch=number
        )
        for name, number in (("other", epoch), ("m", epoch - 1), ("m", epoch))
    ]
    assert codes == [[25], [stale], [0]]


def test_without_a_group_coordinator_the_request_fails_with_coordinator_not_available() -> None:
    from tests.handlers.offset_requests import create_topic
    from tests.support.simulated.broker import SimulatedBroker

    broker = SimulatedBroker()
    create_topic(broker)
    assert commit_offsets(broker, (1, 0), {0: 5}, 5) == [15]
