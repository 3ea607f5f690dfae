"""A core for seeded simulation, with a virtual clock, logs in memory, and events from the test.

It replaces ``_core`` in tests of state machines and handlers, without threads, sockets and waiting.
Without events, `FakeCore.wait` moves the clock to its deadline. The test controls the time, the
order in which appends complete, and their failures. A conformance suite checks that the real core
behaves the same. This module is also the namespace of its image classes (`CoreTypes`).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

from pykafka_core._core import (
    Appended,
    LogDirs,
    Maintained,
    MarkersWritten,
    Producers,
    RecordsRead,
    Replied,
    Request,
    VerifyTransaction,
    crc32c,
)
from pykafka_core.types import PartitionId

if TYPE_CHECKING:
    from pykafka_core._core import EncodedMessage, Event
    from pykafka_core._core import ProducerState as CoreProducerState

UNKNOWN_TOPIC_ID = 100
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
OFFSET_OUT_OF_RANGE = 1
BROKER_NOT_AVAILABLE = 8
LISTENER_NOT_FOUND = 72
INVALID_REQUEST = 42
INVALID_PRODUCER_EPOCH = 47
TRANSACTION_COORDINATOR_FENCED = 52
RAISES_EPOCH_VERSION_MIN = 2
"""The first transaction version in which a marker raises the producer epoch."""
TRANSACTIONAL, CONTROL = 1 << 4, 1 << 5
NO_PRODUCER = (-1, -1)
HIGH_WATERMARK = -1

Record = tuple[bytes | None, bytes | None]
Marker = tuple[bytes, int, int, int, int, bool, int]
Peer = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """The address of a broker for one listener."""

    node_id: int
    listener: str
    host: str
    port: int
    rack: str | None
    broker_epoch: int = -1
    fenced: bool = False
    in_controlled_shutdown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """A partition of the metadata image."""

    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()
    lost: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    """A topic with its partitions."""

    name: str
    topic_id: bytes
    partitions: Sequence[PartitionImage]
    overrides: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False
    hidden: bool = False
    partial: bool = False
    unfinished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelta:
    """A committed step of the metadata."""

    metadata_offset: int
    piece: int = 0
    brokers: Sequence[BrokerEndpoint] | None = None
    controller_id: int | None = None
    topics: Sequence[TopicImage] = ()
    deleted: Sequence[bytes] = ()
    log_defaults: Mapping[str, str] | None = None
    broker_settings: Mapping[str, str] | None = None
    finalized_features: tuple[int, Mapping[str, int]] | None = None
    api_versions: Mapping[int, tuple[int, int]] | None = None
    supported_features: Mapping[str, tuple[int, int]] | None = None
    client_quotas: Sequence[tuple[Sequence[tuple[str, str | None]], str, float]] | None = None


def request(
    *,
    id: int,
    api_key: int,
    api_version: int,
    body: bytes,
    connection: int = 1,
    received_ns: int = 0,
) -> Request:
    """Return a request of an anonymous client on this host."""
    return Request(
        id=id,
        connection=connection,
        principal="User:ANONYMOUS",
        client_host="127.0.0.1",
        listener="PLAINTEXT",
        client_id="test",
        api_key=api_key,
        api_version=api_version,
        received_ns=received_ns,
        received_ms=0,
        body=body,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsets:
    """The offsets of a log at one moment; all except ``log_start_offset`` are exclusive."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """The state of a producer in a log."""

    producer_id: int
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    current_txn_start_offset: int = -1


@dataclass(slots=True)
class _Log:
    leader_epoch: int
    is_hidden: bool = False
    """Whether it is the metadata log, whose epochs and high watermark the quorum determines."""
    start: int = 0
    end: int = 0
    high_watermark: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Base offset, next offset and bytes of each batch."""
    producers: dict[int, ProducerState] = field(default_factory=dict)
    """Producers with transactions, by producer id."""

    @property
    def last_stable_offset(self) -> int:
        """The start of the oldest open transaction, or the high watermark if that is lower."""
        starts = (state.current_txn_start_offset for state in self.producers.values())
        return min([self.high_watermark, *(start for start in starts if start >= 0)])


@dataclass(slots=True)
class _MarkerRound:
    token: int
    error_codes: list[int]
    remaining: int


@dataclass(slots=True)
class _Append:
    token: int
    partition: PartitionId
    next_offset: int
    base_offset: int
    marker: tuple[_MarkerRound, int] | None = None
    """For a marker: the call that it belongs to, and its index in that call; else None."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A pending call of `FakeCore.when_committed`."""

    token: int
    partition: PartitionId
    leader_epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to another node."""

    token: int
    peer: Peer
    api_key: int
    api_version: int
    body: "bytes | EncodedMessage"
    timeout_ms: int


class FakeCore:
    """The data plane of one node, controlled by the test.

    Args:
        logs: Logs of an earlier core, to simulate a restart.
        hold_appends: Appends wait for `complete_append`; otherwise they complete at once.

    Attributes:
        peers: The reachable nodes. Requests to them stay in `sent` until the test calls `reply`.
    """

    def __init__(
        self, *, logs: "dict[PartitionId, _Log] | None" = None, hold_appends: bool = False
    ) -> None:
        self.logs = {} if logs is None else logs
        self.hold_appends = hold_appends
        self.clock_ns = 0
        self.clock_ms = 1_700_000_000_000
        self.serving = False
        self.stopped = False
        self.applied: list[ImageDelta] = []
        self.topics: dict[bytes, TopicImage] = {}
        self.unfinished: dict[bytes, TopicImage] = {}
        self.replies: dict[int, bytes] = {}
        self.closed_connections: dict[int, str] = {}
        self.reserving: deque[tuple[int, int]] = deque()
        """Token and size of each reservation that waits for memory."""
        self.is_memory_scarce = False
        self.cuts: list[tuple[bool, set[tuple[str, int]] | None]] = []
        """The arguments of each call of `cut_off`."""
        self.producers: dict[PartitionId, list[ProducerState]] = {}
        self.verdicts: dict[int, list[int]] = {}
        """The results for `VerifyTransaction` events, by token."""
        self.peers: set[Peer] = set()
        self.sent: dict[int, Sent] = {}
        self.on_idle: Callable[[], None] | None = None
        self.on_check: Callable[[ImageDelta], list[str]] = lambda _: []
        self.retention_runs = 0
        self._events: deque[Event] = deque()
        self._held: deque[_Append] = deque()
        self._awaited: list[_Awaited] = []
        self._ports = 40000

    # Methods for the test.

    def push(self, event: "Event") -> None:
        """Queue an event."""
        self._events.append(event)

    def release_appends(self) -> None:
        """Complete all held appends, and hold no further ones."""
        self.hold_appends = False
        while self._held:
            self.complete_append()

    def complete_append(self, error_code: int = 0) -> None:
        """Complete the oldest held append; with an error code, its records are removed."""
        append = self._held.popleft()
        log = self.logs[append.partition]
        if error_code:
            log.batches = [batch for batch in log.batches if batch[0] < append.base_offset]
            log.end = append.base_offset
        elif not log.is_hidden:
            log.high_watermark = append.next_offset
        if append.marker is not None:
            self._settle(*append.marker, error_code)
        else:
            base_offset = -1 if error_code else append.base_offset
            self.push(Appended(append.token, error_code, base_offset))
        self._tell_awaited()

    def reply(self, token: int, body: bytes) -> None:
        """Complete a request to another node with a response."""
        del self.sent[token]
        self.push(Replied(token, 0, body, None, ""))

    # Methods for the control plane; `_core.pyi` documents them.

    def wait(self, deadline_ns: int, events_max: int = 256) -> "list[Event]":
        """Return the queued events; without events, move the clock to the deadline."""
        if not self._events and self.on_idle is not None:
            self.on_idle()
        if not self._events:
            self.clock_ms += max(deadline_ns - self.clock_ns, 0) // 1_000_000
            self.clock_ns = max(self.clock_ns, deadline_ns)
        count = min(len(self._events), events_max)
        return [self._events.popleft() for _ in range(count)]

    def wake(self) -> None:
        """Do nothing: `wait` never blocks."""

    def now_ns(self) -> int:
        """Return the time of the virtual monotonic clock."""
        return self.clock_ns

    def horizon_ns(self) -> int:
        """Return the arrival time of the oldest queued request, else the present time."""
        asked = (Request, VerifyTransaction)
        received = (event.received_ns for event in self._events if isinstance(event, asked))
        return min(received, default=self.clock_ns)

    def time_ms(self) -> int:
        """Return the time of the virtual wall clock."""
        return self.clock_ms

    def listen(
        self,
        name: str,
        address: str,
        controller_apis: Mapping[int, tuple[int, int]] | None = None,
        *,
        audience: Literal["clients", "nodes", "both"] = "clients",
    ) -> int:
        """Return the port of the address, or an invented one; nothing is bound."""
        self._ports += 1
        asked = int(address.rpartition(":")[2])
        return asked or self._ports

    def serve(self) -> None:
        """Record that the core serves."""
        self.serving = True

    def abandon(self) -> None:
        """Stop like `stop`, because there are no files and no sockets."""
        self.stop(0)

    def cut_off(self, *, accepted: bool, peers: "Sequence[tuple[str, int]] | None") -> None:
        """Record the connections that are cut off."""
        self.cuts.append((accepted, None if peers is None else set(peers)))

    def stop(self, grace_ms: int) -> None:
        """Fail the requests to other nodes, and record the stop."""
        self._end_sent(list(self.sent))
        self.stopped = True

    def check(self, delta: ImageDelta) -> list[str]:
        """Return the topics with the name of another topic, and the problems from `on_check`."""
        taken = [topic.name for topic in delta.topics if self._is_taken(topic, delta)]
        return [*taken, *self.on_check(delta)]

    def _is_taken(self, topic: TopicImage, delta: ImageDelta) -> bool:
        return any(
            other.name == topic.name and topic_id not in (topic.topic_id, *delta.deleted)
            for topic_id, other in self.topics.items()
        )

    def apply(self, delta: ImageDelta) -> None:
        """Apply the step, unless it was already applied."""
        if self.applied and _place(delta) <= _place(self.applied[-1]):
            return
        self.applied.append(delta)
        for topic_id in delta.deleted:
            topic = self.topics.pop(topic_id)
            for partition in topic.partitions:
                self.logs.pop((topic_id, partition.index), None)
        for topic in delta.topics:
            if self._is_taken(topic, delta):
                continue
            self._put(topic)
            for partition in topic.partitions:
                place = (topic.topic_id, partition.index)
                log = self.logs.setdefault(place, _Log(-1, topic.hidden))
                log.leader_epoch = partition.leader_epoch
        self._tell_awaited()

    def _put(self, topic: TopicImage) -> None:
        begun = self.unfinished.pop(topic.topic_id, None)
        known = self.topics.get(topic.topic_id, begun) if topic.partial else None
        is_seen = topic.topic_id in self.topics or not topic.unfinished
        whole = topic if known is None else _merged(known, topic)
        made = replace(whole, partial=False, unfinished=False)
        (self.topics if is_seen else self.unfinished)[topic.topic_id] = made

    def respond(self, replies: "Sequence[tuple[int, bytes | EncodedMessage]]") -> None:
        """Store the responses for the test."""
        self.replies.update((request, bytes(body)) for request, body in replies)

    def reserve_response(self, token: int, request: int, bytes: int) -> None:
        """Reserve at once, or in `grant_memory` if memory is scarce."""
        del request
        self.reserving.append((token, bytes))
        if not self.is_memory_scarce:
            self.grant_memory()

    def grant_memory(self) -> None:
        """Complete all reservations that wait."""
        while self.reserving:
            token, _ = self.reserving.popleft()
            self.push(Maintained(token, 0, -1))

    def close_connection(self, connection: int, reason: str) -> None:
        """Store the reason for the test."""
        self.closed_connections[connection] = reason

    def append(
        self,
        token: int,
        partition: PartitionId,
        leader_epoch: int,
        records: Sequence[Record],
        producer: tuple[int, int] | None = None,
        *,
        control: int | None = None,
    ) -> None:
        """Append at once; the append completes now, or in `complete_append`."""
        log = self.logs.get(partition)
        if log is not None and log.is_hidden:
            log.leader_epoch = max(log.leader_epoch, leader_epoch)
        error = _fence(log, leader_epoch) or _stale_producer(log, producer)
        if log is None or error:
            self.push(Appended(token, error, -1))
            return
        base = log.end
        if producer:
            _begin_transaction(log, *producer)
        self._write(log, records, control is not None, producer)
        self._held.append(_Append(token, partition, log.end, base))
        if not self.hold_appends:
            self.complete_append()

    def _write(
        self,
        log: _Log,
        records: Sequence[Record],
        control: bool,
        producer: tuple[int, int] | None,
    ) -> None:
        base = log.end
        log.end = base + len(records)
        epoch = log.leader_epoch
        data = encode_batch(base, epoch, self.clock_ms, records, control, producer)
        log.batches.append((base, log.end, data))

    def append_fetched(
        self, token: int, partition: PartitionId, leader_epoch: int, batches: bytes
    ) -> None:
        """Append the batches up to ``leader_epoch`` at the log end."""
        log = self.logs.get(partition)
        error = _not_the_quorums(log)
        if log is None or error:
            self.push(Appended(token, error, -1))
            return
        base = log.end
        for begin, end, epoch, data in _split(batches):
            if epoch > leader_epoch:
                break
            assert begin == log.end, "batches follow each other"
            log.batches.append((begin, end, data))
            log.end = end
        self._held.append(_Append(token, partition, log.end, base))
        if not self.hold_appends:
            self.complete_append()

    def truncate(self, token: int, partition: PartitionId, offset: int) -> None:
        """Remove the batches that end after ``offset``."""
        log = self.logs.get(partition)
        error = _not_the_quorums(log)
        if log is None or error:
            self.push(Maintained(token, error, -1))
            return
        log.batches = [batch for batch in log.batches if batch[1] <= offset]
        log.end = log.batches[-1][1] if log.batches else min(log.end, offset)
        log.high_watermark = min(log.high_watermark, log.end)
        self.push(Maintained(token, 0, log.end))

    def restart_log(self, token: int, partition: PartitionId, offset: int) -> None:
        """Remove all batches; the log continues at ``offset``."""
        log = self.logs.get(partition)
        error = _not_the_quorums(log)
        if log is None or error:
            self.push(Maintained(token, error, -1))
            return
        log.batches.clear()
        log.start = log.end = log.high_watermark = offset
        self.push(Maintained(token, 0, offset))

    def commit(self, partition: PartitionId, high_watermark: int) -> None:
        """Raise the high watermark of the metadata log, at most to the log end."""
        log = self.logs.get(partition)
        if log is not None and log.is_hidden:
            log.high_watermark = max(log.high_watermark, min(high_watermark, log.end))

    def write_markers(self, token: int, markers: Sequence[Marker]) -> None:
        """Append the markers at once; they are committed now, or in `complete_append`."""
        settling = _MarkerRound(token, [0] * len(markers), len(markers))
        if not markers:
            self.push(MarkersWritten(token, []))
        for place, marker in enumerate(markers):
            self._write_marker(settling, place, marker)

    def _write_marker(self, settling: _MarkerRound, place: int, marker: Marker) -> None:
        topic_id, index, *_ = marker
        log = self.logs.get((topic_id, index))
        error = UNKNOWN_TOPIC_ID if log is None else _stale_marker(log, marker)
        if log is None or error:
            self._settle(settling, place, error)
            return
        base = log.end
        _end_transaction(log, marker)
        self._write(log, [_marker_record(marker)], True, marker[2:4])
        append = _Append(settling.token, (topic_id, index), log.end, base, (settling, place))
        self._held.append(append)
        if not self.hold_appends:
            self.complete_append()

    def _settle(self, settling: _MarkerRound, place: int, error_code: int) -> None:
        settling.error_codes[place] = error_code
        settling.remaining -= 1
        if settling.remaining == 0:
            self.push(MarkersWritten(settling.token, settling.error_codes))

    def when_committed(
        self, token: int, partition: PartitionId, leader_epoch: int, offset: int
    ) -> None:
        """Complete when no held append is below ``offset``: this node is the only replica."""
        self._awaited.append(_Awaited(token, partition, leader_epoch, offset))
        self._tell_awaited()

    def _tell_awaited(self) -> None:
        awaited, self._awaited = self._awaited, []
        for one in awaited:
            log = self.logs.get(one.partition)
            error = _fence(log, one.leader_epoch)
            if log is None or error:
                self.push(Maintained(one.token, error, -1))
            elif any(append.base_offset < one.offset for append in self._held_of(one.partition)):
                self._awaited.append(one)
            else:
                self.push(Maintained(one.token, 0, max(log.high_watermark, one.offset)))

    def _held_of(self, partition: PartitionId) -> Iterator[_Append]:
        return (append for append in self._held if append.partition == partition)

    def verified(self, token: int, error_codes: Sequence[int]) -> None:
        """Store the result for the test; the token is not checked."""
        self.verdicts[token] = list(error_codes)

    def read(
        self,
        partition: PartitionId,
        offset: int,
        bytes_max: int,
        upto: Literal["log_end", "high_watermark"],
    ) -> bytes:
        """Return whole batches from the one with ``offset`` on; the first one even if it is larger
        than ``bytes_max``.
        """
        log = self.logs[partition]
        end = log.end if upto == "log_end" else log.high_watermark
        return _whole_batches(log, offset, bytes_max, end)[0]

    def send(
        self,
        token: int,
        peer: Peer,
        api_key: int,
        api_version: int,
        body: "bytes | EncodedMessage",
        timeout_ms: int,
    ) -> None:
        """Send a request to a node in `peers`; to any other node it fails at once."""
        if self.stopped:
            self.push(_without_response(token, BROKER_NOT_AVAILABLE, "closed"))
        elif peer in self.peers:
            self.sent[token] = Sent(token, peer, api_key, api_version, body, timeout_ms)
        else:
            self.push(_without_response(token, LISTENER_NOT_FOUND, "refused"))

    def watch(self, token: int, peer: Peer, timeout_ms: int) -> None:
        """Send a request that never gets a response."""
        self.send(token, peer, -1, -1, b"", timeout_ms)

    def registered(self, broker_epoch: int) -> None:
        """Do nothing: there is no marker of a clean stop."""

    def disconnect(self, peer: Peer) -> None:
        """Fail the requests to this node."""
        self._end_sent([token for token, sent in self.sent.items() if sent.peer == peer])

    def _end_sent(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            del self.sent[token]
            self.push(_without_response(token, BROKER_NOT_AVAILABLE, "closed"))

    def read_records(self, token: int, partition: PartitionId, offset: int, bytes_max: int) -> None:
        """Read like `read` up to the log end; from the log start if ``offset`` is before it."""
        log = self.logs.get(partition)
        if log is None:
            self.push(RecordsRead(token, UNKNOWN_TOPIC_ID, b"", -1, -1, -1))
            return
        begin = max(offset, log.start)
        data, next_offset = _whole_batches(log, begin, bytes_max, log.end)
        self.push(RecordsRead(token, 0, data, begin, next_offset, log.end))

    def offsets(self, partition: PartitionId) -> LogOffsets:
        """Return the offsets of a log, which must exist."""
        log = self.logs[partition]
        return LogOffsets(
            log_start_offset=log.start,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_end_offset=log.end,
            leader_epoch=log.leader_epoch,
        )

    def delete_before(self, token: int, partition: PartitionId, offset: int) -> None:
        """Advance the log start."""
        log = self.logs.get(partition)
        if log is None:
            self.push(Maintained(token, UNKNOWN_TOPIC_ID, -1))
            return
        wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
        if wanted > log.high_watermark:
            self.push(Maintained(token, OFFSET_OUT_OF_RANGE, -1))
            return
        log.start = max(log.start, wanted)
        self.push(Maintained(token, 0, log.start))

    def enforce_retention(self, token: int) -> None:
        """Count the call."""
        self.retention_runs += 1
        self.push(Maintained(token, 0, -1))

    def describe_log_dirs(self, token: int, partitions: Sequence[PartitionId]) -> None:
        """Return the sizes of logs with batches; there is no disk."""
        logs = ((partition, self.logs.get(partition)) for partition in partitions)
        sizes = [
            (*partition, sum(len(data) for _, _, data in log.batches))
            for partition, log in logs
            if log is not None and log.batches
        ]
        self.push(LogDirs(token, sizes, -1, -1))

    def probe_disk(self, token: int, *, needs_space: bool) -> None:
        """Complete at once with success, because there is no disk."""
        del needs_space
        self.push(Maintained(token, 0, 0))

    def stalled(self, wait_ns_min: int) -> Sequence[PartitionId]:
        """Return no partitions, because there is no disk."""
        del wait_ns_min
        return ()

    def describe_producers(self, token: int, partition: PartitionId) -> None:
        """Return the producers from the test, and those with transactions."""
        log = self.logs.get(partition)
        if log is None:
            self.push(Producers(token, UNKNOWN_TOPIC_ID, []))
            return
        states = [*self.producers.get(partition, []), *log.producers.values()]
        self.push(Producers(token, 0, cast("list[CoreProducerState]", states)))

    def statistics(self) -> bytes:
        """Return no counters."""
        return b""

    def drain_log(self) -> list[tuple[int, int, str, str]]:
        """Return no log lines."""
        return []


def _without_response(token: int, error_code: int, reason: str) -> Replied:
    return Replied(token, error_code, b"", None, reason)


def _whole_batches(log: _Log, offset: int, bytes_max: int, end: int) -> tuple[bytes, int]:
    """Return the batches from the one with ``offset`` on, below ``end``, and the next offset; the
    first one even if it is larger than ``bytes_max``.
    """
    data = b""
    for _, next_offset, batch in log.batches:
        if next_offset <= offset:
            continue
        if next_offset > end or (data and len(data) + len(batch) > bytes_max):
            break
        data, offset = data + batch, next_offset
    return data, offset


def _split(batches: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield base offset, next offset, leader epoch and bytes of each batch."""
    while batches:
        size = 12 + int.from_bytes(batches[8:12], "big")
        data, batches = batches[:size], batches[size:]
        base_offset = int.from_bytes(data[:8], "big")
        last_delta = int.from_bytes(data[23:27], "big")
        yield base_offset, base_offset + last_delta + 1, int.from_bytes(data[12:16], "big"), data


def _place(delta: ImageDelta) -> tuple[int, int]:
    return delta.metadata_offset, delta.piece


def _merged(known: TopicImage, partial: TopicImage) -> TopicImage:
    partitions = {partition.index: partition for partition in known.partitions}
    partitions.update((partition.index, partition) for partition in partial.partitions)
    ordered = [partitions[index] for index in sorted(partitions)]
    return replace(partial, partitions=ordered)


def _not_the_quorums(log: _Log | None) -> int:
    if log is None:
        return UNKNOWN_TOPIC_ID
    return 0 if log.is_hidden else INVALID_REQUEST


def _fence(log: _Log | None, leader_epoch: int) -> int:
    if log is None:
        return UNKNOWN_TOPIC_ID
    if leader_epoch < log.leader_epoch:
        return FENCED_LEADER_EPOCH
    return UNKNOWN_LEADER_EPOCH if leader_epoch > log.leader_epoch else 0


def _stale_producer(log: _Log | None, producer: tuple[int, int] | None) -> int:
    known = None if log is None or producer is None else log.producers.get(producer[0])
    is_stale = known is not None and producer is not None and producer[1] < known.producer_epoch
    return INVALID_PRODUCER_EPOCH if is_stale else 0


def _begin_transaction(log: _Log, producer_id: int, producer_epoch: int) -> None:
    known = log.producers.get(producer_id, ProducerState(producer_id=producer_id))
    start = known.current_txn_start_offset
    log.producers[producer_id] = replace(
        known,
        producer_epoch=producer_epoch,
        current_txn_start_offset=log.end if start < 0 else start,
    )


def _stale_marker(log: _Log, marker: Marker) -> int:
    _, _, producer_id, producer_epoch, coordinator_epoch, _, transaction_version = marker
    known = log.producers.get(producer_id)
    if known is None:
        return 0
    is_open = known.current_txn_start_offset >= 0
    raises_epoch = transaction_version >= RAISES_EPOCH_VERSION_MIN
    is_late = raises_epoch and is_open and producer_epoch == known.producer_epoch
    if is_late or producer_epoch < known.producer_epoch:
        return INVALID_PRODUCER_EPOCH
    is_fenced = coordinator_epoch < known.coordinator_epoch
    return TRANSACTION_COORDINATOR_FENCED if is_fenced else 0


def _end_transaction(log: _Log, marker: Marker) -> None:
    _, _, producer_id, producer_epoch, coordinator_epoch, _, _ = marker
    log.producers[producer_id] = ProducerState(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
    )


def _marker_record(marker: Marker) -> Record:
    _, _, _, _, coordinator_epoch, is_committed, _ = marker
    return b"\0\0\0" + bytes([is_committed]), b"\0\0" + coordinator_epoch.to_bytes(4, "big")


def encode_batch(
    base_offset: int,
    epoch: int,
    time_ms: int,
    records: Sequence[Record],
    control: bool,
    producer: tuple[int, int] | None = None,
) -> bytes:
    """Return an uncompressed record batch of version 2 (KIP-98), without sequence numbers; with a
    producer it is transactional.
    """
    body = b"".join(_encode_record(delta, *record) for delta, record in enumerate(records))
    count = len(records)
    attributes = (CONTROL if control else 0) | (TRANSACTIONAL if producer else 0)
    producer_id, producer_epoch = producer or NO_PRODUCER
    after_crc = (
        attributes.to_bytes(2, "big")
        + (count - 1).to_bytes(4, "big")
        + time_ms.to_bytes(8, "big") * 2
        + producer_id.to_bytes(8, "big", signed=True)
        + producer_epoch.to_bytes(2, "big", signed=True)
        + b"\xff" * 4
        + count.to_bytes(4, "big")
        + body
    )
    before = epoch.to_bytes(4, "big") + b"\x02" + crc32c(after_crc).to_bytes(4, "big")
    size = len(before) + len(after_crc)
    return base_offset.to_bytes(8, "big") + size.to_bytes(4, "big") + before + after_crc


def _encode_record(delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + _varint(0) + _varint(delta) + _field(key) + _field(value) + _varint(0)
    return _varint(len(body)) + body


def _field(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Zig-zag, seven bits a byte."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)
