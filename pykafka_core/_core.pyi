"""The compiled core: the seam between Rust and Python (docs/SEAM.md), the codec and the log's library door."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, Self, final

from pykafka_core.protocol.messages import Message

__version__: str
__profile__: tuple[str, int]
"""("debug" or "release", opt-level): how it was compiled."""

def return_freed_memory() -> bool:
    """Have blocks of 4 MiB and more returned to the system as soon as they are freed, and two heaps for all threads.

    A setting of the whole process, for one that is a broker's own, before it has threads. ``False`` where the C library
    is not glibc, which would keep up to 32 MiB of them in the heap of each thread.
    """

# --- The seam ------------------------------------------------------------------------------------
# Rules S1 to S7 and the owners of each fact are in docs/SEAM.md.

Token = int
"""Chosen by Python, never reused while open; every asynchronous command completes it exactly once."""

PartitionId = tuple[bytes, int]
"""(topic id, 16 bytes; partition index)."""

KeyValue = tuple[bytes | None, bytes | None]

LogFault = Literal["offline", "read_only", "unreadable", "uncleanable"]

Peer = tuple[str, str, int]
"""Another node's listener: what for, host, port. Each purpose has a connection of its own."""

Marker = tuple[bytes, int, int, int, int, bool, int]
"""A transaction's end in one partition: topic id, partition, producer id, producer epoch, coordinator epoch,
whether it is committed, transaction version (Kafka's feature)."""

@final
class CoreOptions:
    """What a core is made with; nothing here changes afterwards.

    Args:
        data_dir: The one log directory; ``None`` keeps every log in memory.
        node_id: This broker.
        cluster_id: As in meta.properties.
        durability: ``fsync``, ``interval``, ``os`` or ``memory``: the default of ``flush.messages`` and
            ``flush.ms`` for topics that do not say.
        clock_ms: A fixed or scripted wall clock for tests: ``None`` is the machine's own.
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

    The constructor locks the data directory (``StorageLockedError`` names the holder), reads its checkpoints and the
    clean-shutdown marker, and deletes that marker. No partition is opened before `apply` names it.
    """

    def __new__(cls, options: CoreOptions) -> Self: ...
    # life
    def wait(self, deadline_ns: int, events_max: int = 256) -> list[Event]:
        """Block until events, the deadline (of `now_ns`) or `wake`; ``[]`` at the deadline, after `stop`."""
    def wake(self) -> None: ...
    def now_ns(self) -> int: ...
    def horizon_ns(self) -> int:
        """The time up to which `wait` has handed out everything: when the oldest unread event happened, or now.

        A request counts from its arrival, also while it waits for room among the parked bytes.
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
        """Bind ``HOST:PORT`` (port 0 picks one); returns the port. Nothing is answered before `serve`.

        Args:
            controller_apis: Makes it a listener of controllers, with these APIs and versions: every request comes as a
                `Request`, Fetch too, and before `serve`. The core answers ApiVersions.
            audience: The peers of the listener. Limits of connections delay clients only. On a
                listener of both, a connection from the address of a registered broker counts as a
                node's.
        """
    def serve(self) -> None: ...
    def stop(self, grace_ms: int) -> None: ...
    # for tests of failover: what befalls a process, for one broker among several in one
    def abandon(self) -> None:
        """End as if the process had died: nobody is answered or told anything, and nothing is stored, synced or marked.

        On return the directory is unlocked, and its files hold what the page cache would have kept. Idempotent;
        one that was stopped is over already.
        """
    def cut_off(self, *, accepted: bool, peers: Sequence[tuple[str, int]] | None) -> None:
        """Have connections carry nothing, as on a network that drops packets, or go on.

        They stay open: what is said meanwhile waits in the sockets, and comes when they go on.

        Args:
            accepted: Whether those are cut off that this core accepted, at all of its listeners.
            peers: Hosts and ports, as in `send` and in the image, to which this core's own are cut off; None for all.
        """
    # metadata projection
    def check(self, delta: ImageDelta) -> list[str]:
        """What of a step `apply` could not carry out; asked before its records are proposed.

        Costs what the step holds. Partitions and ``metadata_offset`` do not matter.
        """
    def apply(self, delta: ImageDelta) -> None:
        """Make one committed step; one that is not newer than the last changes nothing.

        Total: a setting that cannot be used keeps its old value or default and is logged, and so
        is a topic whose name another one has.
        """
    # requests that Python answers
    def respond(self, replies: Sequence[tuple[int, bytes | EncodedMessage]]) -> None:
        """(request id, encoded response body without header). Unknown or closed ids are dropped."""
    def close_connection(self, connection: int, reason: str) -> None: ...
    # logs that Python itself writes
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
        """One atomic batch; ``Appended(token)`` comes when the high watermark passed it, or with the error.

        In the metadata log it comes when the batch is synced, and a ``leader_epoch`` that is new there begins with it.

        Args:
            producer: ``(producer_id, producer_epoch)`` whose transaction the records become part of. The epoch is
                judged (``INVALID_PRODUCER_EPOCH``); that the transaction is open the caller vouches for: it appends
                before a marker for it is written.
            control: Makes it a control batch, of no producer.

        Raises:
            ValueError: A negative producer, or one of a control batch.
        """
    # the metadata log, of which the quorum decides who writes, what goes and what is committed: topics that are hidden
    def append_fetched(
        self, token: Token, partition: PartitionId, leader_epoch: int, batches: bytes
    ) -> None:
        """Append another node's batches as they are; ``Appended(token)`` comes when they are synced, or with the error.

        They begin at the log end and follow each other. Taken are whole batches of epochs up to ``leader_epoch``. The
        caller has one write to the log under way at a time: they complete in any order.

        Raises:
            ValueError: A negative epoch.
        """
    def truncate(self, token: Token, partition: PartitionId, offset: int) -> None:
        """Give up the records at ``offset`` and behind it; a batch that holds it goes whole.

        ``Maintained.offset`` is where the log ends then.
        """
    def restart_log(self, token: Token, partition: PartitionId, offset: int) -> None:
        """Give up all records: the log is empty and begins at ``offset``, the end of a snapshot that replaces it.

        ``Maintained.offset`` is where the log starts then; it comes when that is durable.
        """
    def commit(self, partition: PartitionId, high_watermark: int) -> None:
        """Raise the high watermark, as far as the log reaches; a lower one changes nothing."""
    def write_markers(self, token: Token, markers: Sequence[Marker]) -> None:
        """End transactions, each in one partition, behind all that was given to that partition before.

        ``MarkersWritten(token)`` comes when each marker has been refused or the high watermark has passed it.
        Refused are a partition that is not here (``UNKNOWN_TOPIC_ID``) or not led here
        (``NOT_LEADER_OR_FOLLOWER``), a producer epoch older than the partition's (``INVALID_PRODUCER_EPOCH``;
        from transaction version 2 on also the same one while the transaction is open), an older coordinator epoch
        (``TRANSACTION_COORDINATOR_FENCED``). The same marker again is written again.
        """
    def when_committed(
        self, token: Token, partition: PartitionId, leader_epoch: int, offset: int
    ) -> None:
        """`Maintained` comes with the high watermark once that is ``offset`` or more.

        With an error it comes when this node does not lead the partition in ``leader_epoch`` (any more), and when the
        partition is gone or the core stops. Before that it may take as long as followers need.
        """
    def verified(self, token: Token, error_codes: Sequence[int]) -> None:
        """Answer ``VerifyTransaction``: one code for each of its partitions, in their order.

        With 0 the records are appended, unless a marker has been written to the partition meanwhile. Other codes are
        those of the coordinator; what a client is told depends on its version. An unknown or settled token is dropped.
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
        """Ask another node; ``Replied(token)`` comes with its answer, or with why there is none.

        A connection is opened when there is something to send, and asks for the peer's versions first. Requests to one
        peer leave in order, several before the first answer. Nothing is sent again.

        Args:
            body: What follows the request header, encoded in ``api_version``.
            timeout_ms: Until the answer, with the time for a connection; at most a day. While the request is under
                way its end ends the connection, and the requests behind it.
        """
    def watch(self, token: Token, peer: Peer, timeout_ms: int) -> None:
        """Open a connection to another node, if there is none, and wait for its end.

        ``Replied(token)`` comes with an error: how the connection ended (``NETWORK_EXCEPTION``), that nobody listens
        there (``LISTENER_NOT_FOUND``), or that it lasts (``REQUEST_TIMED_OUT``).
        """
    def disconnect(self, peer: Peer) -> None:
        """End the connection, and all requests to it (``BROKER_NOT_AVAILABLE``)."""
    # replication: never called on a single node
    def registered(self, broker_epoch: int) -> None:
        """The controller has registered this process: the marker of its clean stop names the epoch."""
    def propose_isr(
        self,
        partition: PartitionId,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
    ) -> int | None:
        """Proposal id, or None. ``isr`` holds (broker id, broker epoch)."""
    def settle_isr(
        self,
        proposal: int,
        outcome: Literal["committed", "rejected", "unknown"],
        isr: Sequence[int] | None = ...,
        partition_epoch: int | None = ...,
    ) -> None:
        """Take the controller's answer to a proposal. One that an image has replaced changes nothing.

        Args:
            outcome: ``committed`` in the leader epoch of the proposal; ``rejected``: what was committed holds;
                ``unknown``, also where the answer names another leader epoch: the proposal stays in flight, and may be
                settled again, until the image names an ISR.
            isr: What the controller committed, with ``committed`` alone. An answer without this broker, or with an
                older ``partition_epoch`` than is known here, changes nothing, as if it were ``unknown``.
            partition_epoch: Of that commit; the next proposal has to name it.

        Raises:
            ValueError: ``isr`` and ``partition_epoch`` do not go with ``outcome``.
        """
    # maintenance: each completes as ``Maintained``
    def delete_before(self, token: Token, partition: PartitionId, offset: int) -> None:
        """DeleteRecords; -1 is the high watermark. ``Maintained.offset`` is the new log start offset."""
    def enforce_retention(self, token: Token) -> None:
        """Delete every leader's and follower's segments past their topic's limits; cheap when there are none."""
    def probe_disk(self, token: Token, *, needs_space: bool) -> None:
        """Write to the data directory and sync it, on a thread that does nothing else.

        ``Maintained.offset`` is the duration in milliseconds. With ``needs_space`` the probe fails
        if less than a hundredth of the disk (4 MiB to 1 GiB) is free.
        """
    def stalled(self, wait_ns_min: int) -> Sequence[PartitionId]:
        """Partitions whose clients have waited for longer than this for the disk."""
    # questions that may need the disk: each completes by an event of its own
    def describe_log_dirs(self, token: Token, partitions: Sequence[PartitionId]) -> None:
        """Sizes of logs, and the space of their file system: `LogDirs`."""
    def describe_producers(self, token: Token, partition: PartitionId) -> None:
        """Idempotent producers that a log remembers: `Producers`."""
    def read_records(
        self, token: Token, partition: PartitionId, offset: int, bytes_max: int
    ) -> None:
        """Whole batches of a partition that this node leads, up to its log end: `RecordsRead`.

        Args:
            offset: First one wanted; one before the log start stands for the log start.
            bytes_max: Soft: the first batch comes whole.
        """
    def statistics(self) -> bytes:
        """One flat snapshot of counters and levels: lines ``name value`` in UTF-8."""
    def drain_log(self) -> list[tuple[int, int, str, str]]:
        """Rust's own log lines since the last call: (time ms, level as in `logging`, target, text)."""

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
    """One consistent snapshot; all but the first are exclusive ends."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    leader_epoch: int

@final
class BrokerEndpoint:
    """A registered broker at one listener. Clients are told of none that is ``fenced``."""

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
    """``replicas`` in assignment order; ``leader`` -1 without one; ``lost`` do not fetch."""

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
    """A topic as it is now: new, replaced whole, or ``partial``, where partitions that are not given stay.

    ``overrides``: Kafka names of topic settings that differ from the broker's defaults. ``hidden`` topics
    (``__cluster_metadata``) are served to `Core.append` and `Core.read` alone. Of one that is ``unfinished``
    more follows in later pieces of the step. No client sees a new one before the last of them; settings that change are
    those of the partitions of each piece as it comes.
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
    """One committed metadata step. ``None`` leaves a part as it was.

    Args:
        metadata_offset: Last offset of the step; one that is not newer than the last applied is ignored.
        piece: Of a step that is made in pieces, in ascending order.
        brokers: Every live broker's endpoint for each listener, replaced whole.
        controller_id: Named by Metadata.
        topics: Created or changed; of a large topic only what changed, if it is partial.
        deleted: Topic ids. Deletes come before creates.
        log_defaults: Effective broker-level defaults of every topic setting, by topic-level Kafka name. A topic has
            them from the step on that names it.
        broker_settings: Effective values of the broker settings that Rust honours, by Kafka name.
        finalized_features: name → level, with their epoch; what ApiVersions says.
        api_versions: Version ranges of the APIs that Python answers; the core adds its own; a range given for one of
            them narrows it.
        client_quotas: Limits of clients, replaced whole: whom each names (``user`` or ``client-id`` and its name, None
            for the default), its key, and bytes per second. What Rust does not honour is left out.
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

# Events. The core makes them; a simulator does too.

@final
class Request:
    """A request for Python; ``body`` starts behind the request header.

    ``received_ns`` and ``received_ms``: monotonic time and wall clock at which the frame was complete.
    ``correlation_id``: 0 to 2³¹ − 1, the client's.
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
    def release(self) -> None:
        """Give back the room that it has of ``memory_max``: it is over, though somebody may still hold it."""
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
    def body(self) -> bytes: ...

@final
class Cancelled:
    """The connection of request ``id`` was reset, or idle for too long; an answer would be dropped."""

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
    """A maintenance command is over; ``offset`` is what the command says, -1 on error."""

    def __new__(cls, token: Token, error_code: int, offset: int) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def offset(self) -> int: ...

@final
class LogDirs:
    """``sizes``: (topic id, partition, bytes) of each log that exists; none before the first append.

    ``total_bytes`` and ``usable_bytes`` are of the data directory's file system; -1 in memory.
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
    """``states``: what the log knows of each producer; empty on error."""

    def __new__(cls, token: Token, error_code: int, states: list[ProducerState]) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_code(self) -> int: ...
    @property
    def states(self) -> list[ProducerState]: ...

@final
class RecordsRead:
    """``records``: whole batches, of which the first may begin before ``offset``; empty at the log end, and on error.

    ``offset`` is where reading began, ``next_offset`` where to go on; ``log_end_offset`` is exclusive. All are -1 on
    error.
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
    """A produce request is about to begin a transaction in these partitions, of which none has it open.

    Answered by ``Core.verified`` within the request's timeout; later answers are dropped. The token is Rust's.
    With ``add`` the partitions become part of the transaction, and the answer comes when that is committed
    (Produce from version 12 on, transaction version 2); else they must be part of it.
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
    """``error_codes``: one for each marker of ``write_markers``, in their order; 0 is a committed marker."""

    def __new__(cls, token: Token, error_codes: list[int]) -> Self: ...
    @property
    def token(self) -> Token: ...
    @property
    def error_codes(self) -> list[int]: ...

@final
class Replied:
    """What a request to another node came to.

    ``error_code``: 0, and ``body`` is the answer without its header. Else there is none, and ``reason`` says why:
    ``LISTENER_NOT_FOUND`` if nobody listens at that port; ``NETWORK_EXCEPTION`` without a connection for another
    reason, or when it ended; ``REQUEST_TIMED_OUT``; ``UNSUPPORTED_VERSION``, where ``versions`` are the lowest and
    highest that the peer has (the highest is -1 if it does not have the API); ``BROKER_NOT_AVAILABLE`` when this core
    stops, was told to disconnect, or has 10,000 open requests. After ``NETWORK_EXCEPTION`` and ``REQUEST_TIMED_OUT``
    the request may have been carried out.
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
    """Level: all faults of a log with their reasons, the gravest first.

    A whole or a deleted log has no fault.
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
    """Level: a follower as its leader sees it; told when it changes, and again while the ISR should change for it.

    A member of the ISR is ``lagging`` if it has not had all of the log for ``replica.lag.time.max.ms``. Another
    follower is ``caught_up`` if it may join the ISR. ``stale_epoch``: it keeps up, but its registration is another one
    than is known, fenced or in controlled shutdown. ``since_ns``: when it last had all of the log, 0 for never in this
    epoch, and unless it lags.
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
    """Level of the data directory; ``reason`` is empty if it is well."""

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

# --- Record batches ------------------------------------------------------------------------------
# Record objects are made by `pykafka_core._records`. All of these release the GIL while they work on bytes.

RecordHeaders = Sequence[tuple[str, bytes | None]] | None

class RecordLike(Protocol):
    """Anything with a record's attributes, `pykafka_core._records.Record` for one; a timestamp is in ms."""

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
    """Kafka's hash of ``key``, signed as in Java; for many keys at once see `pykafka_core._murmur2`."""

def partition_for_key(key: bytes, partitions: int, /) -> int:
    """Where Java's producer puts ``key``; ``ValueError`` when there are no partitions."""

def crc32c(data: bytes, /) -> int: ...
def check_batches(data: bytes, /) -> int:
    """Check magic and CRC of each whole batch in ``data``.

    Returns:
        Bytes of all whole batches; an incomplete one may follow them.

    Raises:
        CorruptMessageError: A wrong magic, length or CRC.
    """

def upgrade_batch(batch: bytes, /) -> bytes:
    """The records of one batch of message format 0 or 1 as a batch of format 2 without compression.

    The CRC of the batch is not checked.

    Raises:
        CorruptMessageError: No whole batch.
        InvalidRecordError: Garbage, or a codec that Kafka does not have.
        MessageTooLargeError: More than 128 MiB or a thousandfold.
    """

def decompress_batch(batch: bytes, /) -> bytes:
    """The records of one batch of format 2, without its header and without compression.

    The CRC of the batch is not checked.

    Raises:
        CorruptMessageError: No whole batch.
        InvalidRecordError: Garbage, or a codec that Kafka does not have.
        MessageTooLargeError: More than 128 MiB or a thousandfold.
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
    """One batch of ``records``, at least one; those without a timestamp get ``timestamp_default``.

    ``control`` makes it a control batch; the key of a control record tells its type.

    Raises:
        ValueError: No record, an unknown codec or level, or more than 2 GiB.
        TypeError: Something that is no record; says what to pass.
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
    """Batches of rows of one schema, for any library of the Arrow PyCapsule interface: ``pyarrow.table(batches)``.

    It may be exported again and again, and shares its buffers with what was made of it.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> ArrowBatch: ...
    def __iter__(self) -> Iterator[ArrowBatch]: ...
    @property
    def num_rows(self) -> int:
        """Rows of all batches."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def batches_to_arrow(data: bytes, /, start: int = 0, end: int = ...) -> ArrowBatch:
    """The records of whole batches with ``start`` <= offset < ``end``; control records are left out, CRCs not checked.

    So are records whose offset is not above that of the record before, as by Kafka's consumers.
    Columns: ``offset`` int64, ``timestamp`` timestamp[ms, UTC] (-1 for none), ``key`` and ``value`` binary, ``headers``
    list<struct<key: string, value: binary>>.

    Raises:
        CorruptMessageError, InvalidRecordError, MessageTooLargeError: As the reader of records does.
        MemoryError: A column would pass 2 GiB.
    """

# --- Columns -------------------------------------------------------------------------------------
# `pykafka_core.kernels` is their public face. Both release the GIL.

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
    """An int32 for each key, null for null.

    Raises:
        ValueError: No partitions, an unknown partitioner, an inconsistent array.
        TypeError: Keys that are no string, binary, fixed-size binary, int32 or int64.
    """

def fingerprints(*columns: ArrowArrayLike, seed: int) -> ArrowColumn:
    """16 bytes for each row.

    Raises:
        ValueError: Columns of different length, an inconsistent array, or 2 GiB in a value of one of many columns.
        TypeError: A column that is none of the above, integer, date, time or timestamp.
    """

# --- The log -------------------------------------------------------------------------------------
# `pykafka_core.log` is its public face.

@final
class Log:
    """One partition's log. Methods raise ForkedError in a forked child, except close, and ClosedError once closed."""

    @staticmethod
    def open(
        path: PathLike[str],
        durability: str,
        settings: Sequence[tuple[str, str]],
        read_only: bool,
        memory_max: int,
        clock_ms: int | None,
    ) -> tuple[Log, tuple[int, str] | None, int, list[str]]:
        """The log, its damage as in `damage`, the bytes that recovery has cut, its warnings."""

    def refreshes(self) -> int:
        """Times that the log was opened again because others changed its segments."""

    def damage(self) -> tuple[int, str] | None:
        """Offset and description of the damage of the log that is read; None for a whole log."""

    def append(self, batches: bytes) -> tuple[int, int, int, bool]:
        """First and last offset, log end offset, whether all of them were duplicates."""

    def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        """Whole batches and where to read on."""

    def offsets(self) -> tuple[int, int, int]:
        """Log start offset, log end offset, recovery point."""

    def range(self, start: int | None, end: int | None) -> tuple[int, int]:
        """First offset and exclusive end of what is wanted, by default of all there is.

        Raises:
            OffsetOutOfRangeError: ``start`` is before the log start or behind the log end.
        """

    def columns(self, start: int | None, end: int | None) -> ArrowBatches:
        """Records as Arrow columns, one copy of each byte, CRCs checked."""

    def views(self, start: int | None, end: int | None) -> ArrowBatches:
        """Records as Arrow views: sealed segments mapped, others read."""

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None: ...
    def truncate_to(self, offset: int) -> None: ...
    def delete_before(self, offset: int) -> int: ...
    def enforce_retention(self) -> int: ...
    def roll(self) -> None: ...
    def now_ms(self) -> int: ...
    def flush(self) -> None: ...
    def size(self) -> tuple[int, int]:
        """Segments and their bytes."""

    def close(self) -> None: ...

@final
class Repair:
    """A closed partition or data directory, under its lock. Every method raises ClosedError once closed."""

    def __new__(cls, path: PathLike[str]) -> Self: ...
    def partitions(self) -> list[Path]: ...
    def look(
        self, partition: PathLike[str], is_compacted: bool
    ) -> tuple[int, int, int, int, list[int], int | None, int | None, str | None] | None:
        """What would go: the log end offset that is left, the segment's base offset, the position in it, bytes,
        segments behind it, the log start that is put back (None otherwise), where a gap ends (None if it is no gap),
        what is damaged (None for a torn tail). None for a whole log. Changes nothing.
        """

    def cut(self, partition: PathLike[str], is_compacted: bool) -> None:
        """Cut there, rebuild indexes, and sync."""

    def keep(self, partition: PathLike[str], is_compacted: bool) -> None:
        """Keep what is behind a gap: it is taken for compacted from now on. Nothing else is done."""

    def close(self) -> None:
        """Give the lock up."""

def read_partition_metadata(data: bytes, /) -> tuple[bytes, int | None] | None:
    """Topic id and partition of a `partition.metadata`; None if it is damaged.

    Kafka's files have no partition.
    """

# --- Regular expressions of clients --------------------------------------------------------------

@final
class Pattern:
    """A regular expression that a client sent: RE2's syntax, by Rust's ``regex`` crate, which takes linear time.

    Raises:
        ValueError: It is none, nested more than 100 times, or takes more than 512 KiB compiled.
    """

    def __new__(cls, text: str, /) -> Self: ...
    def matches(self, text: str, /) -> bool:
        """Whether it matches all of ``text``."""

# --- The codec -----------------------------------------------------------------------------------
# `pykafka_core.protocol` is its public face.

class ProtocolError(ValueError):
    """Bytes that are not the message they should be, or a value that a message cannot carry."""

def decode_request(api_key: int, version: int, body: bytes) -> Message:
    """Read a request's body. Bytes behind its end are ignored.

    Raises:
        ProtocolError: The API or version is unknown, or the bytes are no such request.
    """

def decode_response(api_key: int, version: int, body: bytes) -> Message:
    """Read a response's body; as `decode_request`."""

def decode_message(name: str, version: int, body: bytes) -> Message:
    """Read any message by its name, as in ``OffsetCommitValue``; as `decode_request`."""

def encode_message(message: Message, version: int) -> bytes:
    """Write a message in that version.

    Raises:
        ProtocolError: The version is unknown, lacks a field that holds more than its default and is not
            ignorable, or a value is out of range or must not be null.
        TypeError: A value is of the wrong type.
    """

@final
class RequestDecoder:
    """Reads a request's body in parts, as `decode_request` does in one.

    Raises:
        ProtocolError: As `decode_request`, and for more than 100,000 elements in all lists together; so does `read`.
    """

    def __new__(cls, api_key: int, version: int, body: bytes) -> Self: ...
    def read(self, fields_max: int) -> Message | None:
        """Read up to ``fields_max`` fields and list elements more; the message once it is complete.

        Not to be called after that, nor after an error.
        """

@final
class MessageEncoder:
    """Writes a message in parts, as `encode_message` does in one. The message must not change meanwhile.

    Raises:
        ProtocolError: As `encode_message`; so does `write`.
        TypeError: Likewise.
    """

    def __new__(cls, message: Message, version: int) -> Self: ...
    def write(self, fields_max: int) -> EncodedMessage | None:
        """Write up to ``fields_max`` fields and list elements more; all bytes once, when the message is complete."""

@final
class EncodedMessage:
    """What a `MessageEncoder` wrote: `Core.respond` takes it without a copy."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...

def decode_metadata_record(value: bytes) -> Message:
    """Read the value of a record of the cluster metadata log: frame version, type, version, message."""

def encode_metadata_record(message: Message, version: int) -> bytes:
    """Write such a value."""

def decode_metadata_records(bytes: bytes) -> list[tuple[int, Message]]:
    """Read all records of batches of the metadata log, with their offsets; control batches are skipped.

    Raises:
        ProtocolError: A CRC is wrong, a record's type or version is unknown, or the bytes are no records.
    """

def message_names() -> list[str]: ...
def message_schema(name: str) -> list[tuple[str, list[tuple[str, str, object]]]]:
    """Structs of a message, itself first: name, and of each field the name, ``value``, ``list`` or
    ``struct``, and the default value or the struct's name."""

def message_versions(name: str) -> tuple[int, int]:
    """First and last version that the codec knows, both inclusive."""

def api_versions(api_key: int) -> tuple[int, int] | None:
    """First and last stable version of an API in Kafka 4.2, both inclusive; ``None`` if it has none."""

def is_flexible(api_key: int, version: int) -> bool:
    """Whether that version has compact lengths and tagged fields."""
