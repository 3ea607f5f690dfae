"""The compiled core: the interface between Rust and Python (docs/PLANES.md), the codec and the log
library.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, Self, final

from pykafka_core.protocol.messages import Message

__version__: str
__profile__: tuple[str, int]
"""("debug" or "release", opt-level): the compile profile."""

def return_freed_memory() -> bool:
    """Return blocks of 4 MiB and more to the system when they are freed, and use only two heaps for
    all threads.

    This setting applies to the whole process. Use it in a process that only runs a broker, before
    it starts threads. ``False`` if the C library is not glibc, which would keep up to 32 MiB of
    such blocks in the heap of each thread.
    """

# --- The control API ---------------------------------------------------------------------------
# docs/PLANES.md has the rules S1 to S7 and the owner of each fact.

Token = int
"""Chosen by Python, never reused while open; every asynchronous command completes it exactly
once.
"""

PartitionId = tuple[bytes, int]
"""(topic id, 16 bytes; partition index)."""

KeyValue = tuple[bytes | None, bytes | None]

LogFault = Literal["offline", "read_only", "unreadable", "uncleanable"]

Peer = tuple[str, str, int]
"""Another node's listener: purpose, host, port. Each purpose has a separate connection."""

Marker = tuple[bytes, int, int, int, int, bool, int]
"""The end of a transaction in one partition: topic id, partition, producer id, producer epoch,
coordinator epoch, whether it is committed, transaction version (Kafka's feature).
"""

@final
class CoreOptions:
    """Options of a core; immutable.

    Args:
        data_dir: The only log directory; ``None`` keeps every log in memory.
        node_id: This broker.
        cluster_id: The cluster id in meta.properties.
        durability: ``fsync``, ``interval``, ``os`` or ``memory``: the default of ``flush.messages``
            and ``flush.ms`` for topics without their own.
        memory_max: Maximum bytes of requests and responses in progress; without a data directory
            also of logs.
        clock_ms: A fixed wall clock for tests: ``None`` is the system clock.
    """

    def __new__(
        cls,
        *,
        data_dir: str | None,
        node_id: int,
        cluster_id: str,
        durability: Literal["fsync", "interval", "os", "memory"],
        memory_max: int = 268435456,
        clock_ms: int | None = None,
    ) -> Self: ...

@final
class Core:
    """One broker's data plane. Thread-safe; every call that can block releases the GIL.

    The constructor locks the data directory (``StorageLockedError`` names the owner), reads its
    checkpoints and the clean-shutdown marker, and deletes that marker. Partitions are opened only
    after `apply` lists them.
    """

    def __new__(cls, options: CoreOptions) -> Self: ...
    # life cycle
    def wait(self, deadline_ns: int, events_max: int = 256) -> list[Event]:
        """Block until there are events, the deadline (of `now_ns`) or `wake`; ``[]`` at the
        deadline and after `stop`.
        """
    def wake(self) -> None: ...
    def now_ns(self) -> int: ...
    def horizon_ns(self) -> int:
        """Return the time up to which `wait` has returned everything: that of the oldest unread
        event, or now.

        A request counts from its arrival, once it is queued.
        """
    def time_ms(self) -> int: ...
    def listen(
        self,
        name: str,
        address: str,
        controller_apis: Mapping[int, tuple[int, int]] | None = None,
        *,
        audience: Literal["clients", "nodes", "both"] = "clients",
    ) -> int:
        """Bind ``HOST:PORT`` (port 0 selects a free port); return the port.

        Requests are handled only after `serve`.

        Args:
            name: Name of the listener.
            address: ``HOST:PORT``.
            controller_apis: Makes it a controller listener with these APIs and versions: every
                request is sent as a `Request`, including Fetch, and before `serve`. The core
                handles ApiVersions.
            audience: The peers of the listener. Connection limits delay clients only. On a listener
                of both, a connection from the address of a registered broker counts as a node's.
        """
    def serve(self) -> None: ...
    def stop(self, grace_ms: int) -> None: ...
    # failover tests: simulated process failures of one of several brokers in a process
    def abandon(self) -> None:
        """Stop as if the process had died: no responses are sent, and nothing is written or synced.

        On return the directory is unlocked, and its files have the content that the page cache
        would have kept. Idempotent; does nothing after `stop`.
        """
    def cut_off(self, *, accepted: bool, peers: Sequence[tuple[str, int]] | None) -> None:
        """Drop all traffic of connections, as on a network that loses packets, or restore it.

        Connections stay open: data that is sent in between waits in the sockets, and arrives later.

        Args:
            accepted: Whether connections that this core accepted are cut off, at all of its
                listeners.
            peers: Hosts and ports, as in `send` and in the image, to which this core's own
                connections are cut off; None for all.
        """
    # metadata projection
    def check(self, delta: ImageDelta) -> list[str]:
        """Return the parts of a step that `apply` could not apply; called before its records are
        proposed.

        The cost depends on the size of the step. Partitions and ``metadata_offset`` are not
        checked.
        """
    def apply(self, delta: ImageDelta) -> None:
        """Apply one committed step; a step that is not newer than the last changes nothing.

        Total: an invalid setting keeps its old value or default and is logged, and a topic is
        skipped and logged if another one has its name.
        """
    # requests that Python handles
    def respond(self, replies: Sequence[tuple[int, bytes | EncodedMessage]]) -> None:
        """Send responses: (request id, encoded body without header).

        Unknown or closed ids are ignored.
        """
    def reserve_response(self, token: Token, request: int, bytes: int) -> None:
        """Reserve memory for a response of at most ``bytes`` before it is built:
        ``Maintained(token)``.

        The response gives back what it does not need. There is no completion if the connection
        of the request closes before.
        """
    def close_connection(self, connection: int, reason: str) -> None: ...
    # logs that Python writes
    def append(
        self,
        token: Token,
        partition: PartitionId,
        leader_epoch: int,
        records: Sequence[KeyValue],
        producer: tuple[int, int] | None = None,
        *,
        control: int | None = None,
    ) -> None:
        """Append one atomic batch; ``Appended(token)`` is sent when the high watermark has passed
        it, or with the error.

        In the metadata log it is sent when the batch is synced, and a new ``leader_epoch`` starts
        with the batch.

        Args:
            producer: ``(producer_id, producer_epoch)`` of the records' transaction. The epoch is
                checked (``INVALID_PRODUCER_EPOCH``); the caller guarantees that the transaction is
                open: it appends before a marker for it is written.
            control: Type of a control batch, which has no producer.

        Raises:
            ValueError: A negative producer, or one of a control batch.
        """
    # the metadata log, a hidden topic: the quorum decides about writes, truncation and commits
    def append_fetched(
        self, token: Token, partition: PartitionId, leader_epoch: int, batches: bytes
    ) -> None:
        """Append another node's batches unchanged; ``Appended(token)`` is sent when they are
        synced, or with the error.

        They must be consecutive and start at the log end. Whole batches of epochs up to
        ``leader_epoch`` are accepted. The caller must have at most one write to the log in
        progress, because writes complete in any order.

        Raises:
            ValueError: A negative epoch.
        """
    def truncate(self, token: Token, partition: PartitionId, offset: int) -> None:
        """Remove the records from ``offset`` on; a batch that contains it is removed completely.

        ``Maintained.offset`` is the new log end.
        """
    def restart_log(self, token: Token, partition: PartitionId, offset: int) -> None:
        """Remove all records: the log is empty and starts at ``offset``, the end of a snapshot that
        replaces it.

        ``Maintained.offset`` is the new log start; it is sent when that is durable.
        """
    def commit(self, partition: PartitionId, high_watermark: int) -> None:
        """Raise the high watermark, at most to the log end; a lower one changes nothing."""
    def write_markers(self, token: Token, markers: Sequence[Marker]) -> None:
        """End transactions, each in one partition, after all earlier writes to that partition.

        ``MarkersWritten(token)`` is sent when each marker was rejected or the high watermark has
        passed it. Rejected are a partition that is not here (``UNKNOWN_TOPIC_ID``) or not led here
        (``NOT_LEADER_OR_FOLLOWER``), a producer epoch older than the partition's
        (``INVALID_PRODUCER_EPOCH``; from transaction version 2 on also the same one while the
        transaction is open), an older coordinator epoch (``TRANSACTION_COORDINATOR_FENCED``). A
        repeated marker is written again.
        """
    def when_committed(
        self, token: Token, partition: PartitionId, leader_epoch: int, offset: int
    ) -> None:
        """Send `Maintained` with the high watermark once it is ``offset`` or more.

        It carries an error if this node does not, or no longer, lead the partition in
        ``leader_epoch``, if the partition is deleted, or if the core stops. Until then it may take
        as long as followers need.
        """
    def verified(self, token: Token, error_codes: Sequence[int]) -> None:
        """Respond to ``VerifyTransaction``: one code for each of its partitions, in order.

        With 0 the records are appended, unless a marker was written to the partition since. Other
        codes are those of the coordinator; the client's error depends on its version. An unknown or
        completed token is ignored.
        """
    def read(
        self,
        partition: PartitionId,
        offset: int,
        bytes_max: int,
        upto: Literal["log_end", "high_watermark"],
    ) -> bytes: ...
    def offsets(self, partition: PartitionId) -> LogOffsets: ...
    # other nodes
    def send(
        self,
        token: Token,
        peer: Peer,
        api_key: int,
        api_version: int,
        body: bytes | EncodedMessage,
        timeout_ms: int,
    ) -> None:
        """Send a request to another node; ``Replied(token)`` carries the response, or the error.

        A connection is opened when there is something to send, and first requests the peer's
        versions. Requests to one peer are sent in order, several before the first response.
        Requests are never retried.

        Args:
            body: The request without its header, encoded in ``api_version``.
            timeout_ms: Time until the response, including the time for a connection; at most a day.
                If it passes while the request is in flight, the connection is closed, and later
                requests on it fail.
        """
    def watch(self, token: Token, peer: Peer, timeout_ms: int) -> None:
        """Open a connection to another node, if there is none, and wait for its end.

        ``Replied(token)`` carries an error: the connection ended (``NETWORK_EXCEPTION``), was
        refused (``LISTENER_NOT_FOUND``), or is still open (``REQUEST_TIMED_OUT``).
        """
    def disconnect(self, peer: Peer) -> None:
        """Close the connection; all requests on it fail (``BROKER_NOT_AVAILABLE``)."""
    # replication: never called on a single node
    def registered(self, broker_epoch: int) -> None:
        """Set the broker epoch of this process's registration, which its clean-shutdown marker
        contains.
        """
    def propose_isr(
        self,
        partition: PartitionId,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
    ) -> int | None:
        """Return a proposal id, or None. ``isr`` has pairs (broker id, broker epoch)."""
    def settle_isr(
        self,
        proposal: int,
        outcome: Literal["committed", "rejected", "unknown"],
        isr: Sequence[int] | None = ...,
        partition_epoch: int | None = ...,
    ) -> None:
        """Apply the controller's response to a proposal.

        A proposal that an image has replaced changes nothing.

        Args:
            outcome: ``committed`` in the leader epoch of the proposal; ``rejected``: the committed
                ISR remains; ``unknown``, also if the response has another leader epoch: the
                proposal stays in flight, and may be settled again, until the image has an ISR.
            isr: The ISR that the controller committed, only with ``committed``. A response without
                this broker, or with an older ``partition_epoch`` than the known one, changes
                nothing, as with ``unknown``.
            partition_epoch: Epoch of that commit, for the next proposal.

        Raises:
            ValueError: ``isr`` and ``partition_epoch`` do not match ``outcome``.
        """
    # maintenance: each completes as ``Maintained``
    def delete_before(self, token: Token, partition: PartitionId, offset: int) -> None:
        """DeleteRecords; -1 is the high watermark.

        ``Maintained.offset`` is the new log start offset.
        """
    def enforce_retention(self, token: Token) -> None:
        """Delete segments of all leaders and followers beyond their topic's retention; cheap when
        there are none.
        """
    def probe_disk(self, token: Token, *, needs_space: bool) -> None:
        """Write to the data directory and sync it, on a dedicated thread.

        ``Maintained.offset`` is the duration in milliseconds. With ``needs_space`` the probe fails
        if less than a hundredth of the disk (4 MiB to 1 GiB) is free.
        """
    def stalled(self, wait_ns_min: int) -> Sequence[PartitionId]:
        """Return partitions whose clients have waited longer than this for the disk."""
    # queries that may need the disk: each completes with its own event
    def describe_log_dirs(self, token: Token, partitions: Sequence[PartitionId]) -> None:
        """Query the sizes of logs, and the space of their file system: `LogDirs`."""
    def describe_producers(self, token: Token, partition: PartitionId) -> None:
        """Query the idempotent producers in a log's state: `Producers`."""
    def read_records(
        self, token: Token, partition: PartitionId, offset: int, bytes_max: int
    ) -> None:
        """Read whole batches of a partition that this node leads, up to its log end: `RecordsRead`.

        Args:
            offset: The first offset; one below the log start offset is replaced by it.
            bytes_max: Soft limit: the first batch is always complete.
        """
    def statistics(self) -> bytes:
        """Return a flat snapshot of counters and levels: lines ``name value`` in UTF-8."""
    def drain_log(self) -> list[tuple[int, int, str, str]]:
        """Return Rust's log lines since the last call: (time ms, level as in `logging`, target,
        text).
        """

@final
class ProducerState:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int

@final
class LogOffsets:
    """One consistent snapshot; all offsets but the first are exclusive ends."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    leader_epoch: int

@final
class BrokerEndpoint:
    """A registered broker at one listener. A ``fenced`` broker is not reported to clients."""

    def __new__(
        cls,
        *,
        node_id: int,
        listener: str,
        host: str,
        port: int,
        rack: str | None,
        broker_epoch: int = ...,
        fenced: bool = ...,
        in_controlled_shutdown: bool = ...,
    ) -> Self: ...

@final
class PartitionImage:
    """``replicas`` in assignment order; ``leader`` is -1 without one; replicas in ``lost`` do not
    fetch.
    """

    def __new__(
        cls,
        *,
        index: int,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        elr: Sequence[int] = ...,
        last_known_elr: Sequence[int] = ...,
        lost: Sequence[int] = ...,
    ) -> Self: ...

@final
class TopicImage:
    """A topic: new, completely replaced, or ``partial``, which keeps the partitions that are not
    given.

    ``overrides``: topic settings that differ from the broker's defaults, by Kafka name. ``hidden``
    topics (``__cluster_metadata``) are only available to `Core.append` and `Core.read`. For an
    ``unfinished`` topic, later pieces of the step contain more partitions. A new topic is visible
    to clients only after the last piece; changed settings apply to the partitions of each piece as
    it arrives.
    """

    def __new__(
        cls,
        *,
        name: str,
        topic_id: bytes,
        partitions: Sequence[PartitionImage],
        overrides: Mapping[str, str] | None = None,
        internal: bool = False,
        hidden: bool = False,
        partial: bool = False,
        unfinished: bool = False,
    ) -> Self: ...

@final
class ImageDelta:
    """One committed metadata step. ``None`` leaves a part unchanged.

    Args:
        metadata_offset: Last offset of the step; a step that is not newer than the last one is
            ignored.
        piece: Number of the piece of a step that is applied in pieces, in ascending order.
        brokers: The endpoints of all registered brokers for each listener; replaces the previous
            ones.
        controller_id: The controller in responses to Metadata.
        topics: Created or changed; of a large topic only the changed partitions, if it is partial.
        deleted: Ids of deleted topics; applied before ``topics``.
        log_defaults: Effective broker-level defaults of every topic setting, by topic-level Kafka
            name. They apply to a topic from the next step that contains it.
        broker_settings: Effective values of the broker settings that Rust uses, by Kafka name.
        finalized_features: name → level, with their epoch; for responses to ApiVersions.
        api_versions: Version ranges of the APIs that Python handles; the core adds its own; a range
            given for one of them narrows it.
        client_quotas: Limits of clients, which replace the previous ones: the entity (``user`` or
            ``client-id`` and its name, None for the default), its key, and bytes per second. Quotas
            that Rust does not support are ignored.
    """

    def __new__(
        cls,
        *,
        metadata_offset: int,
        piece: int = 0,
        brokers: Sequence[BrokerEndpoint] | None = None,
        controller_id: int | None = None,
        topics: Sequence[TopicImage] = ...,
        deleted: Sequence[bytes] = ...,
        log_defaults: Mapping[str, str] | None = None,
        broker_settings: Mapping[str, str] | None = None,
        finalized_features: tuple[int, Mapping[str, int]] | None = None,
        api_versions: Mapping[int, tuple[int, int]] | None = None,
        supported_features: Mapping[str, tuple[int, int]] | None = None,
        client_quotas: Sequence[tuple[Sequence[tuple[str, str | None]], str, float]] | None = None,
    ) -> Self: ...

# Events. The core and simulators create them.

@final
class Request:
    """A request for Python; ``body`` starts after the request header.

    ``received_ns`` and ``received_ms``: monotonic time and wall-clock time at which the frame was
    complete. ``correlation_id``: 0 to 2³¹ − 1, chosen by the client.
    """

    def __new__(
        cls,
        *,
        id: int,
        connection: int,
        principal: str,
        client_host: str,
        listener: str,
        client_id: str,
        api_key: int,
        api_version: int,
        received_ns: int,
        received_ms: int,
        body: bytes,
        correlation_id: int = 0,
    ) -> Self: ...
    def admit(self) -> bool:
        """Reserve a part of ``memory_max`` for the decoded request, unless it is reserved.

        Returns:
            False if other requests must release memory first. A small request always has memory.
        """
    def unreserve(self) -> None:
        """Release the memory for the decoded request and for the response, because the request
        waits.
        """
    def release(self) -> None:
        """Release the body and its part of ``memory_max``, when the request has ended or waits for
        others; it may still be referenced.
        """
    @property
    def reserved(self) -> int:
        """Bytes of ``memory_max`` that are reserved for the response."""
    @property
    def id(self) -> int: ...
    @property
    def connection(self) -> int: ...
    @property
    def principal(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def listener(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def api_key(self) -> int: ...
    @property
    def api_version(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def received_ns(self) -> int: ...
    @property
    def received_ms(self) -> int: ...
    @property
    def body(self) -> bytes:
        """Empty after `release`."""

@final
class Cancelled:
    """The connection of request ``id`` was reset, or idle for too long; a response would be
    dropped.
    """

    def __new__(cls, id: int) -> Self: ...
    @property
    def id(self) -> int: ...

@final
class Appended:
    """``offset``: the batch's base offset, -1 on error."""

    def __new__(cls, token: Token, error_code: int, offset: int) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def offset(self) -> int: ...

@final
class Maintained:
    """The end of a maintenance command; the meaning of ``offset`` depends on the command, -1 on
    error.
    """

    def __new__(cls, token: Token, error_code: int, offset: int) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def offset(self) -> int: ...

@final
class LogDirs:
    """``sizes``: (topic id, partition, bytes) of each existing log; a log does not exist before the
    first append.

    ``total_bytes`` and ``usable_bytes`` are those of the data directory's file system; -1 in
    memory.
    """

    def __new__(
        cls,
        token: Token,
        sizes: list[tuple[bytes, int, int]],
        total_bytes: int,
        usable_bytes: int,
    ) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def sizes(self) -> list[tuple[bytes, int, int]]: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def usable_bytes(self) -> int: ...

@final
class Producers:
    """``states``: the state of each producer in the log; empty on error."""

    def __new__(cls, token: Token, error_code: int, states: list[ProducerState]) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def states(self) -> list[ProducerState]: ...

@final
class RecordsRead:
    """``records``: whole batches, the first of which may start before ``offset``; empty at the log
    end, and on error.

    ``offset`` is the start of the read, ``next_offset`` that of the next read; ``log_end_offset``
    is exclusive. All are -1 on error.
    """

    def __new__(
        cls,
        token: Token,
        error_code: int,
        records: bytes,
        offset: int,
        next_offset: int,
        log_end_offset: int,
    ) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def records(self) -> bytes: ...
    @property
    def offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...

@final
class VerifyTransaction:
    """A produce request starts a transaction in these partitions, where it is not open yet.

    Python calls ``Core.verified`` within the request's timeout; later responses are ignored. Rust
    chooses the token. With ``add`` the partitions are added to the transaction, and the response is
    sent when that is committed (Produce from version 12 on, transaction version 2); otherwise they
    must be part of it.
    """

    def __new__(
        cls,
        token: Token,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[PartitionId],
        add: bool,
        received_ns: int,
    ) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def transactional_id(self) -> str: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def partitions(self) -> list[PartitionId]: ...
    @property
    def add(self) -> bool: ...
    @property
    def received_ns(self) -> int: ...

@final
class MarkersWritten:
    """``error_codes``: one for each marker of ``write_markers``, in order; 0 for a committed
    marker.
    """

    def __new__(cls, token: Token, error_codes: list[int]) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_codes(self) -> list[int]: ...

@final
class Replied:
    """The result of a request to another node.

    ``error_code``: 0, and ``body`` is the response without its header. Otherwise ``reason``
    describes the error: ``LISTENER_NOT_FOUND`` if the connection was refused; ``NETWORK_EXCEPTION``
    if it failed for another reason, or ended; ``REQUEST_TIMED_OUT``; ``UNSUPPORTED_VERSION``, where
    ``versions`` are the lowest and highest of the peer (the highest is -1 if it does not have the
    API); ``BROKER_NOT_AVAILABLE`` when this core stops, was asked to disconnect, or has 10,000 open
    requests. After ``NETWORK_EXCEPTION`` and ``REQUEST_TIMED_OUT`` the request may have been
    executed.
    """

    def __new__(
        cls,
        token: Token,
        error_code: int,
        body: bytes,
        versions: tuple[int, int] | None,
        reason: str,
    ) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def versions(self) -> tuple[int, int] | None: ...
    @property
    def reason(self) -> str: ...

@final
class TopicsMissing:
    """Metadata requests that allow auto-creation named these topics; coalesced."""

    def __new__(cls, names: list[str], principal: str) -> Self: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def principal(self) -> str: ...

@final
class PartitionState:
    """Level: all faults of a log with their reasons, the most severe first.

    An intact or a deleted log has no fault.
    """

    def __new__(cls, topic_id: bytes, partition: int, faults: dict[LogFault, str]) -> Self: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition(self) -> int: ...
    @property
    def faults(self) -> dict[LogFault, str]: ...

@final
class Replica:
    """Level: a follower as its leader sees it; sent after each change, and again while the ISR
    should change because of it.

    A member of the ISR is ``lagging`` if it has not had the complete log for
    ``replica.lag.time.max.ms``. Another follower is ``caught_up`` if it may join the ISR.
    ``stale_epoch``: it keeps up, but its registration differs from the known one, is fenced or in
    controlled shutdown. ``since_ns``: when a lagging follower last had the complete log; 0 if never
    in this epoch, and for other states.
    """

    def __new__(
        cls,
        topic_id: bytes,
        partition: int,
        leader_epoch: int,
        follower: int,
        state: Literal["caught_up", "lagging", "stale_epoch"],
        since_ns: int,
    ) -> Self: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def follower(self) -> int: ...
    @property
    def state(self) -> Literal["caught_up", "lagging", "stale_epoch"]: ...
    @property
    def since_ns(self) -> int: ...

@final
class DiskState:
    """Level of the data directory; ``reason`` is empty if the state is ``ok``."""

    def __new__(cls, state: Literal["ok", "full", "failed"], reason: str) -> Self: ...
    @property
    def state(self) -> Literal["ok", "full", "failed"]: ...
    @property
    def reason(self) -> str: ...

Event = (
    Request
    | Cancelled
    | Appended
    | Maintained
    | LogDirs
    | Producers
    | RecordsRead
    | VerifyTransaction
    | MarkersWritten
    | Replied
    | TopicsMissing
    | PartitionState
    | Replica
    | DiskState
)

# `pykafka_core._records` creates the record objects. All functions release the GIL while they work
# on bytes.

RecordHeaders = Sequence[tuple[str, bytes | None]] | None

class RecordLike(Protocol):
    """An object with a record's attributes, such as `pykafka_core._records.Record`; the timestamp
    is in ms.
    """

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> RecordHeaders: ...
    @property
    def timestamp(self) -> int | None: ...

RecordInput = (
    tuple[bytes | None, bytes | None]
    | tuple[bytes | None, bytes | None, RecordHeaders]
    | tuple[bytes | None, bytes | None, RecordHeaders, int | None]
    | RecordLike
)
"""``(key, value[, headers[, timestamp]])`` or an object with these attributes."""

def murmur2(key: bytes, /) -> int:
    """Return Kafka's hash of ``key``, signed as in Java; for many keys at once see
    `pykafka_core._murmur2`.
    """

def partition_for_key(key: bytes, partitions: int, /) -> int:
    """Return the partition of ``key`` as in Java's producer; ``ValueError`` if there are no
    partitions.
    """

def crc32c(data: bytes, /) -> int: ...
def check_batches(data: bytes, /) -> int:
    """Check magic and CRC of each whole batch in ``data``.

    Returns:
        Bytes of all whole batches; an incomplete one may follow them.

    Raises:
        CorruptMessageError: A wrong magic, length or CRC.
    """

def upgrade_batch(batch: bytes, /) -> bytes:
    """Return the records of one batch of message format 0 or 1 as an uncompressed batch of format
    2.

    The CRC of the batch is not checked.

    Raises:
        CorruptMessageError: The batch is incomplete.
        InvalidRecordError: The records are invalid, or have a codec that Kafka does not have.
        MessageTooLargeError: The decompressed size exceeds 128 MiB or 1,000 times the compressed
            size.
    """

def decompress_batch(batch: bytes, /) -> bytes:
    """Return the decompressed records of one batch of format 2, without its header.

    The CRC of the batch is not checked.

    Raises:
        CorruptMessageError: The batch is incomplete.
        InvalidRecordError: The records are invalid, or have a codec that Kafka does not have.
        MessageTooLargeError: The decompressed size exceeds 128 MiB or 1,000 times the compressed
            size.
    """

def build_batch(
    records: Iterable[RecordInput],
    /,
    *,
    compression: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = ...,
    producer_id: int = ...,
    producer_epoch: int = ...,
    base_sequence: int = ...,
    transactional: bool = False,
    timestamp_default: int = ...,
    control: bool = False,
) -> bytes:
    """Return one batch of ``records``, at least one; those without a timestamp get
    ``timestamp_default``.

    ``control`` creates a control batch; the key of a control record contains its type.

    Raises:
        ValueError: No record, an unknown codec or level, or more than 2 GiB.
        TypeError: An item is not a record; the message has advice.
    """

@final
class ArrowBatch:
    """Rows for any library of the Arrow PyCapsule interface: ``pyarrow.record_batch(batch)``."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

@final
class ArrowBatches:
    """Batches of rows of one schema, for any library of the Arrow PyCapsule interface:
    ``pyarrow.table(batches)``.

    It may be exported repeatedly, and shares its buffers with the exported objects.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> ArrowBatch: ...
    def __iter__(self) -> Iterator[ArrowBatch]: ...
    @property
    def num_rows(self) -> int:
        """Number of rows of all batches."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def batches_to_arrow(data: bytes, /, start: int = 0, end: int = ...) -> ArrowBatch:
    """Return the records of whole batches with ``start`` <= offset < ``end``; CRCs are not checked.

    Control records are omitted, and records whose offset is not above that of the previous record,
    as in Kafka's consumers. Columns: ``offset`` int64, ``timestamp`` timestamp[ms, UTC] (-1 if
    missing), ``key`` and ``value`` binary, ``headers`` list<struct<key: string, value: binary>>.

    Raises:
        CorruptMessageError, InvalidRecordError, MessageTooLargeError: The errors of the record
            reader.
        MemoryError: A column would exceed 2 GiB.
    """

# `pykafka_core.kernels` is their public interface. Both release the GIL.

class ArrowArrayLike(Protocol):
    """One array of the Arrow PyCapsule interface."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None, /
    ) -> tuple[object, object]: ...

class ArrowStreamLike(Protocol):
    """A stream of arrays of the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object: ...

@final
class ArrowColumn:
    """One column for any library of the Arrow PyCapsule interface: ``pyarrow.array(column)``."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

def partitions(keys: ArrowArrayLike, num_partitions: int, partitioner: str, /) -> ArrowColumn:
    """Return an int32 for each key, null for a null key.

    Raises:
        ValueError: No partitions, an unknown partitioner, an inconsistent array.
        TypeError: Keys that are not string, binary, fixed-size binary, int32 or int64.
    """

def fingerprints(*columns: ArrowArrayLike, seed: int) -> ArrowColumn:
    """Return 16 bytes for each row.

    Raises:
        ValueError: Columns of different length, an inconsistent array, or 2 GiB in a value of one
            of many columns.
        TypeError: A column of another type; see `partitions`, also integer, date, time and
            timestamp.
    """

# `pykafka_core.log` is its public interface.

@final
class Log:
    """One partition's log.

    Methods raise ForkedError in a forked child, except close, and ClosedError once closed.
    """

    @staticmethod
    def open(
        path: PathLike[str],
        durability: str,
        settings: Sequence[tuple[str, str]],
        read_only: bool,
        memory_max: int,
        clock_ms: int | None,
    ) -> tuple[Log, tuple[int, str] | None, int, list[str]]:
        """Return the log, its damage as in `damage`, the number of bytes that recovery removed, and
        warnings.
        """

    def refresh(self) -> bool:
        """Open a read-only log again if other processes changed it; return whether it was.

        Raises:
            StorageError: Its directory was deleted or renamed, or contains another log.
        """

    def damage(self) -> tuple[int, str] | None:
        """Return offset and description of the log's damage; None for an intact log."""

    def append(self, batches: bytes) -> tuple[int, int, int, bool]:
        """Return first and last offset, log end offset, and whether all batches were duplicates."""

    def read(self, offset: int, bytes_max: int) -> tuple[bytes, int, int]:
        """Return whole batches, the offset of the next read, and how often the log was opened again
        before because other processes changed it.
        """

    def offsets(self) -> tuple[int, int, int]:
        """Return log start offset, log end offset, recovery point."""

    def range(self, start: int | None, end: int | None) -> tuple[int, int, int]:
        """Return first offset and exclusive end of the given range, by default of the whole log,
        and the same number as `read`.

        Raises:
            OffsetOutOfRangeError: ``start`` is below the log start offset or above the log end
                offset.
        """

    def columns(self, start: int | None, end: int | None) -> ArrowBatches:
        """Return records as Arrow columns, one copy of each byte, CRCs checked."""

    def views(self, start: int | None, end: int | None) -> ArrowBatches:
        """Return records as Arrow views: sealed segments are mapped, others read."""

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None: ...
    def truncate_to(self, offset: int) -> None: ...
    def delete_before(self, offset: int) -> int: ...
    def enforce_retention(self) -> int: ...
    def roll(self) -> None: ...
    def now_ms(self) -> int: ...
    def flush(self) -> None: ...
    def size(self) -> tuple[int, int]:
        """Return the number of segments and their bytes."""

    def close(self) -> None: ...

@final
class Repair:
    """A closed partition or data directory, under its lock.

    Every method raises ClosedError once closed.
    """

    def __new__(cls, path: PathLike[str]) -> Self: ...
    def partitions(self) -> list[Path]: ...
    def look(
        self, partition: PathLike[str], is_compacted: bool
    ) -> tuple[int, int, int, int, list[int], int | None, int | None, str | None] | None:
        """Return the parts that a cut would remove, without changing anything; None for an intact
        log.

        The new log end offset, the segment's base offset, the position in it, bytes, later
        segments, the restored log start (otherwise None), the end of a gap (None if there is none),
        the damage (None for a torn tail).
        """

    def cut(self, partition: PathLike[str], is_compacted: bool) -> None:
        """Truncate there, rebuild indexes, and sync."""

    def keep(self, partition: PathLike[str], is_compacted: bool) -> None:
        """Keep the records after a gap: it counts as the result of compaction from now on.

        Nothing else changes.
        """

    def close(self) -> None:
        """Release the lock."""

def read_partition_metadata(data: bytes, /) -> tuple[bytes, int | None] | None:
    """Return topic id and partition of a `partition.metadata`; None if it is damaged.

    Kafka's files have no partition.
    """

# --- Regular expressions of clients --------------------------------------------------------------

@final
class Pattern:
    """A regular expression from a client: RE2's syntax, matched in linear time by Rust's ``regex``
    crate.

    Raises:
        ValueError: It is invalid, nested more than 100 times, or takes more than 512 KiB compiled.
    """

    def __new__(cls, text: str, /) -> Self: ...
    def matches(self, text: str, /) -> bool:
        """Return whether it matches all of ``text``."""

# `pykafka_core.protocol` is its public interface.

class ProtocolError(ValueError):
    """Bytes that are not the message they should be, or a value that a message cannot carry."""

def decode_request(api_key: int, version: int, body: bytes) -> Message:
    """Read a request's body. Bytes after its end are ignored.

    Raises:
        ProtocolError: The API or version is unknown, or the bytes are not such a request.
    """

def decode_response(api_key: int, version: int, body: bytes) -> Message:
    """Read a response's body; see `decode_request`."""

def decode_message(name: str, version: int, body: bytes) -> Message:
    """Read any message by its name, such as ``OffsetCommitValue``; see `decode_request`."""

def encode_message(message: Message, version: int) -> bytes:
    """Write a message in that version.

    Raises:
        ProtocolError: The version is unknown, lacks a field that is not ignorable and differs from
            its default, or a value is out of range or must not be null.
        TypeError: A value is of the wrong type.
    """

@final
class RequestDecoder:
    """Reads a request's body in parts, as `decode_request` does at once.

    Raises:
        ProtocolError: See `decode_request`; also for more than 100,000 elements in all lists
            together. `read` raises it too.
    """

    def __new__(cls, api_key: int, version: int, body: bytes) -> Self: ...
    def read(self, fields_max: int) -> Message | None:
        """Read up to ``fields_max`` more fields and list elements; return the message once it is
        complete.

        Must not be called after that, nor after an error.
        """

@final
class MessageEncoder:
    """Writes a message in parts, as `encode_message` does at once.

    The message must not change until the end.

    Raises:
        ProtocolError: See `encode_message`. `write` raises it too.
        TypeError: See `encode_message`. `write` raises it too.
    """

    def __new__(cls, message: Message, version: int) -> Self: ...
    def write(self, fields_max: int) -> EncodedMessage | None:
        """Write up to ``fields_max`` more fields and list elements; return all bytes when the
        message is complete.
        """
    def measure(self, fields_max: int) -> int | None:
        """Measure up to ``fields_max`` more fields and list elements; return the size of all bytes
        when the message is complete.

        An encoder that measures must not write.
        """
    @property
    def written(self) -> int:
        """Bytes written so far."""

@final
class EncodedMessage:
    """The output of a `MessageEncoder`: `Core.respond` uses it without a copy."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...

def decode_metadata_record(value: bytes) -> Message:
    """Read the value of a record of the cluster metadata log: frame version, type, version,
    message.
    """

def encode_metadata_record(message: Message, version: int) -> bytes:
    """Write a value for `decode_metadata_record`."""

def decode_metadata_records(bytes: bytes) -> list[tuple[int, Message]]:
    """Read all records in batches of the metadata log, with their offsets; control batches are
    skipped.

    Raises:
        ProtocolError: A CRC is wrong, a record's type or version is unknown, or the bytes are not
            records.
    """

def message_names() -> list[str]: ...
def message_schema(name: str) -> list[tuple[str, list[tuple[str, str, object]]]]:
    """Structs of a message, itself first: name, and for each field the name, ``value``, ``list`` or
    ``struct``, and the default value or the struct's name.
    """

def message_versions(name: str) -> tuple[int, int]:
    """Return the first and last version in the codec, both inclusive."""

def api_versions(api_key: int) -> tuple[int, int] | None:
    """Return the first and last stable version of an API in Kafka 4.2, both inclusive; ``None`` if
    there is none.
    """

def is_flexible(api_key: int, version: int) -> bool:
    """Return whether that version has compact lengths and tagged fields."""
