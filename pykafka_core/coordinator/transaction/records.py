"""Stored transactions: TransactionLogKey and TransactionLogValue."""

from collections import defaultdict
from collections.abc import Iterable
from sys import intern
from typing import cast

from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
)
from pykafka_core.protocol.coordinator_records import (
    TRANSACTION_KEYS,
    decode_record_key,
    decode_record_value,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.messages import TransactionLogKey, TransactionLogValue

KIND = TRANSACTION_KEYS.index("TransactionLogKey")
VALUE_VERSION = 1
"""Version that is written with ``transaction.version`` 2."""
_NEVER_STORED = (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)


def transaction_record(transaction: Transaction) -> KeyValue:
    """Return the record of a transaction.

    Kafka 4.2 reads the previous and the next producer id, but does not write them; so it forgets,
    when the leader changes, the id that it promised to a client. They are rarely set.
    """
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=_stored_partitions(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), encode_record_value(value, VALUE_VERSION)


def transaction_tombstone(transactional_id: str) -> KeyValue:
    """Return the tombstone of a transactional id."""
    return _key(transactional_id), None


def read_transactional_id(key: bytes) -> str:
    """Return the transactional id of a record key.

    Raises:
        ProtocolError: The bytes are not such a key.
    """
    return cast("TransactionLogKey", decode_record_key(TRANSACTION_KEYS, key)).transactional_id


def read_transaction(transactional_id: str, value: bytes) -> Transaction:
    """Return a stored transaction of any version.

    Raises:
        ProtocolError: The bytes are not such a value.
        ValueError: A transaction is never stored in this state.
    """
    stored = cast("TransactionLogValue", decode_record_value("TransactionLogValue", value))
    state = TransactionState(stored.transaction_status)
    previous_id = stored.previous_producer_id
    if state in _NEVER_STORED:
        raise ValueError(f"a transaction is stored as {state.kafka_name}")
    return Transaction(
        transactional_id,
        state,
        stored.producer_id,
        stored.producer_epoch,
        NO_EPOCH,
        # Later versions of Kafka store the current id if it did not change.
        NO_PRODUCER_ID if previous_id == stored.producer_id else previous_id,
        stored.next_producer_id,
        stored.transaction_timeout_ms,
        _read_partitions(stored.transaction_partitions or ()),
        stored.transaction_start_timestamp_ms,
        stored.transaction_last_update_timestamp_ms,
        stored.client_transaction_version,
    )


def _stored_partitions(
    transaction: Transaction,
) -> list[TransactionLogValue.PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        topics[topic].append(partition)
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=partitions)
        for topic, partitions in topics.items()
    ]


def _read_partitions(
    topics: Iterable[TransactionLogValue.PartitionsSchema],
) -> frozenset[TopicPartition]:
    partitions = frozenset(
        (intern(stored.topic), partition) for stored in topics for partition in stored.partition_ids
    )
    return partitions or NO_PARTITIONS


def _key(transactional_id: str) -> bytes:
    return encode_record_key(TRANSACTION_KEYS, TransactionLogKey(transactional_id=transactional_id))
