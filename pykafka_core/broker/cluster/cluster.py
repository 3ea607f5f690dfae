"""`Cluster`: several brokers in this process as one Kafka cluster, for tests of failover.

Theory of operation. Each node is a `Broker` with a data directory and two ports of 127.0.0.1, broker and controller at
once; they speak to each other over TCP, as processes would. All share one engine, and each has its one control thread.
What befalls a process befalls a node here by two calls of its core: `abandon` ends it without a word to anybody or a
byte more on its disk, and `cut_off` has connections carry nothing, as if packets were dropped. A node that is paused is
cut off from everybody while its control thread stands still, so its timers go off late, as after SIGSTOP.

`leader`, `isr` and `controller` are answered from the newest metadata of the nodes that are up and hear others.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pykafka_core.broker import native
from pykafka_core.broker.arguments import as_text, check_type
from pykafka_core.broker.broker import Broker
from pykafka_core.broker.cluster.network import Network
from pykafka_core.broker.cluster.places import Places, wipe
from pykafka_core.broker.start.joining import Latch
from pykafka_core.errors import (
    ForkedError,
    NotControllerError,
    StartGivenUpError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.metadata.image.image import NO_LEADER, MetadataImage, Partition
from pykafka_core.types import Durability

NODES_MAX = 7
TIMEOUT_S = 30.0
_LOOK_S = 0.002
"""Between two looks at metadata that are waited for."""


class Cluster:
    """Several brokers that are one cluster, and serve when the constructor returns, until `close`.

    Args:
        brokers: How many, 1 to 7; each is broker and controller. Their node ids are 0, 1, …, as they are counted in
            `brokers`: ``cluster.kill(cluster.leader("orders"))``.
        config: Settings of every node by Kafka name. The defaults are made for tests of failover: a topic has 3
            replicas and ``acks=all`` waits for 2, fewer where there are fewer brokers; a node that says nothing is
            given up after two seconds (``broker.session.timeout.ms``, ``replica.lag.time.max.ms``), a controller after
            one; internal topics have 4 partitions. Groups have the quick settings of `Broker`.
        data: A directory that keeps the nodes' data, in one folder for each; default is a temporary one, which goes
            with the cluster.
        durability: Of every node. As nothing here loses what a disk was given, ``os`` is the default, the quickest.

    Raises:
        ConfigurationError: Settings that cannot be used.
        StorageError: The directory is of another number of nodes, or cannot be used.
        ClusterError: The nodes did not become a cluster in time.

    To be used by one thread; the nodes themselves are thread-safe. Node numbers that there are not raise IndexError.
    In a forked child every call raises `ForkedError`, and `close` does nothing.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, object] | None = None,
        data: str | os.PathLike[str] | None = None,
        durability: Durability = "os",
    ) -> None:
        check_type("brokers", brokers, int, "a number as int")
        if not 1 <= brokers <= NODES_MAX:
            raise ValueError(f"brokers={brokers}: pass 1 to {NODES_MAX}")
        self._config = as_text({} if config is None else config)
        self._durability = durability
        self._places = Places(brokers, None if data is None else Path(data).resolve())
        self._network = Network(self._places, brokers)
        self._nodes: dict[int, Broker] = {}
        self._count = brokers
        self._pid = os.getpid()
        self._closed = False
        self._starting: list[Latch] = []
        """Gives up each start that is under way, in whichever thread. With `_closed`, guarded by `_starts`."""
        self._starts = native.Condition()
        try:
            self.start(*range(brokers))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Itself: it serves already."""
        self._check_process()
        return self

    def __exit__(self, *_: object) -> None:
        """`close`."""
        self.close()

    def __repr__(self) -> str:
        """How many nodes are up, and where."""
        up = sum(self._is_up(node) for node in range(self._count))
        return f"<Cluster {up} of {self._count} up, data={self._places.folder}>"

    def close(self) -> None:
        """End all nodes: cleanly where their data are kept, else at once. Idempotent.

        Starts that other threads wait for are given up.
        """
        if self._pid != os.getpid():
            return
        with self._starts:
            if self._closed:
                return
            self._closed = True
            for give_up in self._starting:
                give_up.set()
            self._starts.wait_for(lambda: not self._starting)
        up = [node for node in range(self._count) if self._is_up(node)]
        for node in up:
            self._network.isolated.clear()
            if node in self._network.paused:
                self.resume(node)
        self._connect()
        if self._places.is_temporary:
            self.kill(*up)
        else:
            _at_once(lambda node: self._nodes[node].close(), up)
        self._places.close()

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """By node id. One that is down is the `Broker` that it was, closed; after `start` it is another."""
        return tuple(self._nodes[node] for node in range(self._count))

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` of every node, whether it is up or not: what clients take."""
        return ",".join(self._places.bootstrap(node) for node in range(self._count))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        """Make a topic; on return every node that is up and reached knows it.

        Args:
            name: As of `Broker.create_topic`, and so are the other arguments and the errors.
            partitions: Default is ``num.partitions``.
            config: Topic settings by Kafka name.
            timeout: Seconds.

        Raises:
            TimeoutError: No controller made it, or a node does not know it by then.
        """
        deadline = time.monotonic() + timeout
        is_in_doubt = False
        while True:
            try:
                node = self.controller(deadline - time.monotonic())
                self._nodes[node].create_topic(name, partitions, config=config)
            except NotControllerError:  # deposed meanwhile: another one may have made it
                is_in_doubt = True
            except TopicAlreadyExistsError:
                if not is_in_doubt:
                    raise
                break
            else:
                break
        self._wait(
            lambda: all(name in image.topics.by_name for image in self._images()),
            timeout,
            lambda: f"not every node knows {name}",
        )

    # What befalls nodes.

    def start(self, *nodes: int) -> None:
        """Start nodes that are down; return when each serves.

        Where fewer than a majority of all nodes would be up, it waits for others to be started by other threads.

        Raises:
            RuntimeError: A node is up, or isolated: nobody would let it in. The cluster is closed, or was meanwhile.
            ClusterError: They were not let in within ``initial.broker.registration.timeout.ms``.
        """
        with self._start_under_way() as give_up:
            for node in nodes:
                self._check(node)
                if self._is_up(node):
                    raise RuntimeError(f"node {node} is up")
                if node in self._network.isolated:
                    raise RuntimeError(f"node {node} is isolated: heal() first")
            # The lowest one stands for election in a new cluster: the others should hear it.
            order = sorted(nodes, reverse=True)
            _at_once(lambda node: self._start(node, give_up), order, give_up.set)
            self._connect()

    @contextmanager
    def _start_under_way(self) -> Iterator[Latch]:
        """A start that `close` gives up and waits for."""
        self._check_process()
        give_up = Latch()
        with self._starts:
            if self._closed:
                raise RuntimeError("the cluster is closed")
            self._starting.append(give_up)
        try:
            yield give_up
        except StartGivenUpError as error:
            raise RuntimeError("the cluster is closed") from error
        finally:
            with self._starts:
                self._starting.remove(give_up)
                self._starts.notify_all()

    def stop(self, *nodes: int) -> None:
        """Stop nodes cleanly, one after the other: what they lead moves to others before.

        Raises:
            RuntimeError: A node is down, or paused: it would do nothing.
        """
        for node in nodes:
            self._running(node).close()

    def kill(self, *nodes: int) -> None:
        """End nodes as kill -9 does, all of them before any is done with.

        Nobody is told anything, and nothing is written or synced any more. What they wrote is in the page cache, as
        after the death of a process. A paused node can be killed.

        Raises:
            RuntimeError: A node is down.
        """
        for node in nodes:
            self._up(node)
        for node in nodes:
            self._nodes[node]._cut_off(accepted=True, peers=None)
        for node in nodes:
            self._nodes[node]._kill()
            self._network.paused.discard(node)

    def wipe(self, node: int) -> None:
        """Remove all records of a node that is down, as if its disk was replaced, but for what it is to the quorum.

        It keeps its identity and the metadata log, as it is a voter that must not forget its votes; all else it fetches
        from the leaders when it is started.

        Raises:
            RuntimeError: The node is up.
        """
        self._check(node)
        if self._is_up(node):
            raise RuntimeError(f"node {node} is up")
        for folder in self._places.directory(node).iterdir():
            if folder.is_dir() and not folder.name.startswith("__cluster_metadata"):
                wipe(folder)
            elif folder.name in _OF_RECORDS:
                folder.unlink()

    def pause(self, node: int) -> None:
        """Have a node do nothing, as SIGSTOP does: it answers nobody, and its connections stay open.

        Calls of its `Broker` that ask the control thread, such as `Broker.create_topic`, wait until `resume`.

        Raises:
            RuntimeError: It is down.
        """
        broker = self._up(node)
        self._network.paused.add(node)
        self._connect()
        broker._pause()

    def resume(self, node: int) -> None:
        """Have a paused node go on: it finds out what happened meanwhile. Nothing if it is not paused.

        Raises:
            RuntimeError: It is down.
        """
        broker = self._up(node)
        self._network.paused.discard(node)
        broker._resume()
        self._connect()

    def isolate(self, *nodes: int, clients: bool = False) -> None:
        """Cut nodes off from all others: what is sent from or to them does not arrive, as if packets were dropped.

        Args:
            nodes: Each is cut off from every other one, also of these.
            clients: Whether clients do not reach them either.

        Raises:
            RuntimeError: A node is down.
        """
        for node in nodes:
            self._up(node)
        self._network.isolated.update(dict.fromkeys(nodes, clients))
        self._connect()

    def heal(self) -> None:
        """Have nobody be isolated: what was on its way arrives. Paused nodes stay paused."""
        self._network.isolated.clear()
        self._connect()

    # What is.

    def controller(self, timeout: float = TIMEOUT_S) -> int:
        """The node that is the active controller, once there is one among those that are up and reached.

        Raises:
            TimeoutError: There is none.
        """
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [node for node in self._reached() if self._nodes[node]._is_controller]
            return bool(found)

        self._wait(is_there, timeout, lambda: f"no controller is active among {self._reached()}")
        return found[0]

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The node that leads a partition; None if nobody does.

        A node that has died leads until its session is over: see `wait_leader`.

        Raises:
            UnknownTopicOrPartitionError: There is no such partition.
        """
        leader = self._partition(topic, partition).leader
        return None if leader == NO_LEADER else leader

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> int:
        """The node that leads a partition, once one does, and one other than ``other_than``.

        Raises:
            TimeoutError: Seconds were over before.
            UnknownTopicOrPartitionError: There is no such partition.
        """

        def leads() -> bool:
            return self.leader(topic, partition) not in (None, other_than)

        def reason() -> str:
            return f"{topic}-{partition} is led by {self.leader(topic, partition)}"

        self._wait(leads, timeout, reason)
        return self._partition(topic, partition).leader

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """The nodes in sync with a partition's leader, itself among them, in ascending order.

        Raises:
            UnknownTopicOrPartitionError: There is no such partition.
        """
        return tuple(sorted(self._partition(topic, partition).isr))

    def wait_isr(
        self,
        topic: str,
        partition: int = 0,
        isr: int | Iterable[int] | None = None,
        *,
        timeout: float = TIMEOUT_S,
    ) -> tuple[int, ...]:
        """Wait for a partition's ISR, and return it.

        Args:
            topic: Of the partition.
            partition: Its index.
            isr: How many are in sync, or which nodes; default: all replicas.
            timeout: Seconds.

        Raises:
            TimeoutError: It is another one by then.
            UnknownTopicOrPartitionError: There is no such partition.
        """
        wanted = isr if isr is None or isinstance(isr, int) else tuple(sorted(isr))

        def is_it() -> bool:
            found = self._partition(topic, partition)
            members = tuple(sorted(found.isr))
            if wanted is None:
                return set(members) == set(found.replicas)
            return wanted == (len(members) if isinstance(wanted, int) else members)

        self._wait(
            is_it, timeout, lambda: f"{topic}-{partition} has the ISR {self.isr(topic, partition)}"
        )
        return self.isr(topic, partition)

    def _partition(self, topic: str, index: int) -> Partition:
        image = max(self._images(), key=lambda image: image.offset)
        found = image.topics.by_name.get(topic)
        if found is None or index not in found.partitions:
            raise UnknownTopicOrPartitionError(f"there is no {topic}-{index}")
        return found.partitions[index]

    def _images(self) -> list[MetadataImage]:
        """Of the nodes that are up and reached; of all if none is."""
        return [self._nodes[node]._image() for node in self._reached() or range(self._count)]

    def _reached(self) -> list[int]:
        self._check_process()
        unreachable = self._network.unreachable
        return [n for n in range(self._count) if self._is_up(n) and n not in unreachable]

    def _start(self, node: int, give_up: Latch) -> None:
        self._nodes[node] = Broker(
            self._places.directory(node),
            config=self._places.settings(node) | self._config,
            durability=self._durability,
            give_up=give_up,
        )

    def _connect(self) -> None:
        """Have each core carry what the network does now."""
        self._check_process()
        for node in range(self._count):
            if self._is_up(node):
                accepted, peers = self._network.cut(node)
                self._nodes[node]._cut_off(accepted=accepted, peers=peers)

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ForkedError("this cluster belongs to the parent process; make one in the child")

    def _check(self, node: int) -> None:
        self._check_process()
        check_type("node", node, int, "a node's number as int")
        if not 0 <= node < self._count:
            raise IndexError(f"there is no node {node}: pass 0 to {self._count - 1}")

    def _is_up(self, node: int) -> bool:
        return node in self._nodes and not self._nodes[node].closed

    def _up(self, node: int) -> Broker:
        self._check(node)
        if not self._is_up(node):
            raise RuntimeError(f"node {node} is down")
        return self._nodes[node]

    def _running(self, node: int) -> Broker:
        broker = self._up(node)
        if node in self._network.paused:
            raise RuntimeError(f"node {node} is paused: resume it first")
        return broker

    def _wait(
        self, condition: Callable[[], bool], timeout: float, reason: Callable[[], str]
    ) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"after {timeout:g} s {reason()}")
            time.sleep(_LOOK_S)


_OF_RECORDS = frozenset(
    {
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        ".kafka_cleanshutdown",
    }
)


def _at_once(
    act: Callable[[int], object], nodes: Iterable[int], failed: Callable[[], object] = lambda: None
) -> None:
    """Do something with each node, all at the same time; the first error is raised when all are done.

    Args:
        failed: Called at the first error, so that the others do not wait for what will not come; also at Ctrl-C.
    """
    nodes = list(nodes)
    if not nodes:
        return

    errors: list[BaseException] = []

    def guarded(node: int) -> None:
        try:
            act(node)
        except BaseException as error:
            errors.append(error)
            failed()

    # An executor's threads are joined before `main_thread` reports the interpreter's exit.
    threads = [native.Thread(target=guarded, args=(n,), name=f"pykafka-cluster-{n}") for n in nodes]
    started: list[native.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        for thread in threads:
            thread.join()
    except BaseException:
        failed()
        for thread in started:
            thread.join()
        raise
    if errors:
        raise next((one for one in errors if not isinstance(one, StartGivenUpError)), errors[0])
