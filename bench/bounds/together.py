"""All attacks in parallel, each repeated, with honest clients that check every record."""

import multiprocessing
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pykafka_core.protocol.connection import encode_frame
from pykafka_core.protocol.messages import CreateTopicsRequest

from .attacks import (
    ATTACKS,
    CREATE_TOPICS,
    FETCH,
    PRODUCE,
    connected,
    fetch_request,
    produce_request,
    receive,
)
from .batches import MIB, batch_of
from .broker import measured

HONEST_CLIENTS = 4
VALUE_SIZE = 100


@dataclass
class Outcome:
    """The honest clients' results, and the memory of the broker; times in seconds."""

    records: int = 0
    lost: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    grown_bytes: int = 0
    left_bytes: int = 0


def _attack(name: str, address: str, deadline: float) -> None:
    while time.monotonic() < deadline:
        # The broker may close the connections of attacks.
        with suppress(OSError, AssertionError):
            ATTACKS[name](address)


class _Honest:
    """Produces a record, waits for the acknowledgement and fetches it, on two connections."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self._producer = stack.enter_context(connected(address))
        self._consumer = stack.enter_context(connected(address))

    def turn(self, value: bytes) -> None:
        """Write and read one record."""
        offset = self._produce(value)
        assert value in self._fetch(offset), f"offset {offset} holds something else"

    def _produce(self, value: bytes) -> int:
        self._producer.sendall(produce_request("orders", batch_of(value), acks=-1))
        (topic,) = receive(self._producer, PRODUCE, 12).responses
        (partition,) = topic.partition_responses
        assert partition.error_code == 0, f"produce was refused with {partition.error_code}"
        return int(partition.base_offset)

    def _fetch(self, offset: int) -> bytes:
        self._consumer.sendall(fetch_request("orders", offset, 1, 60_000))
        (response,) = receive(self._consumer, FETCH, 12).responses
        (partition,) = response.partitions
        assert partition.error_code == 0, f"fetch was refused with {partition.error_code}"
        return bytes(partition.records or b"")


def _be_honest(address: str, number: int, deadline: float, outcome: Outcome) -> None:
    with ExitStack() as stack:
        try:
            client = _Honest(address, stack)
            count = 0
            while time.monotonic() < deadline:
                began = time.monotonic()
                client.turn(f"{number}-{count}".encode().ljust(VALUE_SIZE, b"."))
                outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - began)
                outcome.records += 1
                count += 1
        except (OSError, AssertionError) as error:
            outcome.lost.append(f"client {number}: {type(error).__name__}: {error}")


def _works(address: str) -> None:
    with ExitStack() as stack:
        _Honest(address, stack).turn(b"afterwards")
        connection = stack.enter_context(connected(address))
        topic = CreateTopicsRequest.CreatableTopic(
            name="afterwards", num_partitions=1, replication_factor=1
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        connection.sendall(encode_frame(CREATE_TOPICS, 7, request))
        (created,) = receive(connection, CREATE_TOPICS, 7).topics
        assert created.error_code == 0, f"creation was refused with {created.error_code}"


def together(memory_max: int, seconds: float) -> Outcome:
    """Run all attacks for ``seconds`` alongside honest clients; the broker must work afterwards."""
    outcomes = [Outcome() for _ in range(HONEST_CLIENTS)]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as data, measured(memory_max, Path(data)) as broker:
        deadline = time.monotonic() + seconds
        attackers = [
            context.Process(target=_attack, args=(name, broker.address, deadline), daemon=True)
            for name in ATTACKS
        ]
        clients = [
            threading.Thread(target=_be_honest, args=(broker.address, number, deadline, outcome))
            for number, outcome in enumerate(outcomes)
        ]
        for attacker in attackers:
            attacker.start()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        for attacker in attackers:
            attacker.join()
        _works(broker.address)
        return Outcome(
            records=sum(outcome.records for outcome in outcomes),
            lost=[text for outcome in outcomes for text in outcome.lost],
            slowest_s=max(outcome.slowest_s for outcome in outcomes),
            grown_bytes=broker.peak_bytes() - broker.idle_bytes,
            left_bytes=broker.resident_bytes() - broker.idle_bytes,
        )


def report(memory_max: int, seconds: float) -> None:
    """Print the outcome of :func:`together`."""
    outcome = together(memory_max, seconds)
    print(
        f"{len(ATTACKS)} attacks together for {seconds:.0f} s at memory_max {memory_max // MIB} MiB:"
        f" at most {outcome.grown_bytes // MIB} MiB beyond idle, {outcome.left_bytes // MIB} MiB"
        f" after; {HONEST_CLIENTS} honest clients had {outcome.records} records there and back,"
        f" the slowest in {outcome.slowest_s:.2f} s, and lost {len(outcome.lost)} connections"
    )
    for text in outcome.lost:
        print(text)
