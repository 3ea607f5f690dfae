"""The cost of three replicas: rates, latency, memory and the speed of catching up."""

import multiprocessing
import os
import shutil
import socket
import statistics
import time
from pathlib import Path

from bench.cluster import failover, page_cache, requests
from bench.cluster.clusters import NODES, Nodes
from bench.peers import work

MB = 1 << 20
BEHIND_BYTES = 2048 * MB
ASK_S = 0.02
"""Interval of requests for the follower's size: ours responds in Python, on the same processors."""


def produce(nodes: Nodes, size: int, count: int) -> work.Figures:
    """confluent-kafka with acks=all, three partitions: records/s, and CPU time of all nodes.

    The client's own limit is measured in the same round without the nodes. The page cache is full
    (`page_cache`).
    """
    page_cache.fill(nodes.folder.parent)
    topic = f"produce-{time.time_ns()}"
    failover.create(nodes, topic, NODES[0])
    before = nodes.cpu_seconds()
    figures = work.confluent_send(nodes.bootstrap, topic, size, count, acks=-1)
    figures["brokers' CPU s per million records"] = (nodes.cpu_seconds() - before) * 1e6 / count
    figures["of the client's own limit"] = figures["records/s"] / work.confluent_limit(size, count)
    return figures


def latency(nodes: Nodes, count: int = 2000) -> work.Figures:
    """acks=all of one record of 100 bytes, one in flight: seconds."""
    topic = f"latency-{time.time_ns()}"
    failover.create(nodes, topic, NODES[0])
    writer = requests.Writer([nodes.address(node) for node in NODES], topic)
    writer.write()
    taken = []
    for _ in range(count):
        begun = time.monotonic()
        taken.append(writer.write() - begun)
    writer.close()
    return {"p50 s": statistics.median(taken), "p99 s": sorted(taken)[count * 99 // 100]}


def catch_up(nodes: Nodes) -> work.Figures:
    """A follower that lacks 2 GB, from first to last byte, and copies of that file: bytes/s.

    One copy is made by the kernel alone, the other through a socket of 127.0.0.1, like any
    follower's: `sendfile` on one side, `recv` and `write` on the other, without checks. The second
    follower has all data and fetches nothing. The page cache is full (`page_cache`).
    """
    topic, (leader, beside, follower) = f"behind-{time.time_ns()}", NODES
    page_cache.fill(nodes.folder.parent)
    failover.create(nodes, topic, leader)
    failover.stop(nodes, follower)
    work.raw_send(nodes.address(leader), topic, MB, BEHIND_BYTES)
    led = nodes.data(leader) / f"{topic}-0"
    total = nodes.replica_bytes(leader, topic)
    failover.wait_until(lambda: nodes.replica_bytes(beside, topic) >= total)
    for segment in led.glob("*.log"):
        page_cache.keep(segment)
    os.sync()
    nodes.launch(follower)
    # By the size of its files, because it does not respond to clients yet.
    failover.wait_until(lambda: nodes.file_bytes(follower, topic) > 0)
    begun = time.monotonic()
    failover.wait_until(lambda: nodes.replica_bytes(follower, topic) >= total, every_s=ASK_S)
    seconds = time.monotonic() - begun
    failover.wait_for_isr(nodes, topic)
    figures = {
        "bytes/s": total / seconds,
        "plain copy bytes/s": total / _copy_seconds(led),
        "copy by a bare socket bytes/s": total / _socket_copy_seconds(led),
    }
    failover.delete(nodes, topic)
    failover.wait_until(lambda: not list(nodes.folder.glob(f"*/{topic}-*")))
    return figures


def _copy_seconds(source: Path) -> float:
    target = source.with_name("copy")
    os.sync()
    begun = time.monotonic()
    shutil.copytree(source, target)
    seconds = time.monotonic() - begun
    shutil.rmtree(target)
    return seconds


def _socket_copy_seconds(source: Path) -> float:
    """Copy with two processes, like a leader and a follower."""
    target = source.with_name("copy")
    target.mkdir()
    os.sync()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        sender = multiprocessing.get_context("spawn").Process(
            target=_send_files, args=(address, sorted(source.glob("*.log")))
        )
        sender.start()
        connection, _ = server.accept()
        begun = time.monotonic()
        buffer = bytearray(MB)
        with connection, (target / "copied").open("wb", buffering=0) as copy:
            while size := connection.recv_into(buffer):
                copy.write(memoryview(buffer)[:size])
        seconds = time.monotonic() - begun
        sender.join()
    shutil.rmtree(target)
    return seconds


def _send_files(address: tuple[str, int], files: list[Path]) -> None:
    with socket.create_connection(address) as connection:
        for path in files:
            with path.open("rb") as file:
                connection.sendfile(file)
