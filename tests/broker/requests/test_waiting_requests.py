"""Requests that wait for others hold no memory that others need."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.bounds.attacks import connected, receive
from pykafka_core import Broker
from pykafka_core.protocol.connection import encode_frame
from pykafka_core.protocol.messages import FindCoordinatorRequest, JoinGroupRequest
from tests.support.patience import eventually

MIB = 1 << 20
JOIN, FIND_COORDINATOR = 11, 10
JOIN_VERSION = 7
METADATA_BYTES = 100_000


def join(instance_id: str, metadata: bytes) -> JoinGroupRequest:
    """A static member joins with its first request."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    return JoinGroupRequest(
        group_id="waits",
        group_instance_id=instance_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=600_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


@contextmanager
def waiting_joins(broker: Broker, count: int, metadata: bytes) -> Iterator[None]:
    """Members of one group whose joins wait for the end of the initial delay."""
    with ExitStack() as sockets:
        for number in range(count):
            frame = encode_frame(JOIN, JOIN_VERSION, join(f"i{number}", metadata))
            sockets.enter_context(connected(broker.bootstrap_servers)).sendall(frame)
        eventually(lambda: broker.statistics()["requests_parked"] == count)
        yield


def find_coordinator(broker: Broker) -> None:
    with connected(broker.bootstrap_servers) as connection:
        connection.sendall(encode_frame(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="waits")))
        assert receive(connection, FIND_COORDINATOR, 3).error_code == 0


def test_waiting_joins_hold_no_memory() -> None:
    config = {"group.initial.rebalance.delay.ms": "600000"}
    with Broker(memory_max=16 * MIB, config=config) as broker:
        find_coordinator(broker)
        with waiting_joins(broker, 60, bytes(METADATA_BYTES)):
            eventually(lambda: broker.statistics()["requests_parked_bytes"] == 0)
            eventually(lambda: broker.statistics()["responses_held_bytes"] == 0)
            bytes_max = 60 * METADATA_BYTES // 2
            eventually(lambda: broker.statistics()["input_held_bytes"] < bytes_max)
