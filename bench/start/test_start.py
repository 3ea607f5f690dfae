"""Time from a call or command to a serving broker, its idle cost, and 10,000 empty partitions.

Memory is resident memory from procfs (Linux). The cost of partitions is the difference to the same
broker without partitions.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pykafka_core
from bench.client import METADATA, Connection, frame
from bench.conftest import Noted
from pykafka_core import Broker
from pykafka_core.protocol.messages import MetadataRequest
from tests.support.processes.nodes import SERVE, wait_until_ready

TOPICS = {f"wide-{number}": 2_000 for number in range(5)}
SETTLED_S, IDLE_S = 1, 10
"""The second one includes two rounds of the tasks that run every 5 s."""


def resident_mib(pid: int | str = "self") -> float:
    return _resident_mib(Path(f"/proc/{pid}/status").read_text())


def bare_interpreter_mib() -> float:
    program = "print(open('/proc/self/status').read())"
    return _resident_mib(subprocess.check_output([sys.executable, "-c", program], text=True))


def _resident_mib(status: str) -> float:
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kib) / 1024


def descriptors(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads so far, more precise than the ticks of /proc/PID/stat."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


@contextmanager
def serving(data: Path, env: Mapping[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the process id and the address of a `serve` that has reported that it is ready."""
    command = [*SERVE, "--listen", "127.0.0.1:0", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process.pid, wait_until_ready(process, "serve")
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.benchmark(group="start: Broker() serves", max_time=0.5)
def test_broker(benchmark: Any, place: str, tmp_path: Path) -> None:
    opened: list[Broker] = []

    def start() -> None:
        directory = tmp_path / str(len(opened)) if place == "disk" else None
        opened.append(Broker(directory, listeners="PLAINTEXT://127.0.0.1:0"))

    def stop() -> None:
        if opened:
            assert opened[-1].topics() == {}
            opened[-1].close()

    benchmark.pedantic(start, setup=stop, rounds=20)
    stop()


def environment(tmp_path: Path, bytecode: str) -> Mapping[str, str]:
    """Return variables with which all bytecode is cached, or all except this package's.

    Processes do not write to the cache.
    """
    cache = tmp_path / "bytecode"
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with serving(tmp_path / "first", env):
        pass
    ours = cache / Path(pykafka_core.__file__).parent.relative_to("/")
    assert list(ours.rglob("*.pyc"))
    if bytecode == "cold":
        shutil.rmtree(ours)
    return {**env, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize("bytecode", ["cached", "cold"])
@pytest.mark.benchmark(group="start: serve answers Metadata")
def test_serve(benchmark: Any, noted: Noted, bytecode: str, tmp_path: Path) -> None:
    env = environment(tmp_path, bytecode)
    question = frame(METADATA, MetadataRequest())
    resident: list[float] = []
    cpu_ms: list[float] = []

    def serve(data: Path) -> None:
        with serving(data, env) as (pid, address), Connection(address) as connection:
            assert connection.exchange(question)
            cpu_ms.append(cpu_ns(pid) / 1e6)
            resident.append(resident_mib(pid))

    rounds = iter(range(100))
    benchmark.pedantic(serve, setup=lambda: ((tmp_path / str(next(rounds)),), {}), rounds=5)
    above = max(resident) - bare_interpreter_mib()
    noted(f"serve above a bare interpreter, bytecode {bytecode}", above, "MiB")
    noted(f"serve until its first Metadata answer, bytecode {bytecode}", min(cpu_ms), "ms of CPU")


def test_idle_cpu(noted: Noted, tmp_path: Path) -> None:
    with serving(tmp_path) as (pid, _):
        time.sleep(SETTLED_S)
        begun, used = time.monotonic_ns(), cpu_ns(pid)
        time.sleep(IDLE_S)
        percent = 100 * (cpu_ns(pid) - used) / (time.monotonic_ns() - begun)
    noted(f"serve without clients for {IDLE_S} s", percent, "% of a core")


@pytest.mark.benchmark(group="start: 10,000 partitions")
def test_cold_start_with_10_000_partitions(benchmark: Any, noted: Noted, tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        before = resident_mib(), descriptors()
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions)
        noted("10,000 partitions made while it runs", resident_mib() - before[0], "MiB")
        noted("10,000 partitions made while it runs", descriptors() - before[1], "descriptors")

    def open_and_close() -> None:
        with Broker(tmp_path, listeners="PLAINTEXT://127.0.0.1:0") as broker:
            assert broker.topics() == TOPICS

    benchmark.pedantic(open_and_close, rounds=3)
    assert not list(tmp_path.glob("wide-*")), "a partition without records has a directory"


def test_cold_serve_with_10_000_partitions(noted: Noted, tmp_path: Path) -> None:
    with Broker(tmp_path / "wide") as broker:
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions)
    costs = {}
    for place in ("empty", "wide"):
        begun = time.monotonic()
        with serving(tmp_path / place) as (pid, _):
            ready_s = time.monotonic() - begun
            costs[place] = ready_s, resident_mib(pid), descriptors(pid)
    ready, resident, opened = (
        wide - empty for wide, empty in zip(costs["wide"], costs["empty"], strict=True)
    )
    noted("10,000 partitions found by serve", resident, "MiB")
    noted("10,000 partitions found by serve", opened, "descriptors")
    noted("10,000 partitions found by serve, until ready", costs["wide"][0], "s")
    noted("of these, beyond a start without partitions", ready, "s")
