"""The workloads. Each checks its results first, and returns rates or latencies by name."""

import json
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import raw
from bench.peers.brokers import ApacheKafka

Figures = dict[str, float]


@contextmanager
def clock() -> Iterator[Callable[[], float]]:
    """Return the seconds since the start of the block; constant after its end."""
    begun, ended = time.perf_counter(), 0.0
    yield lambda: (ended or time.perf_counter()) - begun
    ended = time.perf_counter()


def create_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    """Create a topic and wait for its leaders; librdkafka's mock creates it on first use."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    future = admin.create_topics([NewTopic(name, partitions, 1)], request_timeout=5)[name]
    try:
        future.result(5)
    except (KafkaException, TimeoutError):
        admin.list_topics(name, timeout=10)
    deadline = time.monotonic() + 10
    connection = raw.Raw(bootstrap)
    probe = raw.frame(raw.FETCH, 0, raw.fetch_body(name, 0, 1024))
    while time.monotonic() < deadline:
        connection.send_frame(probe)
        if fetch_error(connection.receive_view(), name) == 0:
            break
    connection.close()


def fetch_error(response: memoryview, topic: str) -> int:
    """Return the error of the only partition in a Fetch v4 response."""
    return int(struct.unpack_from(">h", response, 4 + 4 + 4 + 2 + len(topic) + 4 + 4)[0])


def fetch_records_size(response: memoryview, topic: str) -> int:
    """Return the size of the records of the only partition in a Fetch v4 response."""
    position = 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8
    (aborted,) = struct.unpack_from(">i", response, position)
    return int(struct.unpack_from(">i", response, position + 4 + 16 * max(aborted, 0))[0])


def confluent_produce(bootstrap: str, topic: str, size: int, count: int) -> Figures:
    """Create a topic and run `confluent_send` with acks=1."""
    create_topic(bootstrap, topic)
    return confluent_send(bootstrap, topic, size, count, acks=1)


def confluent_send(bootstrap: str, topic: str, size: int, count: int, acks: int) -> Figures:
    """librdkafka's producer, batches of up to 1 MB after 5 ms: records/s."""
    seconds = _confluent_send({"bootstrap.servers": bootstrap, "acks": acks}, topic, size, count)
    assert records_count(bootstrap, topic) == count
    return {"records/s": count / seconds}


def confluent_limit(size: int, count: int) -> float:
    """Records/s of the same producer with librdkafka's mock cluster, in-process without storage."""
    mock = {"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 0}
    return count / _confluent_send(mock, "topic", size, count)


def _confluent_send(where: Mapping[str, object], topic: str, size: int, count: int) -> float:
    """Return the time of librdkafka's producer in seconds."""
    from confluent_kafka import Producer

    settings = {"queue.buffering.max.messages": 1_000_000}
    producer = Producer({**where, **settings, "linger.ms": 5, "batch.size": 1_000_000})
    value = b"v" * size
    with clock() as seconds:
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        left = producer.flush(120)
    assert left == 0
    return seconds()


def records_count(bootstrap: str, topic: str) -> int:
    """Return the number of records by log end offsets, because a flush ignores failed records."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=10)[1]
        for index in partitions
    ]
    consumer.close()
    return sum(ends)


def confluent_consume(bootstrap: str, topic: str, count: int) -> Figures:
    """librdkafka's consumer with manual assignment: records/s."""
    from confluent_kafka import Consumer, TopicPartition

    # Without auto-commit; otherwise its close waits for a coordinator.
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    with clock() as seconds:
        while seen < count:
            seen += len(consumer.consume(10_000, timeout=30))
    consumer.close()
    assert seen == count, seen
    return {"records/s": count / seconds()}


def java_produce(
    bootstrap: str, topic: str, size: int, count: int, codec: str = "none", partitions: int = 1
) -> Figures:
    """Kafka's ProducerPerformance: records/s in its output."""
    create_topic(bootstrap, topic, partitions)
    settings = [f"bootstrap.servers={bootstrap}", "acks=1", f"compression.type={codec}"]
    printed = subprocess.run(
        [
            "java",
            "-Xmx512m",
            "-cp",
            ApacheKafka.classpath(),
            "org.apache.kafka.tools.ProducerPerformance",
        ]
        + ["--topic", topic, "--num-records", str(count), "--record-size", str(size)]
        + ["--throughput", "-1", "--producer-props", *settings],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    last = printed.strip().splitlines()[-1]
    assert last.startswith(f"{count} records sent"), last
    return {"records/s": float(last.split(",")[1].split()[0])}


def java_consume(bootstrap: str, topic: str, count: int) -> Figures:
    """Kafka's ConsumerPerformance in a separate group: records/s of fetching in its output."""
    printed = subprocess.run(
        [
            "java",
            "-Xmx512m",
            "-cp",
            ApacheKafka.classpath(),
            "org.apache.kafka.tools.ConsumerPerformance",
        ]
        + ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)]
        + ["--group", topic, "--timeout", "30000"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    head, last = (line.split(", ") for line in printed.strip().splitlines()[-2:])
    figures = dict(zip(head, last, strict=True))
    assert int(figures["data.consumed.in.nMsg"]) >= count, printed
    return {"records/s": float(figures["fetch.nMsg.sec"])}


def raw_produce(bootstrap: str, topic: str, batch_bytes: int, total_bytes: int) -> Figures:
    """Create a topic and run `raw_send`."""
    create_topic(bootstrap, topic)
    return raw_send(bootstrap, topic, batch_bytes, total_bytes)


def raw_send(bootstrap: str, topic: str, batch_bytes: int, total_bytes: int) -> Figures:
    """Encoded batches to a topic's only partition, acks=1, 5 in flight, one connection: bytes/s."""
    ready = raw.batch_of_size(batch_bytes)
    if len(ready) > 1_000_000:
        ready = raw.batch(1000, 1024)  # Kafka's default message.max.bytes is 1,048,588
    one = raw.frame(raw.PRODUCE, 1, raw.produce_body(topic, 0, ready))
    frames = [one] * max(1, total_bytes // len(ready))
    connection = raw.Raw(bootstrap)
    with clock() as seconds:
        responses = connection.pipelined(frames, 5)
    connection.close()
    for response in responses:
        assert produce_error(response, topic) == 0, response
    return {"bytes/s": len(ready) * len(frames) / seconds()}


def produce_error(response: bytes, topic: str) -> int:
    """Return the error of the only partition in a Produce v7 response."""
    return int(struct.unpack_from(">h", response, 4 + 4 + 2 + len(topic) + 4 + 4)[0])


def one_record_requests(bootstrap: str, topic: str, count: int) -> Figures:
    """One record of 100 bytes per request, 100 in flight: requests/s."""
    create_topic(bootstrap, topic)
    one = raw.frame(raw.PRODUCE, 1, raw.produce_body(topic, 0, raw.batch(1, 100)))
    connection, group, window = raw.Raw(bootstrap), 50, one * 50
    connection.send_frame(one)
    size = 4 + len(connection.receive_view())
    with clock() as seconds:
        connection.send_frame(window)
        for _ in range(count // group - 1):
            connection.send_frame(window)
            connection.receive_many(group, size)
        last = bytes(connection.receive_many(group, size))
    connection.close()
    assert produce_error(last[-size + 4 :], topic) == 0
    return {"requests/s": count / seconds()}


def raw_fetch(bootstrap: str, topic: str, size: int, total_bytes: int) -> Figures:
    """Fetches of `size` bytes from the start of a topic of 1 MB batches, 1 connection: bytes/s."""
    one = raw.frame(raw.FETCH, 1, raw.fetch_body(topic, 0, size))
    connection, seen = raw.Raw(bootstrap), 0
    connection.send_frame(one)
    connection.receive_view()
    with clock() as seconds:
        while seen < total_bytes:
            connection.send_frame(one)
            response = connection.receive_view()
            assert fetch_error(response, topic) == 0
            got = fetch_records_size(response, topic)
            assert got > 0
            seen += got
    connection.close()
    return {"bytes/s": seen / seconds()}


def latency(bootstrap: str, topic: str, count: int) -> Figures:
    """acks=1 of one record, one in flight, until a waiting fetch returns it: seconds."""
    create_topic(bootstrap, topic)
    produce = raw.frame(raw.PRODUCE, 1, raw.produce_body(topic, 0, raw.batch(1, 100)))
    writer, reader = raw.Raw(bootstrap), raw.Raw(bootstrap)
    acknowledged, consumed = [], []
    for offset in range(count):
        reader.send_frame(raw.frame(raw.FETCH, 1, raw.fetch_body(topic, offset, 65536)))
        begun = time.perf_counter()
        writer.send_frame(produce)
        response = writer.receive_view()
        acknowledged.append(time.perf_counter() - begun)
        assert produce_error(bytes(response), topic) == 0
        response = reader.receive_view()
        consumed.append(time.perf_counter() - begun)
        assert fetch_records_size(response, topic) > 0
    writer.close()
    reader.close()
    p99 = count * 99 // 100
    return {
        "ack p50 s": statistics.median(acknowledged),
        "ack p99 s": sorted(acknowledged)[p99],
        "consumed p50 s": statistics.median(consumed),
        "consumed p99 s": sorted(consumed)[p99],
    }


def many_topics(bootstrap: str, word: str, count: int) -> Figures:
    """Create `count` topics in one call, then send a record to each: seconds."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.list_topics(timeout=10)
    topics = [NewTopic(f"{word}-{n}", 1, 1) for n in range(count)]
    with clock() as created:
        for future in admin.create_topics(topics, operation_timeout=60).values():
            future.result(60)
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1})
    with clock() as produced:
        for topic in topics:
            producer.produce(
                topic.topic,
                b"v",
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert producer.flush(120) == 0
    assert not failed, failed[:1]
    return {"created s": created(), "a record each s": produced()}


def keep(path: Path, results: object, limits: Figures) -> None:
    """Write the raw figures with the commit and the command."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    raw = {"commit": commit.stdout.strip(), "command": sys.argv, "results": results}
    path.write_text(json.dumps(raw | {"machine": limits}, indent=1))


def machine(folder: Path) -> Figures:
    """The machine's own limits: loopback, fdatasync of 4 KiB, memcpy."""
    import os
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    data, total = b"x" * (1 << 20), 1 << 30
    sender = threading.Thread(target=lambda: ours.sendall(data * (total >> 20)))
    buffer, got = bytearray(1 << 20), 0
    with clock() as seconds:
        sender.start()
        while got < total:
            got += theirs.recv_into(buffer)
    sender.join()
    loopback = total / seconds()
    file = os.open(folder / "sync", os.O_CREAT | os.O_WRONLY)
    times = []
    for n in range(200):
        os.pwrite(file, b"s" * 4096, n * 4096)
        with clock() as one:
            os.fdatasync(file)
        times.append(one())
    os.close(file)
    source = bytearray(64 << 20)
    with clock() as copying:
        for _ in range(10):
            bytes(source)
    return {
        "loopback bytes/s": loopback,
        "fdatasync p50 s": statistics.median(times),
        "memcpy bytes/s": 640 * (1 << 20) / copying(),
    }
