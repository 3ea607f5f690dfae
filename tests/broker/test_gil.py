"""Produce and Fetch never wait for Python: they get responses while a thread holds the GIL."""

import ctypes
import select
import struct
import subprocess
import sys
import time

import pytest

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

REQUESTS = 20
HELD_MS_MAX = 60_000


def client(bootstrap: str) -> None:
    """Run the client process: print when Rust's responses have arrived, and Python's time."""
    records, _ = batch(1, 100)
    with Connection(bootstrap) as hot, Connection(bootstrap) as slow:
        print("connected", flush=True)
        sys.stdin.readline()
        slow.send_frame(init_producer_id())
        for _ in range(REQUESTS):
            check_produced(hot.exchange(produce("topic", 0, records)))
            assert check_fetched(hot.exchange(fetch("topic", 0, 0, 1000)))
        print("answered", flush=True)
        slow.receive_body()
        print(time.monotonic(), flush=True)


@pytest.mark.usefixtures("gil_kept_while_python_runs")
def test_produce_and_fetch_are_served_while_the_gil_is_held() -> None:
    libc = ctypes.PyDLL(None)  # its functions are called without releasing the GIL
    with Broker() as broker:
        broker.create_topic("topic")
        command = [sys.executable, __file__, broker.bootstrap_servers]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "connected\n"
            libc.write(process.stdin.fileno(), b"go\n", 3)
            asked = struct.pack("ihh", process.stdout.fileno(), select.POLLIN, 0)
            hot_count = libc.poll(ctypes.create_string_buffer(asked), 1, HELD_MS_MAX)
            released = time.monotonic()
            assert process.stdout.readline() == "answered\n"
            slow = float(process.stdout.readline())
    assert hot_count == 1, "a hot request waited for the GIL"
    assert slow >= released, "Python answered although it could not run: nothing was held"


if __name__ == "__main__":
    client(sys.argv[1])
