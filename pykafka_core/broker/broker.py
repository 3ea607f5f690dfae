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
from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.requests.calls import (
    alter_configs,
    create_topics,
    delete_topic,
    raise_code,
    raise_first_error,
)
from pykafka_core.broker.runtime.requests.requests import LocalRequest
from pykafka_core.broker.seam.core_types import CoreTypes
from pykafka_core.broker.seam.log_bridge import DRAIN_INTERVAL_MS, drain_into_logging
from pykafka_core.broker.start.joining import HasFileno, Waited, wait_joined
from pykafka_core.broker.start.listeners import bind
from pykafka_core.broker.start.plan import Plan, Started, plan
from pykafka_core.broker.start.registration import register
from pykafka_core.broker.start.startup import start
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
"""For the controller's answer at a clean stop of a node of several."""


class Broker:
    """A broker that serves when the constructor returns, until `close`.

    Args:
        data_dir: Where its logs are, made by this or by Apache Kafka; default is ``log.dirs`` of
            ``config``, and without either every log stays in memory and ends with the broker.
        listeners: As Kafka writes them, ``NAME://HOST:PORT,…``; port 0 picks one. Without any
            nothing is bound until `bootstrap_servers` is read.
        durability: What an acknowledgement promises (docs/DURABILITY.md): ``fsync`` is the default
            on disk, ``interval``, ``os``; without a directory ``memory`` is the only one.
        config: Broker settings by Kafka name, as in server.properties. Four defaults differ from
            Kafka's, so that tests are quick: ``group.initial.rebalance.delay.ms`` is 0 (the first
            members of a classic group do not wait for others);
            ``group.consumer.assignment.interval.ms`` is 0, and
            ``group.consumer.heartbeat.interval.ms`` and its minimum are 50 (members of a KIP-848
            group get their assignments at once). If a setting or its minimum is given, the default
            of the other is Kafka's.
        clock: The wall clock in milliseconds, fixed, for tests; default is the machine's.
        memory_max: Bytes that requests and answers on their way may take beside the page cache;
            one request and one answer more may be let in. Without a directory the logs may take as
            much again.
        on_failure: Called once, on the control thread, when the broker has stopped by itself (see `healthy`),
            with what was raised. `close` is still to be called.
        give_up: A file descriptor, or what has one. Once it can be read, a node of several that waits to be let into
            its cluster gives its start up. So does Ctrl-C, with `KeyboardInterrupt`. Nothing of the broker runs then.

    Raises:
        ConfigurationError: Settings that cannot be used; it lists all of them.
        StorageLockedError: Somebody else has the directory open.
        StorageError: The directory cannot be used.
        ClusterError: This node of several cannot join the others, or could not in time
            (``initial.broker.registration.timeout.ms``); `StartGivenUpError` if ``give_up`` said so.
        MetadataError: Its metadata cannot be understood, an unknown record type by name.

    Thread-safe. Its one control thread is a daemon; the interpreter's exit, the garbage collector
    and ``with`` close it. In a forked child every call raises `ForkedError`.
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
        with ExitStack() as failed:  # of the start; innermost first
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
        self._pid = os.getpid()
        self._endpoints = self._started.endpoints
        self._bound = self._started.bound
        self._closing = native.RLock()
        """Held by the thread that closes."""
        self._is_closing = False
        """Whether that thread is within `close`, which a signal handler may call in the middle of it."""
        self._close = weakref.finalize(self, _shut_down, self._loop, core, self._started, self._pid)

    def __enter__(self) -> Self:
        """Itself: it serves already."""
        self._check_usable()
        return self

    def __exit__(self, *_: object) -> None:
        """`close`."""
        self.close()

    def __repr__(self) -> str:
        """Where it listens and where its logs are."""
        known = (*self._bound, *(() if self._bound else self._started.controllers))
        state = ",".join(map(_address, known)) or "no listener"
        if self.closed or not self.healthy:
            state = "closed" if self.closed else "failed"
        return f"<Broker {state} data={self._path or 'memory'}>"

    def close(self) -> None:
        """Stop cleanly: drain, flush, mark the directory as closed cleanly. Idempotent.

        When this returns the directory can be opened again, whichever thread stopped the broker. Only the control
        thread, as `on_failure`, does not wait for another one, which waits for it.
        """
        if self._pid != os.getpid():
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
                self._loop.stop()  # the control thread may have been the first
            finally:
                self._is_closing = False

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._close.alive

    @property
    def healthy(self) -> bool:
        """Whether it serves: False once it was closed, or stopped by itself, and in a forked child.

        A broker stops by itself when its control plane meets a fault that it cannot go on with: metadata was committed
        and could not be applied. It then serves nothing: its ports are closed, every call raises `ClosedError` with
        the fault as its cause, and what was committed is applied by the next start. A fault in a single request, timer
        or log line is logged, and the broker goes on.
        """
        return self._pid == os.getpid() and not self.closed and self._loop.failure is None

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` that clients take; binds 127.0.0.1 at a free port if nothing is bound yet.

        Raises:
            ClusterError: This node is a controller only; see `bootstrap_controllers`.
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
        """``HOST:PORT`` by which other nodes and clients (``bootstrap.controllers``, KIP-919) reach this controller.

        Empty where this node is no controller of several.
        """
        self._check_usable()
        return ",".join(_address(endpoint) for endpoint in self._started.controllers)

    @property
    def listeners(self) -> Mapping[str, str]:
        """Listener name → ``HOST:PORT`` it is bound to."""
        return {endpoint.name: _address(endpoint) for endpoint in self._bound}

    @property
    def cluster_id(self) -> str:
        """As in meta.properties."""
        return self._identity.cluster_id

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._identity.node_id

    @property
    def data_dir(self) -> Path | None:
        """Where its logs are; None for memory."""
        return self._path

    @property
    def settings(self) -> BrokerConfigs:
        """As given, with this broker's defaults; altered values are what DescribeConfigs shows."""
        return self._settings

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Make a topic; when this returns every client can use it.

        Args:
            name: 1 to 249 of ``A–Z a–z 0–9 . _ -``.
            partitions: Default is ``num.partitions``.
            config: Topic settings by Kafka name.

        Raises:
            KafkaError: The code CreateTopics answers with, such as `TopicAlreadyExistsError`.
        """
        _check_name(name)
        check_type("partitions", partitions, int, "a number as int")
        count = -1 if partitions is None else partitions
        settings = as_text({} if config is None else config)
        raise_first_error(self._ask(create_topics([name], count, settings)))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            KafkaError: The code DeleteTopics answers with, such as `UnknownTopicOrPartitionError`.
        """
        _check_name(name)
        raise_first_error(self._ask(delete_topic(name)))

    def undo_alterations(self, names: Iterable[str]) -> None:
        """Undo what clients altered of broker settings: what was given, or the default, counts again.

        Args:
            names: Broker settings by Kafka name. Their synonyms, such as ``log.retention.ms`` of
                ``log.retention.hours``, are undone too; those that nobody altered are passed over.

        Raises:
            KafkaError: The code IncrementalAlterConfigs answers with, if the settings did not fit together then.
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
        """Topic name → number of partitions, internal topics included, by name."""
        self._check_usable()
        topics = self._image().topics.by_name
        return {name: len(topics[name].partitions) for name in sorted(topics)}

    def statistics(self) -> Mapping[str, int]:
        """One snapshot of the broker's counters by name; ``control.wait.ns.*`` is the GIL's toll.

        ``batches_appended``, ``records_appended``, ``bytes_appended`` (as stored) and
        ``bytes_appended_uncompressed`` are what clients produced, each batch once; with
        ``bytes_received`` and ``bytes_sent`` their changes over time are the throughput. What
        ``memory_max`` bounds now: ``input_held_bytes``, ``answers_held_bytes``,
        ``requests_parked_bytes``, and the ``connections_muted`` that wait for it.
        """
        self._check_usable()
        faults = {"control.faults.count": self._started.control.faults.count}
        return {**_counters(self._core.statistics()), **self._loop.waits.snapshot(), **faults}

    def metrics(self) -> str:
        """Counters, partitions and groups in Prometheus' text format; ``serve --metrics`` offers it over HTTP.

        Each partition takes some 20 µs of the calling thread, and the first
        time after a start about a millisecond: its log is opened.
        """
        from pykafka_core.broker.metrics.collect import collect

        return collect(self._sources())

    def health(self) -> "Health":
        """The faults of the node's partitions and of its directory: names by state.

        A node judges its own logs and the followers of partitions that it leads, and the active
        controller judges all leaders. `pykafka_core.metadata.health` lists the states. Every state
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
        """Why a consumer group rebalances or waits: its members, who is waited for, lag, and what happened last.

        Ready for JSON; ``explanation`` is a list of sentences. None if there is no such group.

        Raises:
            KafkaError: Another node coordinates the group, or this one has not loaded it yet.
        """
        from pykafka_core.broker.metrics.why import why

        return why(self._sources(), group_id)

    # For `Cluster`: what befalls a process.

    @property
    def _is_controller(self) -> bool:
        """Whether it is the active controller; a broker that is alone is."""
        membership = self._started.control.dispatcher.membership
        return self.healthy and (membership is None or membership.leads)

    def _cut_off(self, *, accepted: bool, peers: Sequence[tuple[str, int]] | None) -> None:
        """As of the core."""
        self._core.cut_off(accepted=accepted, peers=peers)

    def _pause(self) -> None:
        """Have the control thread stand still; what it has said before is cut off by the caller."""
        self._loop.pause()

    def _resume(self) -> None:
        self._loop.resume()

    def _kill(self) -> None:
        """End as the death of the process would; on return the directory can be opened again."""
        with self._closing:
            if self._close.detach() is None:
                return
            # What the control thread still says reaches nobody, and what it writes a moment later death would, too.
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
        """The changes that undo what was altered of these names: nearly all delete it."""
        altered = self._image().configs.of(*resource)
        changes = dict[str, str | None].fromkeys(sorted(names & altered.keys()))
        if _MIN_ISR in changes and not resource.name:
            # The cluster has its own from the first start on, which must not be deleted (KIP-966).
            changes[_MIN_ISR] = self._settings.broker_value(_MIN_ISR)
            if changes[_MIN_ISR] == altered[_MIN_ISR]:
                del changes[_MIN_ISR]
        return changes

    def _wait_joined(self, settings: BrokerConfigs, give_up: "int | HasFileno | None") -> None:
        """Return once it may serve."""
        joined = self._started.joined
        if joined is None:
            return
        timeout_ms = sys.maxsize  # of a controller that is no broker, as in Kafka
        if settings.start.is_broker:
            timeout_ms = settings.int("initial.broker.registration.timeout.ms")
        waited = wait_joined(joined, give_up, timeout_ms)
        if self._loop.failure is not None:
            raise self._loop.failure
        if waited is Waited.GIVEN_UP:
            raise StartGivenUpError("the start was given up while this node waited for its cluster")
        if waited is Waited.LATE:
            raise ClusterError(
                f"this broker could not join its cluster within {timeout_ms} ms "
                "(initial.broker.registration.timeout.ms): see whether a majority of the controllers runs "
                "and can be reached, and whether another broker has its node.id"
            )

    def _check_usable(self) -> None:
        if self._pid != os.getpid():
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


def _begin(core: Core, types: CoreTypes, planned: Plan) -> Started:
    if not planned.is_member:
        return start(core, types, planned)
    # Not before: a broker that is alone has no use for it.
    from pykafka_core.broker.start.member import start_member

    return start_member(core, types, planned)


def _shut_down(loop: ControlLoop, core: Core, started: Started, pid: int) -> None:
    """What is left to do when the broker goes; nothing in a forked child, which has no threads."""
    if pid == os.getpid():
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
    """Have the controller move what is led here; one that does not answer holds up no stop for long."""
    left = native.Event()
    membership.leave(left.set)
    core.wake()
    left.wait(LEAVE_S)


def _end(core: Core, started: Started, grace_ms: int) -> None:
    """Stop everything but the control thread, each part whatever becomes of those before it. Idempotent."""
    faults, snapshots = started.control.faults, started.snapshots
    with ExitStack() as end:  # innermost first
        end.callback(faults.guard, "log lines", drain_into_logging(core))
        end.callback(faults.guard, "late events", lambda: _take_late(core, started))
        end.callback(faults.guard, "the core's stop", lambda: core.stop(grace_ms))
        if snapshots is not None:
            end.callback(faults.guard, "a snapshot", snapshots.finish)


def _take_late(core: Core, started: Started) -> None:
    """Report faults whose events the stop left in the queue."""
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
    """The core's counters: a line of ``name value`` each."""
    pairs = (line.split() for line in lines.decode("ascii").splitlines())
    return {name: int(value) for name, value in pairs}


def _address(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"
