"""docs/design/0001: latency while Python threads use the GIL, in the broker or elsewhere.

A broker in memory serves in a separate process. A client in another process uses 200 connections in
turn, at a quarter of its maximum rate on an idle broker; one more connection repeatedly waits at
the end of an empty log, and no response may arrive early. Four threads that only compute run
nowhere, in the broker's process, or in a third process; the three cases alternate.
Usage: ``python bench/design/gil_hogs.py [SECONDS]``.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.client import (
    Connection,
    check_fetched,
    check_produced,
    fetch,
    init_producer_id,
    produce,
)
from bench.data import batch
from pykafka_core import Broker

HOGS, CONNECTIONS, ROUNDS = 4, 200, 2
FRAMES = {
    "produce": produce("topic", 0, batch(1, 100)[0]),
    "fetch": fetch("topic", 0, 0, 1000),
    "init_producer_id": init_producer_id(),
}
*HOT, PYTHON = FRAMES
WAIT_MS = 50
LONG_POLL = fetch("idle", 0, 0, 1000, max_wait_ms=WAIT_MS)
PYTHON_EVERY = 100
"""One of this many requests is handled by Python, so that it waits for the GIL."""


def hog() -> None:
    while True:
        sum(range(1000))


def serve(hogs: int) -> None:
    """Run the broker's process, until its standard input ends."""
    with Broker() as broker:
        broker.create_topic("topic")
        broker.create_topic("idle")
        print(broker.bootstrap_servers, flush=True)
        for _ in range(hogs):
            threading.Thread(target=hog, daemon=True).start()
        sys.stdin.read()


@contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_in_vain(bootstrap: str, end: float) -> int:
    """Fetch from an empty log until ``end``; count the responses, none early."""
    responses = 0
    with Connection(bootstrap) as connection:
        while (start := time.perf_counter()) < end:
            assert not check_fetched(connection.exchange(LONG_POLL))
            assert time.perf_counter() - start >= WAIT_MS / 1000, "answered before its time"
            responses += 1
    return responses


def measure(bootstrap: str, seconds: float, pause_s: float) -> dict[str, list[float]]:
    """Return latencies in µs by kind of request; all connections must work until the end."""
    connections = [Connection(bootstrap) for _ in range(CONNECTIONS)]
    check_produced(connections[0].exchange(FRAMES["produce"]))
    times: dict[str, list[float]] = {name: [] for name in FRAMES}
    end = time.perf_counter() + seconds
    number = 0
    waiter = ThreadPoolExecutor(1)
    waiting = waiter.submit(wait_in_vain, bootstrap, end)
    while (start := time.perf_counter()) < end:
        name = PYTHON if number % PYTHON_EVERY == 0 else HOT[number % 2]
        connections[number % CONNECTIONS].exchange(FRAMES[name])
        times[name].append((time.perf_counter() - start) * 1e6)
        number += 1
        if pause_s:
            time.sleep(pause_s)
    for connection in connections:
        assert check_fetched(connection.exchange(FRAMES["fetch"]))
        connection.close()
    assert waiting.result() >= seconds * 1000 / WAIT_MS / 2, "waited too long"
    waiter.shutdown()
    return times


def run(case: str, seconds: float, pause_s: float) -> dict[str, list[float]]:
    hogs = HOGS if case == "hogs in the broker" else 0
    with child("serve", str(hogs)) as broker:
        assert broker.stdout is not None
        bootstrap = broker.stdout.readline().strip()
        if case == "hogs elsewhere":
            with child("serve", str(HOGS)) as other:
                assert other.stdout is not None
                other.stdout.readline()
                return measure(bootstrap, seconds, pause_s)
        return measure(bootstrap, seconds, pause_s)


def main(seconds: float) -> None:
    quiet = [time for times in run("quiet", seconds, 0).values() for time in times]
    pause_s = 3 * sum(quiet) / len(quiet) / 1e6
    print(
        f"unpaced {len(quiet) / seconds:.0f} requests/s, a pause of {pause_s * 1e6:.0f} µs from now on"
    )
    cases = ["quiet", "hogs elsewhere", "hogs in the broker"]
    found: dict[tuple[str, str], list[float]] = {}
    for case in cases * ROUNDS:
        for name, times in run(case, seconds, pause_s).items():
            found.setdefault((case, name), []).extend(times)
    print("case | request | count | p50 µs | p99 µs")
    for (case, name), times in found.items():
        times.sort()
        p50, p99 = (times[len(times) * part // 100] for part in (50, 99))
        print(f"{case} | {name} | {len(times)} | {p50:.0f} | {p99:.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 5)
