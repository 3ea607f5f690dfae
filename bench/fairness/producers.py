"""Producers that send as fast as a broker takes it, until standard input ends: ``BOOTSTRAP LOAD COUNT``."""

import sys
import threading
from collections.abc import Callable

from bench.client import Connection, produce
from bench.data import batch

IN_FLIGHT = 5


def request(partition: int, acks: int, size: int) -> bytes:
    """One batch of about ``size`` bytes."""
    return produce("topic", partition, batch(size, 900)[0], acks=acks)


def send_without_end(connection: Connection, partition: int, size: int) -> None:
    """acks=0: the socket is always full."""
    one = request(partition, 0, size)
    many = one * ((1 << 20) // len(one))
    while True:
        connection.send(many)


def send_in_flight(connection: Connection, partition: int, size: int) -> None:
    """acks=all with so many requests unanswered."""
    one = request(partition, -1, size)
    connection.send(one * IN_FLIGHT)
    while True:
        connection.receive()
        connection.send(one)


LOADS: dict[str, tuple[Callable[[Connection, int, int], None], int]] = {
    "60 KB, acks=0": (send_without_end, 60_000),
    "2 KB, acks=0": (send_without_end, 2_000),
    "16 KB, 5 in flight": (send_in_flight, 16_000),
}


def main(bootstrap: str, load: str, count: str) -> None:
    """Say ``sending`` and end with standard input."""
    send, size = LOADS[load]
    for partition in range(int(count)):
        arguments = (Connection(bootstrap), partition, size)
        threading.Thread(target=send, args=arguments, daemon=True).start()
    print("sending", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
