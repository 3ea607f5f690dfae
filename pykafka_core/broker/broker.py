"""`Broker`: a Kafka broker inside this process."""

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.arguments import (
    QUICK,
    as_text,
    check_type,
    data_dir_of,
    durability_of,
    with_defaults,
)
from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.core_bridge.log_bridge import DRAIN_INTERVAL_MS, drain_into_logging
from pykafka_core.broker.forks import OwnProcess
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.requests.calls import (
    alter_configs,
    create_topics,
    delete_topic,
    raise_code,
    raise_first_error,
)
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.start.joining import HasFileno, Waited, wait_joined
from pykafka_core.broker.start.listeners import bind
from pykafka_core.broker.start.registration import register
from pykafka_core.broker.start.startup import start
from pykafka_core.broker.start.startup_config import Started, StartupConfig, plan
from pykafka_core.broker.storage.reserve import CHECK_INTERVAL_MS
from pykafka_core.config import EMBEDDED_LISTENER, BrokerConfigs, family_of, parse_listeners
from pykafka_core.errors import (
    ClosedError,
    ClusterError,
    ConfigurationError,
    ForkedError,
    StartGivenUpError,
)
from pykafka_core.metadata.image.image import Endpoint, MetadataImage
from pykafka_core.protocol.messages import Message
from pykafka_core.types import (
    RESOURCE_BROKER,
    ConfigResource,
    Durability,
    random_id,
)

if TYPE_CHECKING:
    from pykafka_core._core import CoreOptions
    from pykafka_core.broker.metrics.collect import Sources
    from pykafka_core.broker.runtime.membership.membership import Membership
    from pykafka_core.metadata.health import Health

_MIN_ISR = "min.insync.replicas"

_log = GuardedLogger(__name__)

MEMORY_MAX = 256 * 1024 * 1024
STOP_GRACE_MS = 5000
LEAVE_S = 10
"""Maximum time to wait for the controller when a node of a cluster stops cleanly."""


class Broker:
    """A broker that serves when the constructor returns, until `close`.

    Args:
        data_dir: Directory of the logs, created by this broker or by Apache Kafka; default is
            ``log.dirs`` of ``config``, and without either every log stays in memory and ends with
            the broker.
        listeners: Kafka's ``listeners``, ``NAME://HOST:PORT,…``; port 0 selects a free port.
            Without listeners nothing is bound until `bootstrap_servers` is read.
        durability: The guarantee of an acknowledgement (docs/DURABILITY.md): ``fsync`` (the default
            on disk), ``interval`` or ``os``; without a directory only ``memory``.
        config: Broker settings by Kafka name, as in server.properties. Four defaults differ from
            Kafka's, so that tests are quick: ``group.initial.rebalance.delay.ms`` is 0 (the first
            members of a classic group do not wait for others);
            ``group.consumer.assignment.interval.ms`` is 0, and
            ``group.consumer.heartbeat.interval.ms`` and its minimum are 50 (members of a KIP-848
            group get their assignments at once). If a setting or its minimum is given, the default
            of the other is Kafka's.
        clock: A fixed wall-clock time in milliseconds, for tests; default is the system clock.
        memory_max: Maximum bytes of requests and responses in progress, without the page cache; one
            more request and one more response may be admitted. Without a directory, the logs may
            use the same amount again.
        on_failure: Called once with the exception, on the control thread, when the broker has
            stopped because of a fault (see `healthy`). `close` must still be called.
        give_up: A file descriptor, or an object with ``fileno()``. When it becomes readable, a node
            that waits to join its cluster cancels its start. Ctrl-C also cancels it, with
            `KeyboardInterrupt`. No part of the broker runs after that.

    Raises:
        ConfigurationError: Settings are invalid; it lists all of them.
        StorageLockedError: Another broker or process has the directory open.
        StorageError: The directory cannot be used.
        ClusterError: This node cannot join its cluster, or could not in time
            (``initial.broker.registration.timeout.ms``); `StartGivenUpError` if ``give_up`` became
            readable.
        MetadataError: The metadata cannot be read; it names an unknown record type.

    Thread-safe. The control thread is a daemon. The broker is also closed at the interpreter's
    exit, by the garbage collector and by ``with``. In a forked child every call raises
    `ForkedError`.
    """

    _defaults: ClassVar[Sequence[Mapping[str, str]]] = QUICK

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        listeners: str | None = None,
        durability: Durability | None = None,
        config: Mapping[str, object] | None = None,
        clock: int | None = None,
        memory_max: int = MEMORY_MAX,
        on_failure: Callable[[BaseException], object] | None = None,
        give_up: int | HasFileno | None = None,
    ) -> None:
        check_type("listeners", listeners, str, "NAME://HOST:PORT as str")
        check_type("clock", clock, int, "milliseconds as int")
        check_type("memory_max", memory_max, int, "bytes as int")
        if memory_max <= 0:
            raise ConfigurationError([f"memory_max={memory_max}: pass a number of bytes above 0"])
        check_type("on_failure", on_failure, Callable, "a function")  # type: ignore[arg-type]
        given = as_text({} if config is None else config)
        if listeners is not None:
            given["listeners"] = listeners
        settings = BrokerConfigs(with_defaults(given, self._defaults))
        for warning in settings.warnings:
            _log.warning("%s", warning)
        path = data_dir_of(data_dir, settings)
        durability = durability_of(durability, path)
        settings = settings.with_durability(durability)
        planned = plan(settings, path, lambda: random_id(os.urandom))
        settings = planned.settings
        core, types = _make_core(
            path=path,
            node_id=planned.identity.node_id,
            cluster_id=planned.identity.cluster_id,
            durability=durability,
            memory_max=memory_max,
            clock=clock,
        )
        with ExitStack() as failed:  # undoes a failed start; innermost first
            failed.callback(core.stop, 0)
            self._started = _begin(core, types, planned)
            self._loop = _loop(core, self._started, settings, on_failure)
            failed.callback(self._loop.stop)
            self._loop.start()
            self._wait_joined(settings, give_up)
            failed.pop_all()
        self._settings = settings
        self._identity = planned.identity
        self._path = path
        self._core = core
        self._lock = native.Lock()
        self._process = OwnProcess()
        self._endpoints = self._started.endpoints
        self._bound = self._started.bound
        self._closing = native.RLock()
        """Held by the thread that closes."""
        self._is_closing = False
        """Whether that thread is in `close`, which a signal handler may call again."""
        self._close = weakref.finalize(
            self, _shut_down, self._loop, core, self._started, self._process
        )

    def __enter__(self) -> Self:
        """Return this broker, which already serves."""
        self._check_usable()
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()

    def __repr__(self) -> str:
        """Show the listeners and the data directory."""
        known = (*self._bound, *(() if self._bound else self._started.controllers))
        state = ",".join(map(_address, known)) or "no listener"
        if self.closed or not self.healthy:
            state = "closed" if self.closed else "failed"
        return f"<Broker {state} data={self._path or 'memory'}>"

    def close(self) -> None:
        """Stop cleanly: drain, flush, mark the directory as closed cleanly. Idempotent.

        On return the directory can be opened again, whichever thread stopped the broker. Only the
        control thread, in `on_failure`, does not wait for another closing thread, because that
        thread waits for it.
        """
        if not self._process.is_current:
            return
        if self._loop.is_current:
            self._close()
            return
        with self._closing:
            if self._is_closing:
                return
            self._is_closing = True
            try:
                self._close()
                self._loop.stop()  # waits if the control thread has closed it
            finally:
                self._is_closing = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._close.alive

    @property
    def healthy(self) -> bool:
        """Whether it serves: False after it was closed or stopped because of a fault, and in a
        forked child.

        A broker stops by itself when its control plane meets an unrecoverable fault: metadata was
        committed and could not be applied. It then serves nothing: its ports are closed, every call
        raises `ClosedError` with the fault as its cause, and the next start applies the committed
        metadata. A fault in a single request, timer or log line is logged, and the broker
        continues.
        """
        return self._process.is_current and not self.closed and self._loop.failure is None

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` for clients; binds 127.0.0.1 at a free port if nothing is bound yet.

        Raises:
            ClusterError: This node is only a controller; see `bootstrap_controllers`.
        """
        self._check_usable()
        if not self._settings.start.is_broker:
            raise ClusterError(
                "this node is a controller only and serves no clients: name brokers of its cluster as "
                f"bootstrap.servers, or bootstrap.controllers={self.bootstrap_controllers}"
            )
        with self._lock:
            if not self._bound:
                self._bind_embedded()
        return ",".join(_address(endpoint) for endpoint in self._endpoints)

    @property
    def bootstrap_controllers(self) -> str:
        """``HOST:PORT`` of this controller for other nodes and clients (``bootstrap.controllers``,
        KIP-919).

        Empty unless this node is a controller in a multi-node cluster.
        """
        self._check_usable()
        return ",".join(_address(endpoint) for endpoint in self._started.controllers)

    @property
    def listeners(self) -> Mapping[str, str]:
        """Bound address, ``HOST:PORT``, by listener name."""
        return {endpoint.name: _address(endpoint) for endpoint in self._bound}

    @property
    def cluster_id(self) -> str:
        """The cluster id in meta.properties."""
        return self._identity.cluster_id

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._identity.node_id

    @property
    def data_dir(self) -> Path | None:
        """Directory of the logs; None for memory."""
        return self._path

    @property
    def settings(self) -> BrokerConfigs:
        """The settings at the start, with this broker's defaults; DescribeConfigs also shows
        altered values.
        """
        return self._settings

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic; on return every client can use it.

        Args:
            name: 1 to 249 of ``A–Z a–z 0–9 . _ -``.
            partitions: Default is ``num.partitions``.
            config: Topic settings by Kafka name.

        Raises:
            KafkaError: The error of CreateTopics, such as `TopicAlreadyExistsError`.
        """
        _check_name(name)
        check_type("partitions", partitions, int, "a number as int")
        count = -1 if partitions is None else partitions
        settings = as_text({} if config is None else config)
        raise_first_error(self._ask(create_topics([name], count, settings)))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            KafkaError: The error of DeleteTopics, such as `UnknownTopicOrPartitionError`.
        """
        _check_name(name)
        raise_first_error(self._ask(delete_topic(name)))

    def undo_alterations(self, names: Iterable[str]) -> None:
        """Undo changes of broker settings by clients: the given or default values apply again.

        Args:
            names: Broker settings by Kafka name. Their synonyms, such as ``log.retention.ms`` of
                ``log.retention.hours``, are undone too; unchanged settings are skipped.

        Raises:
            KafkaError: The error of IncrementalAlterConfigs, if the resulting settings are
                inconsistent.
        """
        self._check_usable()
        if isinstance(names, str):
            raise TypeError(f"names are several, such as [{names!r}]")
        wanted = {synonym for name in names for synonym in family_of(name)}
        resources = (ConfigResource(RESOURCE_BROKER, name) for name in ("", str(self.node_id)))
        changes = {resource: self._undone(resource, wanted) for resource in resources}
        if any(changes.values()):
            raise_first_error(self._ask(alter_configs(changes)))

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions by topic name, sorted, with internal topics."""
        self._check_usable()
        topics = self._image().topics.by_name
        return {name: len(topics[name].partitions) for name in sorted(topics)}

    def statistics(self) -> Mapping[str, int]:
        """Return a snapshot of the broker's counters; ``control.wait.ns.*`` includes waits for the
        GIL.

        ``batches_appended``, ``records_appended``, ``bytes_appended`` (as stored) and
        ``bytes_appended_uncompressed`` count the batches that clients produced, each once; together
        with ``bytes_received`` and ``bytes_sent`` they show the throughput. Values that
        ``memory_max`` limits: ``input_held_bytes``, ``responses_held_bytes``,
        ``requests_parked_bytes``, and the ``connections_muted`` that wait for memory.
        """
        self._check_usable()
        faults = {"control.faults.count": self._started.control.faults.count}
        return {**_counters(self._core.statistics()), **self._loop.waits.snapshot(), **faults}

    def metrics(self) -> str:
        """Return counters, partitions and groups in Prometheus' text format; also served by ``serve
        --metrics``.

        Each partition takes some 20 µs on the calling thread, and the first time after a start
        about a millisecond, because its log is opened.
        """
        from pykafka_core.broker.metrics.collect import collect

        return collect(self._sources())

    def health(self) -> "Health":
        """Return the faults of the node's partitions and of its directory: names by state.

        A node checks its own logs and the followers of partitions that it leads; the active
        controller checks all leaders. `pykafka_core.metadata.health` lists the states. Every state
        is a key.
        """
        from pykafka_core.metadata.health import NodeRole, assess
        from pykafka_core.metadata.partition_rules import PartitionRules

        self._check_usable()
        publisher, path = self._started.control.publisher, self._path
        log_dir = "memory" if path is None else os.path.abspath(path)
        image = publisher.image
        rules = PartitionRules(image, publisher.settings)
        node = NodeRole(self.node_id, log_dir, self._is_controller)
        return assess(image, self._started.control.replicas, rules.own_min_isr, node)

    def explain_group(self, group_id: str) -> Mapping[str, object] | None:
        """Explain why a consumer group rebalances or waits: members, missing members, lag and
        recent events.

        The result can be written as JSON; ``explanation`` is a list of sentences. None if the group
        does not exist.

        Raises:
            KafkaError: Another node coordinates the group, or this node has not loaded it yet.
        """
        from pykafka_core.broker.metrics.why import why

        return why(self._sources(), group_id)

    # For `Cluster`: simulated process failures.

    @property
    def _is_controller(self) -> bool:
        """Return whether it is the active controller; a single broker always is."""
        membership = self._started.control.dispatcher.membership
        return self.healthy and (membership is None or membership.leads)

    def _cut_off(self, *, accepted: bool, peers: Sequence[tuple[str, int]] | None) -> None:
        """See `pykafka_core._core.Core.cut_off`."""
        self._core.cut_off(accepted=accepted, peers=peers)

    def _pause(self) -> None:
        """Suspend the control thread; the caller must cut off what it has already sent."""
        self._loop.pause()

    def _resume(self) -> None:
        self._loop.resume()

    def _kill(self) -> None:
        """Simulate the death of the process; on return the directory can be opened again."""
        with self._closing:
            if self._close.detach() is None:
                return
            # From now on the control thread's messages are dropped. A process that dies a moment
            # later could also still have written to its disk.
            self._core.cut_off(accepted=True, peers=None)
            with ExitStack() as end:  # innermost first
                if self._started.joined is not None:
                    end.callback(self._started.joined.close)
                end.callback(self._core.abandon)
                if self._started.snapshots is not None:
                    end.callback(self._started.snapshots.finish)
                end.callback(self._loop.stop)

    def _sources(self) -> "Sources":
        from pykafka_core.broker.metrics.collect import Sources

        self._check_usable()
        return Sources(
            self._core, self.node_id, self._image, self.statistics, self._ask, self.health
        )

    def _image(self) -> MetadataImage:
        return self._started.control.publisher.image

    def _undone(self, resource: ConfigResource, names: AbstractSet[str]) -> dict[str, str | None]:
        """Return the changes that undo alterations of these settings; nearly all are deletions."""
        altered = self._image().configs.of(*resource)
        changes = dict[str, str | None].fromkeys(sorted(names & altered.keys()))
        if _MIN_ISR in changes and not resource.name:
            # The cluster has its own value since its first start, which must not be deleted
            # (KIP-966).
            changes[_MIN_ISR] = self._settings.broker_value(_MIN_ISR)
            if changes[_MIN_ISR] == altered[_MIN_ISR]:
                del changes[_MIN_ISR]
        return changes

    def _wait_joined(self, settings: BrokerConfigs, give_up: "int | HasFileno | None") -> None:
        """Return once the broker may serve."""
        joined = self._started.joined
        if joined is None:
            return
        timeout_ms = sys.maxsize  # a node that is only a controller waits forever, as in Kafka
        if settings.start.is_broker:
            timeout_ms = settings.int("initial.broker.registration.timeout.ms")
        waited = wait_joined(joined, give_up, timeout_ms)
        if self._loop.failure is not None:
            raise self._loop.failure
        if waited is Waited.GIVEN_UP:
            raise StartGivenUpError(
                "the start was cancelled while this node waited for its cluster"
            )
        if waited is Waited.LATE:
            raise ClusterError(
                f"this broker could not join its cluster within {timeout_ms} ms "
                "(initial.broker.registration.timeout.ms): see whether a majority of the controllers runs "
                "and can be reached, and whether another broker has its node.id"
            )

    def _check_usable(self) -> None:
        if not self._process.is_current:
            raise ForkedError("this broker belongs to the parent process; make one in the child")
        if self.closed:
            raise ClosedError("this broker is closed")
        failure = self._loop.failure
        if failure is not None:
            reason = f"{type(failure).__name__}: {failure}"
            raise ClosedError(f"this broker stopped because of a fault, {reason}") from failure

    def _bind_embedded(self) -> None:
        bound = bind(self._core, parse_listeners(EMBEDDED_LISTENER))
        raise_code(self._ask(register(self._identity, bound)))
        self._bound = self._endpoints = bound

    def _ask(self, request: LocalRequest) -> Message:
        self._check_usable()
        self._loop.submit(request)
        return request.wait()


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name={name!r}: pass a topic's name as str")


def _loop(
    core: Core,
    started: Started,
    settings: BrokerConfigs,
    on_failure: Callable[[BaseException], object] | None,
) -> ControlLoop:
    control, now_ns = started.control, core.now_ns()
    timers = control.timers
    retention_ms = settings.int("log.retention.check.interval.ms")
    timers.every("retention", retention_ms, now_ns, control.maintenance.enforce_retention)
    timers.every("log lines", DRAIN_INTERVAL_MS, now_ns, drain_into_logging(core))
    if started.snapshots is not None:
        every_ms = started.snapshots.check_interval_ms
        timers.every("snapshot", every_ms, now_ns, control.publisher.write_snapshot_if_due)
    if started.reserve is not None:
        timers.every("reserve", CHECK_INTERVAL_MS, now_ns, started.reserve.refill)

    failing: list[Callable[[BaseException], object]] = [lambda _: _end(core, started, 0)]
    joined = started.joined
    if joined is not None:
        failing.append(lambda _: joined.set())
    if on_failure is not None:
        failing.append(on_failure)
    return ControlLoop(core, control.dispatcher, timers, "pykafka-core-control", failing)


def _begin(core: Core, types: CoreTypes, planned: StartupConfig) -> Started:
    if not planned.is_member:
        return start(core, types, planned)
    # Imported only here, because a single broker does not need it.
    from pykafka_core.broker.start.member import start_member

    return start_member(core, types, planned)


def _shut_down(loop: ControlLoop, core: Core, started: Started, process: OwnProcess) -> None:
    """Stop the broker; does nothing in a forked child, which has no threads."""
    if process.is_current:
        membership = started.control.dispatcher.membership
        try:
            if membership is not None and not loop.is_current and loop.failure is None:
                _leave(core, membership)
            loop.stop()
        finally:
            _end(core, started, STOP_GRACE_MS)
        if started.joined is not None and not loop.is_current:
            started.joined.close()


def _leave(core: Core, membership: "Membership") -> None:
    """Ask the controller to move partition leaders away; waits at most `LEAVE_S`."""
    left = native.Event()
    membership.leave(left.set)
    core.wake()
    left.wait(LEAVE_S)


def _end(core: Core, started: Started, grace_ms: int) -> None:
    """Stop everything but the control thread; an error in one part does not keep the others
    running. Idempotent.
    """
    faults, snapshots = started.control.faults, started.snapshots
    with ExitStack() as end:  # innermost first
        end.callback(faults.guard, "log lines", drain_into_logging(core))
        end.callback(faults.guard, "late events", lambda: _take_late(core, started))
        end.callback(faults.guard, "the core's stop", lambda: core.stop(grace_ms))
        if snapshots is not None:
            end.callback(faults.guard, "a snapshot", snapshots.finish)


def _take_late(core: Core, started: Started) -> None:
    """Report faults whose events are still in the queue after the stop."""
    while events := core.wait(0):
        for event in events:
            started.control.dispatcher.take_late(event)


def _make_core(
    *,
    path: Path | None,
    node_id: int,
    cluster_id: str,
    durability: Durability,
    memory_max: int,
    clock: int | None,
) -> tuple[Core, CoreTypes]:
    from pykafka_core import _core

    options: CoreOptions = _core.CoreOptions(
        data_dir=None if path is None else os.fspath(path),
        node_id=node_id,
        cluster_id=cluster_id,
        durability=durability,
        memory_max=memory_max,
        clock_ms=clock,
    )
    return _core.Core(options), _core


def _counters(lines: bytes) -> dict[str, int]:
    """Parse the core's counters: lines of ``name value``."""
    pairs = (line.split() for line in lines.decode("ascii").splitlines())
    return {name: int(value) for name, value in pairs}


def _address(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"
