"""Clients that keep a broker busy until standard input ends: ``BOOTSTRAP LOAD COUNT TOPIC``.

Each of ``COUNT`` connections has a thread. At the end the totals are printed as one line of JSON.
"""

import gzip
import json
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator

from bench.bounds.batches import empty_records
from bench.client import (
    DESCRIBE_CONFIGS,
    FETCH,
    METADATA,
    Connection,
    check_produced,
    fetch,
    frame,
    init_producer_id,
    produce,
)
from bench.data import NOW_MS, batch
from pykafka_core._core import build_batch, crc32c
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdResponse,
    MetadataRequest,
)

from .groups import GROUP_LOADS, Load

IN_FLIGHT = 5
YIELDING = 10
"""Niceness above that of brokers and probes, so that the load does not take cores from them."""
MIB = 1 << 20
PATIENCE_S = 3600
"""A response may take as long as the scenario: the probes show whether the broker is broken."""
INIT_PRODUCER_ID, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = (22, 1), (20, 3), (44, 0)


def without_acks(size: int) -> Load:
    """Return a load with acks=0, so that sockets are always full. Each connection writes to its own
    partition.
    """

    def send(connection: Connection, number: int, topic: str) -> Iterator[int]:
        one = produce(topic, number, batch(size, min(900, size // 2))[0], acks=0)
        many = one * (MIB // len(one))
        while True:
            connection.send_frame(many)
            yield len(many)

    return send


def idempotent(size: int) -> Load:
    """Return a load of idempotent producers with 5 requests in flight and acks=all."""

    def send(connection: Connection, number: int, topic: str) -> Iterator[int]:
        response = decode_response(*INIT_PRODUCER_ID, connection.exchange(init_producer_id()))
        assert isinstance(response, InitProducerIdResponse)
        ready, count = batch(size, 900)
        sequence = 0
        for sent in range(sys.maxsize):
            numbered = with_sequence(ready, response.producer_id, sequence)
            connection.send_frame(produce(topic, number, numbered, acks=-1))
            sequence += count
            if sent >= IN_FLIGHT - 1:
                check_produced(connection.receive_body())
                yield size

    return send


def with_sequence(records: bytes, producer_id: int, sequence: int) -> bytes:
    """Return the batch as a producer in epoch 0 sends it."""
    numbered = bytearray(records)
    struct.pack_into(">qhi", numbered, 43, producer_id, 0, sequence)
    struct.pack_into(">I", numbered, 17, crc32c(bytes(numbered[21:])))
    return bytes(numbered)


def beside_a_stalled_write(connection: Connection, number: int, topic: str) -> Iterator[int]:
    """Write batches to partition 0 on connection 0, and fetch from it on the others."""
    one = produce(topic, 0, batch(60_000, 900)[0])
    while True:
        if number == 0:
            check_produced(connection.exchange(one))
            yield len(one)
        else:
            yield len(connection.exchange(fetch(topic, 0, 0, 1000)))


def inflating(connection: Connection, number: int, topic: str) -> Iterator[int]:
    """Send batches of 150 KB with 100 MB of records."""
    one = produce(topic, number, inflatable(10_000, 10_000))
    while True:
        check_produced(connection.exchange(one))
        yield len(one)


def rewritten(connection: Connection, number: int, topic: str) -> Iterator[int]:
    """Send batches of 183 KB with 18 million empty records: they are rewritten as a whole, and are
    then too large.
    """
    one = produce(topic, number, empty_records(18_000_000))
    while True:
        yield len(one) + len(connection.exchange(one))


def growing_session(connection: Connection, _number: int, topic: str) -> Iterator[int]:
    """Add 10,000 partitions to a fetch session with each request, up to 120,000; then start a new
    one.
    """
    while True:
        session_id = 0
        for epoch in range(12):
            one = frame(FETCH, session_update(f"{topic}-{epoch}", session_id, epoch, 10_000))
            response = connection.exchange(one)
            yield len(one) + len(response)
            _, error_code, session_id = struct.unpack_from(">ihi", response)
            if error_code or not session_id:
                break


def session_update(topic: str, session_id: int, epoch: int, partitions: int) -> FetchRequest:
    """Return a fetch that adds partitions of a missing topic, which count in the session, too."""
    wanted = FetchRequest.FetchTopic(topic=topic)
    wanted.partitions = [
        FetchRequest.FetchPartition(partition=index, partition_max_bytes=1)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=0, max_bytes=1, session_id=session_id, session_epoch=epoch, topics=[wanted]
    )


def inflatable(count: int, size: int) -> bytes:
    """Return a gzip batch of ``count`` records of ``size`` zeros."""
    plain = build_batch([(None, bytes(size))] * count, timestamp_default=NOW_MS)
    body = gzip.compress(plain[61:])
    head = bytearray(plain[:61])
    struct.pack_into(">i", head, 8, len(head) - 12 + len(body))
    struct.pack_into(">h", head, 21, 1)
    struct.pack_into(">I", head, 17, crc32c(bytes(head[21:]) + body))
    return bytes(head) + body


def asking(question: Callable[[str], bytes]) -> Load:
    """Return a load that repeats one request, each time after the response."""

    def send(connection: Connection, _number: int, topic: str) -> Iterator[int]:
        one = question(topic)
        while True:
            yield len(one) + len(connection.exchange(one))

    return send


def all_topics(_topic: str) -> bytes:
    """Return a Metadata request for all topics."""
    return frame(METADATA, MetadataRequest(topics=None))


def missing(count: int) -> list[str]:
    """Return names of topics that do not exist."""
    return [f"missing-{number:06}" for number in range(count)]


def delete_missing(_topic: str) -> bytes:
    """Return a DeleteTopics request with 16,000 names, 250 KB."""
    return frame(DELETE_TOPICS, DeleteTopicsRequest(topic_names=missing(16_000), timeout_ms=30_000))


def describe_again(topic: str) -> bytes:
    """Return a DescribeConfigs request for the settings of one topic, 12,000 times."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    return frame(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource] * 12_000))


def missing_topics(_topic: str) -> bytes:
    """Return a Metadata request for 87,500 topics, 1.4 MB."""
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in missing(87_500)]
    return frame(METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=False))


def alter_missing(count: int) -> bytes:
    """Return an IncrementalAlterConfigs request for one setting of each of ``count`` topics."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(
        name="retention.ms", config_operation=0, value="1000"
    )
    resources = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=2, resource_name=name, configs=[config]
        )
        for name in missing(count)
    ]
    return frame(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=resources))


LOADS: dict[str, Load] = {
    **GROUP_LOADS,
    "acks=0, 60 KB": without_acks(60_000),
    "acks=0, 2 KB": without_acks(2_000),
    "idempotent, 60 KB": idempotent(60_000),
    "stalled write": beside_a_stalled_write,
    "inflating": inflating,
    "rewritten": rewritten,
    "growing session": growing_session,
    "all topics": asking(all_topics),
    "DeleteTopics": asking(delete_missing),
    "DescribeConfigs": asking(describe_again),
    "Metadata": asking(missing_topics),
    "IncrementalAlterConfigs": asking(lambda _topic: alter_missing(50_000)),
}


def main(bootstrap: str, load: str, count: str, topic: str) -> None:
    """Print ``sending`` when all connections are ready, and the totals when standard input ends."""
    os.nice(YIELDING)
    requests, sizes = [0] * int(count), [0] * int(count)
    prepared = threading.Barrier(int(count) + 1)

    def send(number: int, connection: Connection) -> None:
        try:
            work = LOADS[load](connection, number, topic)
            if load in GROUP_LOADS:
                next(work)
            prepared.wait()
            for size in work:
                requests[number] += 1
                sizes[number] += size
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    connections = [Connection(bootstrap, PATIENCE_S) for _ in range(int(count))]
    for number, connection in enumerate(connections):
        threading.Thread(target=send, args=(number, connection), daemon=True).start()
    prepared.wait()
    begun = time.monotonic()
    print("sending", flush=True)
    sys.stdin.read()
    done = {"requests": sum(requests), "bytes": sum(sizes), "seconds": time.monotonic() - begun}
    print(json.dumps(done), flush=True)
    # A normal exit would wait for threads in the middle of a request.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
