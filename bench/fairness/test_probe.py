"""How long one client waits beside others that never let their sockets run dry.

A probe asks ApiVersions, one request after the other, on a connection of its own while 0 to 8 producers send as
fast as the broker takes it: on the disk as it is, on one whose writes and syncs take 5 ms (`slow_disk.c`,
preloaded), and against Apache Kafka if it can be started.
"""

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.client import Connection, frame
from bench.conftest import Noted
from bench.fairness.producers import LOADS
from bench.peers.brokers import ApacheKafka, Ours, Peer
from pykafka_core.protocol.messages import ApiVersionsRequest

PROBES = 300
SLOW_MS = 5
SOURCE = Path(__file__).with_name("slow_disk.c")
PRODUCERS = 8


@contextmanager
def producing(bootstrap: str, load: str, count: int) -> Iterator[None]:
    """``count`` producers in a process of their own, until the end of the block."""
    command = [sys.executable, "-m", "bench.fairness.producers", bootstrap, load, str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"sending\n"
        yield
    finally:
        process.kill()
        process.communicate()


def with_slow_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Peer:
    library = folder / "slow_disk.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"], check=True
    )
    with monkeypatch.context() as patched:
        patched.setenv("LD_PRELOAD", str(library))
        patched.setenv("SLOW_DISK_MS", str(SLOW_MS))
        return Ours(folder)


def start(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Peer:
    if kind == "slow disk":
        return with_slow_disk(folder, monkeypatch)
    if kind == "Apache Kafka":
        if not (shutil.which("java") and shutil.which("mvn")):
            pytest.skip("Apache Kafka needs java and mvn")
        return ApacheKafka(folder)
    return Ours(folder)


def scheduled_ns(pid: int) -> tuple[int, int]:
    """Time that the threads of a process ran, and that they were ready and waited for a core (Linux)."""
    each = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(fields[0]) for fields in each), sum(int(fields[1]) for fields in each)


@pytest.fixture(scope="module", params=["disk", "slow disk", "Apache Kafka"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Peer]]:
    """A broker and its kind."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        peer = start(request.param, tmp_path_factory.mktemp("fairness"), monkeypatch)
    try:
        admin = AdminClient({"bootstrap.servers": peer.bootstrap})
        admin.create_topics([NewTopic("topic", PRODUCERS, 1)])["topic"].result(30)
        yield request.param, peer
    finally:
        peer.stop()


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("count", [0, 1, 4, PRODUCERS])
def test_api_versions_beside_producers(
    noted: Noted, broker: tuple[str, Peer], load: str, count: int
) -> None:
    kind, peer = broker
    if count == 0 and load != "60 KB, acks=0":
        pytest.skip("without producers all loads are one")
    if kind == "slow disk" and load == "2 KB, acks=0":
        pytest.skip("each append is a write of 5 ms: nothing that the other loads do not show")
    question = frame((18, 0), ApiVersionsRequest())
    waits = []
    with producing(peer.bootstrap, load, count), Connection(peer.bootstrap) as probe:
        before = scheduled_ns(peer.pid)
        for _ in range(PROBES):
            begun = time.perf_counter()
            assert probe.ask(question)[:2] == bytes(2)
            waits.append((time.perf_counter() - begun) * 1e3)
        ran, waited = (now - then for now, then in zip(scheduled_ns(peer.pid), before, strict=True))
    name = f"fairness: {kind}, {count} producers of {load}"
    noted(f"{name}: p50", statistics.median(waits), "ms")
    noted(f"{name}: p99", statistics.quantiles(waits, n=100)[98], "ms")
    noted(f"{name}: max", max(waits), "ms")
    # Much of it means that the figures are those of a machine without a free core.
    noted(f"{name}: ready threads without a core", 100 * waited / max(1, ran + waited), "%")
