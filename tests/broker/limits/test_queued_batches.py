"""Batches that wait for a slow disk need no more memory than their requests."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.bounds.attacks import METADATA, PRODUCE, connected, receive
from bench.bounds.batches import LZ4, MIB, batch_of, empty_records
from bench.bounds.broker import Measured, measured
from bench.fairness.disk import Disk
from pykafka_core.protocol.connection import encode_frame
from pykafka_core.protocol.messages import MetadataRequest, ProduceRequest
from tests.support.patience import exactly

MEMORY_MAX_MIB = 64
CONNECTIONS, PARTITIONS_EACH = 200, 8
SLOW_MS = 600_000
ROUND_TRIPS = 50

STEADY_S = exactly(3, "the memory grows while the broker handles requests")


def produce(partitions: range, records: bytes) -> bytes:
    """Return a request with the same batch for each partition of ``wide-0``."""
    data = ProduceRequest.TopicProduceData(name="wide-0")
    data.partition_data = [
        ProduceRequest.PartitionProduceData(index=index, records=records) for index in partitions
    ]
    request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[data])
    return encode_frame(PRODUCE, 12, request)


def settled_bytes(broker: Measured) -> int:
    """Return the resident memory once it has not grown for some seconds."""
    resident, since = broker.resident_bytes(), time.monotonic()
    while time.monotonic() - since < STEADY_S:
        now = broker.resident_bytes()
        if now > resident:
            resident, since = now, time.monotonic()
    return resident


@pytest.mark.load
def test_batches_that_must_be_rebuilt_wait_as_they_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "disk")
    for name, value in disk.environment.items():
        monkeypatch.setenv(name, value)
    # 1.2 KB, which become 148 KB when the records are numbered.
    records = empty_records(37_000, LZ4)
    assert len(records) < 2_000
    with measured(MEMORY_MAX_MIB * MIB, tmp_path / "data", 1) as broker, ExitStack() as stack:
        other = stack.enter_context(connected(broker.address))
        peers = [stack.enter_context(connected(broker.address)) for _ in range(CONNECTIONS)]
        each = [
            range(index * PARTITIONS_EACH, (index + 1) * PARTITIONS_EACH)
            for index in range(CONNECTIONS)
        ]
        for partitions in each:
            peers[0].sendall(produce(partitions, batch_of(b"opens the log")))
            receive(peers[0], PRODUCE, 12)
        before = broker.resident_bytes()
        with disk.slow(SLOW_MS, "wide-0"):
            for peer, partitions in zip(peers, each, strict=True):
                peer.sendall(produce(partitions, records))
                # So that no two connections' batches are validated at the same time.
                for _ in range(ROUND_TRIPS):
                    other.sendall(encode_frame(METADATA, 12, MetadataRequest(topics=[])))
                    receive(other, METADATA, 12)
            grown = settled_bytes(broker) - before
        assert grown // MIB < MEMORY_MAX_MIB // 4
        for peer in peers:
            (topic,) = receive(peer, PRODUCE, 12).responses
            assert {one.error_code for one in topic.partition_responses} == {0}
