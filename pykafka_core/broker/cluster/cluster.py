"""`Cluster`: a Kafka cluster of several brokers in this process, for failover tests.

Theory of operation. Each node is a `Broker` with a data directory and two ports on 127.0.0.1, as
broker and controller; nodes communicate over TCP, as separate processes do. All share one engine,
and each has its own control thread. Process failures are simulated with two calls to the core:
`abandon` stops a node without closing its connections cleanly or writing another byte to its disk,
and `cut_off` drops all traffic of connections, as if packets were lost. A paused node is cut off
from all others while its control thread is suspended, so its timers fire late, as after SIGSTOP.

`leader`, `isr` and `controller` use the newest metadata of the nodes that are up and connected.
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
from pykafka_core.broker.forks import OwnProcess
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
"""Poll interval of waits for metadata."""


class Cluster:
    """Several brokers that form one cluster, and serve when the constructor returns, until `close`.

    Args:
        brokers: Number of nodes, 1 to 7; each is broker and controller. Node ids are 0, 1, …, the
            indexes of the property `brokers`: ``cluster.kill(cluster.leader("orders"))``.
        config: Settings of every node by Kafka name. The defaults suit failover tests: a topic has
            3 replicas and ``acks=all`` waits for 2, fewer if there are fewer brokers; a silent node
            is fenced after two seconds (``broker.session.timeout.ms``,
            ``replica.lag.time.max.ms``), a controller is replaced after one; internal topics have 4
            partitions. Groups have the quick settings of `Broker`.
        data: A directory for the nodes' data, with one folder per node; default is a temporary
            directory, which is deleted with the cluster.
        durability: Of every node. The default is ``os``, the fastest, because simulated failures
            never lose written data.

    Raises:
        ConfigurationError: Settings are invalid.
        StorageError: The directory belongs to another number of nodes, or cannot be used.
        ClusterError: The nodes did not form a cluster in time.

    For use by one thread; the nodes themselves are thread-safe. Invalid node numbers raise
    IndexError. In a forked child every call raises `ForkedError`, and `close` does nothing.
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
        self._process = OwnProcess()
        self._closed = False
        self._starting: list[Latch] = []
        """Cancels each start in progress, in any thread. Guarded, like `_closed`, by `_starts`."""
        self._starts = native.Condition()
        try:
            self.start(*range(brokers))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return this cluster, which already serves."""
        self._check_process()
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()

    def __repr__(self) -> str:
        """Show how many nodes are up, and the data directory."""
        up = sum(self._is_up(node) for node in range(self._count))
        return f"<Cluster {up} of {self._count} up, data={self._places.folder}>"

    def close(self) -> None:
        """Stop all nodes: cleanly if their data are kept, else by killing them. Idempotent.

        Starts that other threads wait for are cancelled.
        """
        if not self._process.is_current:
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
        """The brokers by node id.

        A node that is down has its closed `Broker`; `start` replaces it by a new one.
        """
        return tuple(self._nodes[node] for node in range(self._count))

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` of every node, up or down, for clients."""
        return ",".join(self._places.bootstrap(node) for node in range(self._count))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        """Create a topic; on return every node that is up and connected has it in its metadata.

        Args:
            name: See `Broker.create_topic`, also for the other arguments and errors.
            partitions: Default is ``num.partitions``.
            config: Topic settings by Kafka name.
            timeout: Seconds.

        Raises:
            TimeoutError: No controller created it, or it is missing in a node's metadata at that
                time.
        """
        deadline = time.monotonic() + timeout
        is_in_doubt = False
        while True:
            try:
                node = self.controller(deadline - time.monotonic())
                self._nodes[node].create_topic(name, partitions, config=config)
            except NotControllerError:  # no longer active; the topic may have been created
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

    # Node failures.

    def start(self, *nodes: int) -> None:
        """Start nodes that are down; return when all of them serve.

        If fewer than a majority of all nodes would be up, this waits until other threads start more
        nodes.

        Raises:
            RuntimeError: A node is up, or isolated and therefore could not join. The cluster is
                closed, or was closed during the start.
            ClusterError: The nodes could not join within
                ``initial.broker.registration.timeout.ms``.
        """
        with self._start_under_way() as give_up:
            for node in nodes:
                self._check(node)
                if self._is_up(node):
                    raise RuntimeError(f"node {node} is up")
                if node in self._network.isolated:
                    raise RuntimeError(f"node {node} is isolated: heal() first")
            # The node with the lowest id starts the first election of a new cluster: start the
            # others first, to receive its requests.
            order = sorted(nodes, reverse=True)
            _at_once(lambda node: self._start(node, give_up), order, give_up.set)
            self._connect()

    @contextmanager
    def _start_under_way(self) -> Iterator[Latch]:
        """Register a start that `close` cancels and waits for."""
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
        """Stop nodes cleanly, one after the other; their partition leaders move to other nodes
        first.

        Raises:
            RuntimeError: A node is down, or paused, and could not react.
        """
        for node in nodes:
            self._running(node).close()

    def kill(self, *nodes: int) -> None:
        """Stop nodes like kill -9; all of them are cut off before the first one is stopped.

        Connections are not closed cleanly, and nothing more is written or synced. Written data
        remain in the page cache, as after the death of a process. A paused node can be killed.

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
        """Delete all partition data of a stopped node, as if its disk was replaced.

        The node keeps its identity and the metadata log, because a voter must not forget its votes.
        It fetches everything else from the leaders when it is started.

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
        """Suspend a node, as SIGSTOP does: it does not respond, and its connections stay open.

        Calls of its `Broker` that need the control thread, such as `Broker.create_topic`, wait
        until `resume`.

        Raises:
            RuntimeError: The node is down.
        """
        broker = self._up(node)
        self._network.paused.add(node)
        self._connect()
        broker._pause()

    def resume(self, node: int) -> None:
        """Resume a paused node, which then catches up with the cluster.

        Does nothing if it is not paused.

        Raises:
            RuntimeError: The node is down.
        """
        broker = self._up(node)
        self._network.paused.discard(node)
        broker._resume()
        self._connect()

    def isolate(self, *nodes: int, clients: bool = False) -> None:
        """Cut nodes off from all others: traffic from and to them is dropped, as if packets were
        lost.

        Args:
            nodes: Each is cut off from every other node, also from the other nodes in this list.
            clients: Whether clients are cut off from them too.

        Raises:
            RuntimeError: A node is down.
        """
        for node in nodes:
            self._up(node)
        self._network.isolated.update(dict.fromkeys(nodes, clients))
        self._connect()

    def heal(self) -> None:
        """Reconnect all isolated nodes; traffic that was held back arrives.

        Paused nodes stay paused.
        """
        self._network.isolated.clear()
        self._connect()

    # State.

    def controller(self, timeout: float = TIMEOUT_S) -> int:
        """Return the active controller, once one of the connected nodes is active.

        Raises:
            TimeoutError: There is none within ``timeout`` seconds.
        """
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [node for node in self._reached() if self._nodes[node]._is_controller]
            return bool(found)

        self._wait(is_there, timeout, lambda: f"no controller is active among {self._reached()}")
        return found[0]

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the leader of a partition; None if there is no leader.

        A node that was killed remains the leader until its session ends: see `wait_leader`.

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
        """Return the leader of a partition, once it has a leader other than ``other_than``.

        Raises:
            TimeoutError: There is none within ``timeout`` seconds.
            UnknownTopicOrPartitionError: There is no such partition.
        """

        def leads() -> bool:
            return self.leader(topic, partition) not in (None, other_than)

        def reason() -> str:
            return f"{topic}-{partition} is led by {self.leader(topic, partition)}"

        self._wait(leads, timeout, reason)
        return self._partition(topic, partition).leader

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the in-sync replicas of a partition, including the leader, in ascending order.

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
            topic: Name of the topic.
            partition: Index of the partition.
            isr: Number of in-sync replicas, or their node ids; default: all replicas.
            timeout: Seconds.

        Raises:
            TimeoutError: The ISR is different after ``timeout`` seconds.
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
        """Images of the nodes that are up and connected; of all nodes if none is."""
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
        """Apply the state of the network to each core."""
        self._check_process()
        for node in range(self._count):
            if self._is_up(node):
                accepted, peers = self._network.cut(node)
                self._nodes[node]._cut_off(accepted=accepted, peers=peers)

    def _check_process(self) -> None:
        if not self._process.is_current:
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
    """Run ``act`` for all nodes in parallel; raise the first error when all calls have ended.

    Args:
        failed: Called at the first error and at Ctrl-C, to end calls that wait for the failed one.
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

    # No executor: its threads are joined before `main_thread` reports the interpreter's exit.
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
