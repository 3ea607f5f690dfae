"""Raw producers that keep their id, epoch and sequence across a restart of the broker."""

import time
from typing import Any, NamedTuple, Protocol

from pykafka_core._core import build_batch
from pykafka_core.protocol import messages as m
from tests.faults.raw import BEING_ENDED, LOADING, NONE, Keys
from tests.support.patience import PATIENCE_S


class Asked(Protocol):
    """A connection, or an object with the same method."""

    def ask(self, api_key: int, version: int, request: Any) -> Any: ...


class Appended(NamedTuple):
    error_code: int
    base_offset: int


class Writer:
    """A producer of numbered records for partition 0 of a topic; transactional if it has a name."""

    def __init__(
        self, connection: Asked, topic: str, name: str | None = None, timeout_ms: int = 60_000
    ) -> None:
        self.name, self.topic, self.sequence, self.written = name, topic, 0, 0
        request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            response = connection.ask(Keys.INIT_PRODUCER_ID, 5, request)
            if response.error_code not in LOADING | {BEING_ENDED}:
                break
            assert time.monotonic() < deadline, "there are no producer ids"
        assert response.error_code == NONE
        self.id, self.epoch = response.producer_id, response.producer_epoch

    def write(self, connection: Asked, count: int, version: int = 12) -> Appended:
        done = self.append(connection, count, self.sequence, version)
        if done.error_code == NONE:
            self.sequence += count
            self.written += count
        return done

    def append(self, connection: Asked, count: int, sequence: int, version: int = 12) -> Appended:
        """Append at a sequence that may be wrong; the writer's state does not change."""
        key = (self.name or "idempotent").encode()
        numbers = range(self.written, self.written + count)
        batch = build_batch(
            [(key, b"%d" % number) for number in numbers],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=self.name is not None,
            # Without a timestamp the producer would count as expired.
            timestamp_default=time.time_ns() // 1_000_000,
        )
        partition = m.ProduceRequest.PartitionProduceData(index=0, records=batch)
        topic = m.ProduceRequest.TopicProduceData(name=self.topic, partition_data=[partition])
        request = m.ProduceRequest(
            transactional_id=self.name, acks=-1, timeout_ms=30_000, topic_data=[topic]
        )
        row = connection.ask(Keys.PRODUCE, version, request).responses[0].partition_responses[0]
        return Appended(row.error_code, row.base_offset)


class Transactions(Writer):
    """Transactions of one id. ``version`` (KIP-890): 1 adds partitions first, 2 does not."""

    def __init__(
        self, connection: Asked, name: str, version: int, timeout_ms: int = 60_000
    ) -> None:
        super().__init__(connection, name, name, timeout_ms)
        self.version, self.opened = version, 0

    def open(self, connection: Asked, group: str, offset: int) -> None:
        """Write records, and commit an offset of a group."""
        if self.version == 1:
            assert self.name_the_partition(connection) == NONE
        self.opened = 3
        produced = self.write(connection, self.opened, 11 if self.version == 1 else 12)
        assert produced.error_code == NONE
        if self.version == 1:
            assert self.name_the_group(connection, group) == NONE
        assert self.commit_offset(connection, group, offset) == NONE

    def _own(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.id,
            "producer_epoch": self.epoch,
        }

    def name_the_partition(self, connection: Asked) -> int:
        """Add the partition, before the first record (version 1); return the error code."""
        topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self.topic, partitions=[0])
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name or "",
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        response = connection.ask(Keys.ADD_PARTITIONS, 3, request)
        (row,) = response.results_by_topic_v3_and_below[0].results_by_partition
        return int(row.partition_error_code)

    def name_the_group(self, connection: Asked, group: str) -> int:
        """Add the group, before the first offset (version 1); return the error code."""
        request = m.AddOffsetsToTxnRequest(group_id=group, **self._own())
        return int(connection.ask(Keys.ADD_OFFSETS, 3, request).error_code)

    def commit_offset(self, connection: Asked, group: str, offset: int) -> int:
        """Commit an offset of partition 0 in the transaction; return the error code."""
        row = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=f"at {offset}"
        )
        topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=self.topic, partitions=[row]
        )
        request = m.TxnOffsetCommitRequest(group_id=group, topics=[topic], **self._own())
        response = connection.ask(Keys.TXN_OFFSET_COMMIT, 3 if self.version == 1 else 5, request)
        return int(response.topics[0].partitions[0].error_code)

    def end(self, connection: Asked, *, commits: bool) -> int:
        """End the transaction; return the error code. Version 2 gives the producer a new epoch."""
        request = m.EndTxnRequest(committed=commits, **self._own())
        response = connection.ask(Keys.END_TXN, 4 if self.version == 1 else 5, request)
        if response.error_code == NONE and self.version == 2:
            self.id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        return int(response.error_code)
