"""The part with three brokers: flights are sent while a leader is killed and a disk is lost.

Each record goes to three replicas, and is acknowledged when two have it (``acks=all``,
``min.insync.replicas=2``). A group reads the records at the same time. The sender waits at two
places of the stream until a restarted node is in sync again, so that records are sent during and
after each fault, at any speed of the machine. At the end every flight exists once, in its carrier's
order, and the three logs of each partition are identical, byte for byte.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pykafka_core.cli.client.clients import client_config, producer
from pykafka_core.cli.cluster.status import ClusterStatus, look
from pykafka_core.cli.errors import CliError
from pykafka_core.metadata.health import State

from .nodes import NODES, Nodes, nodes
from .records import PARTITIONS, Flight, progress_bars
from .round_trip import TOPIC, read_back

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

REPLICAS, MIN_ISR = 3, 2
PATIENCE_S = 120.0
LOOK_S = 0.1
GROUP = "departures"


def survive(source: Sequence[Flight], console: Console) -> None:
    """Run the part and print the results.

    Raises:
        CliError: A flight is missing, duplicated or out of order, or replicas differ; or a node did
            not start again.
    """
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="pykafka-core-demo-") as name,
        nodes(Path(name)) as cluster,
    ):
        cluster.start(NODES)
        ready_s = time.monotonic() - begun
        console.print(
            f"\n[bold]Three brokers[/bold], each in its own process, are a cluster after {ready_s:.1f} s."
        )
        _create(cluster)
        with _View(cluster, console) as view:
            _stream(cluster, source, view)
        with progress_bars(console) as progress:
            miles = read_back(cluster.bootstrap, source, progress)
        cluster.stop()
        size = compare(cluster)
    console.print(
        f"[green]Verified[/green]: {len(source):,} flights are stored once, each carrier's in order, {miles:,} miles "
        f"in all, on three replicas with equal bytes ({3 * size / 1e6:,.1f} MB); "
        f"{time.monotonic() - begun:.0f} s.\n"
    )


def _create(cluster: Nodes) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    config = {"min.insync.replicas": str(MIN_ISR)}
    topic = NewTopic(TOPIC, PARTITIONS, REPLICAS, config=config)
    admin = AdminClient(client_config(cluster.bootstrap))
    admin.create_topics([topic])[TOPIC].result(PATIENCE_S)


def _stream(cluster: Nodes, source: Sequence[Flight], view: "_View") -> None:
    """Send and read while nodes are killed."""
    third = len(source) // 3
    with _Sender(cluster.bootstrap, source) as sender, _Group(cluster.bootstrap) as group:
        view.sender, view.group = sender, group
        sender.go_on(2 * third)
        view.wait(lambda: sender.confirmed >= third // 2, "records are being sent")
        leader = _leader(view)
        cluster.kill(leader)
        begun = time.monotonic()
        view.say(
            f"node {leader}, which leads partitions, is killed (kill -9) while records are sent"
        )
        view.wait(
            lambda: not view.look().health[State.OFFLINE] and _leads_nothing(view, leader),
            "other nodes lead its partitions",
        )
        view.say(f"other nodes lead its partitions after {time.monotonic() - begun:.1f} s")
        cluster.start([leader])
        view.wait(lambda: _all_in_sync(view), f"node {leader} is in sync again")
        view.say(f"node {leader} is back and in sync")
        sender.go_on(len(source))
        lost = next(node for node in NODES if node != leader)
        view.wait(lambda: sender.confirmed >= 2 * third, "records are being sent")
        cluster.kill(lost)
        cluster.lose_disk(lost)
        view.say(f"node {lost} is killed too, and its disk is replaced")
        cluster.start([lost])
        view.say(
            f"node {lost} has a new disk and directory id; without its votes it is now only a broker"
        )
        view.wait(lambda: _all_in_sync(view), f"node {lost} is in sync again")
        view.say(f"node {lost} has fetched everything and is in sync")
        sender.finish()
        view.wait(lambda: group.count >= len(source), "the group has read everything")
        view.wait(lambda: _all_in_sync(view), "all replicas are in sync")
        view.say(f"the group has read {group.count:,} flights, its lag is 0")


def _leader(view: "_View") -> int:
    """Return a node that leads partitions."""
    return max(view.look().nodes, key=lambda node: node.leads).node


def _leads_nothing(view: "_View", node_id: int) -> bool:
    return all(node.leads == 0 for node in view.look().nodes if node.node == node_id)


def _all_in_sync(view: "_View") -> bool:
    health = view.look().health
    return not health[State.UNDER_REPLICATED] and not health[State.OFFLINE]


class _Sender:
    """Sends flights in their order, up to a limit that moves."""

    def __init__(self, bootstrap: str, source: Sequence[Flight]) -> None:
        self._source = source
        self._client = producer(
            bootstrap,
            {
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "message.timeout.ms": int(PATIENCE_S * 1000),
            },
        )
        self._upto = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="demo-sender", daemon=True)
        self.confirmed = 0
        self.errors: list[str] = []

    def __enter__(self) -> "_Sender":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()

    def go_on(self, upto: int) -> None:
        with self._changed:
            self._upto = upto
            self._changed.notify_all()

    def finish(self) -> None:
        """Return when every flight is confirmed.

        Raises:
            CliError: A flight was not confirmed.
        """
        self.go_on(len(self._source))
        self._thread.join(PATIENCE_S)
        if self.errors or self.confirmed < len(self._source):
            why = self.errors[0] if self.errors else "they were not confirmed in time"
            raise CliError(
                f"{len(self._source) - self.confirmed:,} flights were not delivered: {why}"
            )

    def _run(self) -> None:
        for number, (carrier, value) in enumerate(self._source):
            if number >= self._upto and not self._may_go_on(number):
                return
            self._send(carrier, value)
        while self._client.flush(LOOK_S) and not self._is_over:
            pass

    def _may_go_on(self, number: int) -> bool:
        """Wait at the limit of the sending; confirmations still arrive in the meantime."""
        while True:
            with self._changed:
                if self._is_over:
                    return False
                if number < self._upto:
                    return True
                self._changed.wait(LOOK_S)
            self._client.poll(0)

    def _send(self, carrier: str, value: bytes) -> None:
        while not self._is_over:
            try:
                self._client.produce(TOPIC, value, carrier, on_delivery=self._told)
            except BufferError:
                self._client.poll(LOOK_S)
            else:
                self._client.poll(0)
                return

    def _told(self, error: "KafkaError | None", _message: "Message") -> None:
        if error is None:
            self.confirmed += 1
        else:
            self.errors.append(error.str())


class _Group:
    """A member of a group that reads while records arrive; repeated records count once."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Consumer

        given = {"group.id": GROUP, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
        self._client = Consumer({**client_config(bootstrap), **given})
        self._next = [0] * PARTITIONS
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="demo-group", daemon=True)

    def __enter__(self) -> "_Group":
        self._client.subscribe([TOPIC])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
        self._client.close()

    @property
    def count(self) -> int:
        """The number of different records that it has read."""
        return sum(self._next)

    def _run(self) -> None:
        while not self._is_over:
            for message in self._client.consume(5000, LOOK_S):
                partition, offset = message.partition(), message.offset()
                # A gap would leave the count short forever.
                if (
                    message.error() is None
                    and partition is not None
                    and offset == self._next[partition]
                ):
                    self._next[partition] += 1


class _View:
    """A table of the cluster, redrawn on a terminal; elsewhere only the events are printed."""

    def __init__(self, cluster: Nodes, console: Console) -> None:
        self._cluster = cluster
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._begun = time.monotonic()
        self._last: ClusterStatus | None = None
        self.sender: _Sender | None = None
        self.group: _Group | None = None

    def __enter__(self) -> "_View":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        if self._last is not None:
            self._console.print(self._table(self._last))

    def say(self, what: str) -> None:
        """Print an event with the time."""
        self._console.print(f"{time.monotonic() - self._begun:6.1f} s  {what}", highlight=False)

    def look(self) -> ClusterStatus:
        """The present state of the cluster, as one of its nodes reports it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._last = look(self._cluster.bootstrap)
            except CliError:  # a node may be killed during its response
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_S)
            else:
                return self._last

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for the condition, and draw in the meantime.

        Raises:
            CliError: The condition was not met in time, or the sender failed.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise CliError(f"not reached within {PATIENCE_S:g} s: {what}")
            if self._live.is_started:
                self._live.update(self._table(self.look()), refresh=True)
            time.sleep(LOOK_S)

    def _table(self, found: ClusterStatus) -> Table:
        sent = self.sender.confirmed if self.sender is not None else 0
        read = self.group.count if self.group is not None else 0
        title = f"{sent:,} flights acknowledged, {max(0, sent - read):,} not read by the group yet"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
        for name in ("node", "state", "roles"):
            table.add_column(name)
        for name in ("leads", "in sync", "metadata lag"):
            table.add_column(name, justify="right")
        for node in found.nodes:
            table.add_row(
                str(node.node),
                "up" if node.node in self._cluster.up and node.address else "[red]DOWN[/red]",
                ", ".join(node.roles),
                str(node.leads),
                f"{node.replicas - node.out_of_sync} of {node.replicas}",
                "" if node.voter_lag is None else str(node.voter_lag),
            )
        return table


def compare(cluster: Nodes) -> int:
    """Compare the logs of the replicas, after all nodes have stopped.

    Returns:
        The number of bytes in one replica of all partitions.

    Raises:
        CliError: Two logs differ.
    """
    size = 0
    for partition in range(PARTITIONS):
        logs = [_log(cluster.data(node) / f"{TOPIC}-{partition}") for node in NODES]
        if any(log != logs[0] for log in logs):
            raise CliError(f"the replicas of {TOPIC}-{partition} are not the same")
        size += len(logs[0])
    return size


def _log(directory: Path) -> bytes:
    """All segments; a clean stop has cut the preallocated space after the last batch."""
    return b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
