"""From the call or the command to a broker that serves, its memory, and a cold start with 10,000 partitions."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykafka_core import Broker

TOPICS = {f"wide-{number}": 2_000 for number in range(5)}


def resident_mib(pid: int | str = "self") -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kib) / 1024


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


@pytest.mark.benchmark(group="start: serve prints ready")
def test_serve(benchmark: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pykafka_core.cli", "serve", "--listen", "127.0.0.1:0"]
    resident: list[float] = []

    def serve(data: Path) -> None:
        with subprocess.Popen(
            [*command, "--data", str(data)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready ")
            resident.append(resident_mib(process.pid))
            process.kill()

    rounds = iter(range(100))
    benchmark.pedantic(serve, setup=lambda: ((tmp_path / str(next(rounds)),), {}), rounds=5)
    benchmark.extra_info["resident_mib"] = max(resident)
    interpreter = subprocess.run(
        [sys.executable, "-c", "print(open('/proc/self/status').read())"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = interpreter.stdout.splitlines()
    bare = int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024
    print(f"resident {max(resident):.1f} MiB, a bare interpreter {bare:.1f} MiB")


@pytest.mark.benchmark(group="start: 10,000 partitions")
def test_cold_start_with_10_000_partitions(benchmark: Any, tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        before = resident_mib()
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions)
        benchmark.extra_info["partitions_mib"] = resident_mib() - before

    def open_and_close() -> None:
        with Broker(tmp_path, listeners="PLAINTEXT://127.0.0.1:0") as broker:
            assert broker.topics() == TOPICS

    benchmark.pedantic(open_and_close, rounds=3)
    assert not list(tmp_path.glob("wide-*")), "a partition without records has a directory"
    print(f"10,000 partitions: {benchmark.extra_info['partitions_mib']:.1f} MiB")
