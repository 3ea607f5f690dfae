"""A program that gevent or eventlet patched: `patched_child.py LIBRARY ORDER WHAT DATA`.

ORDER is ``before`` if the patch precedes the import of pykafka_core, else ``after``.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path


def patch(library: str) -> None:
    if library == "gevent":
        importlib.import_module("gevent.monkey").patch_all()
    else:
        importlib.import_module("eventlet").monkey_patch()


def with_broker(data: Path) -> None:
    """Run embedded brokers, and a client in a greenlet."""
    import socket

    from pykafka_core import Broker

    greenlets = importlib.import_module(sys.argv[1])
    for place in (None, data / "broker", data / "broker"):
        with Broker(place) as broker:
            if "orders" not in broker.topics():
                broker.create_topic("orders", partitions=3)
            host, port = broker.bootstrap_servers.split(":")
            asked = greenlets.spawn(_ask_api_versions, socket, host, int(port))
            assert (asked.get() if sys.argv[1] == "gevent" else asked.wait()) == (7, 0)
        assert broker.closed


def _ask_api_versions(socket: object, host: str, port: int) -> tuple[int, int]:
    """Send ApiVersions; return correlation id and error code."""
    request = bytes.fromhex("0012 0000 00000007 0001 61".replace(" ", ""))
    with socket.create_connection((host, port)) as client:  # type: ignore[attr-defined]
        client.sendall(len(request).to_bytes(4, "big") + request)
        response = b""
        while len(response) < 10:
            response += client.recv(10 - len(response))
    return int.from_bytes(response[4:8], "big"), int.from_bytes(response[8:10], "big")


def with_cluster(data: Path) -> None:
    """Run three brokers, and kill one of them."""
    from pykafka_core import Cluster

    with Cluster(3) as cluster:
        cluster.create_topic("orders", partitions=1)
        leader = cluster.wait_leader("orders", 0)
        cluster.kill(leader)
        assert cluster.wait_leader("orders", 0, other_than=leader) != leader


def with_log(data: Path) -> None:
    """Run a log that is flushed by a thread."""
    from pykafka_core.log import Log

    with Log.open(data / "events-0", durability="interval") as log:
        log.append([(None, b"v")] * 3)
        assert [record.offset for record in log] == [0, 1, 2]


WHAT: dict[str, Callable[[Path], None]] = {
    "broker": with_broker,
    "cluster": with_cluster,
    "log": with_log,
}

if __name__ == "__main__":
    library, order, what, data = sys.argv[1:]
    if order == "before":
        patch(library)
    importlib.import_module("pykafka_core.log")
    importlib.import_module("pykafka_core.broker.cluster.cluster")
    if order == "after":
        patch(library)
    WHAT[what](Path(data))
    print("done")
