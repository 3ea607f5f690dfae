"""A consumer without a group and without a client library; it only reads.

A client library's consumer sends FindCoordinator even without a group, and the first such request
creates ``__consumer_offsets`` with 50 partitions, on our broker and on Apache Kafka.
`Reader` sends nothing but Metadata, ListOffsets and Fetch, with isolation level read_committed.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import NamedTuple

from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.cli.client.wire import NO_LEADER, Cluster, Connection, cluster
from pykafka_core.cli.errors import CliError
from pykafka_core.cli.files.batches import (
    HEADER_SIZE,
    BatchHeader,
    TailError,
    UnknownFormatError,
    parse_header,
)
from pykafka_core.errors import KafkaError, OffsetOutOfRangeError, error_of
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

FETCH, FETCH_VERSION = 1, 12
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 6
EARLIEST, LATEST = -2, -1
"""Times of ListOffsets: the log start offset, the last stable offset."""
_READ_COMMITTED = 1
_FETCH_BYTES, _PARTITION_BYTES = 16 << 20, 1 << 20
_RETRY_S = 0.1


class Start(NamedTuple):
    """The first record to read: at an offset, or else the first that is not older than a time."""

    offset: int | None = None
    time: int = EARLIEST


class Set(NamedTuple):
    """The records of one partition in one response; it may be empty."""

    partition: int
    records: Iterable[Record]


class _RetryError(CliError):
    """An error that may disappear with new metadata."""


class Reader:
    """Reads partitions of one topic.

    Args:
        bootstrap: ``HOST:PORT,…``.
        topic: The name of the topic.
        partitions: One or more partitions.
        start: The start in each partition.
        follow: Whether fetches wait for new records at the end; otherwise the reading of a
            partition stops at its end.
        patience_s: The time for which leaders may change or not answer.
    """

    def __init__(
        self,
        bootstrap: str | None,
        topic: str,
        partitions: Sequence[int],
        start: Start,
        *,
        follow: bool,
        patience_s: float,
    ) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._start, self._follow = start, follow
        self._positions: dict[int, int | None] = dict.fromkeys(partitions, start.offset)
        self._patience_s = patience_s
        self._deadline = time.monotonic() + patience_s

    def sets(self) -> Generator[Set]:
        """Yield the records of responses; without `follow`, until the end of all partitions.

        Raises:
            CliError: A partition cannot be read.
        """
        while True:
            try:
                with cluster(self._bootstrap, self._what) as found:
                    yield from self._read(found)
                    return
            except CliError as error:
                is_over = time.monotonic() > self._deadline
                if is_over or not isinstance(error, _RetryError):
                    raise
            time.sleep(_RETRY_S)

    @property
    def _what(self) -> str:
        return f"cannot consume {self._topic}"

    def _read(self, found: Cluster) -> Iterator[Set]:
        while self._positions:
            leaders: dict[int, list[int]] = {}
            for partition in self._positions:
                leaders.setdefault(found.leader_id(self._topic, partition), []).append(partition)
            without = leaders.pop(NO_LEADER, [])
            for node_id, partitions in leaders.items():
                wait_ms = _FOLLOW_MS // len(leaders) if self._follow else 0
                yield from self._read_from(found.node(node_id), partitions, wait_ms)
            if without:
                raise _RetryError(f"{self._what}: partition {without[0]} has no leader")
            self._deadline = time.monotonic() + self._patience_s

    def _read_from(
        self, leader: Connection, partitions: Sequence[int], wait_ms: int
    ) -> Iterator[Set]:
        try:
            self._find_starts(leader, partitions)
            request = self._fetch_request(partitions, wait_ms)
            response = leader.ask_newest(FETCH, FETCH_VERSION, request, FetchResponse)
        except (OSError, ProtocolError) as error:
            raise _RetryError(f"{self._what}: {error}") from error
        self._check(response.error_code)
        failed: list[int] = []
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code:
                    failed.append(data.error_code)
                else:
                    yield self._taken(data)
        for code in failed:
            self._check(code)

    def _find_starts(self, leader: Connection, partitions: Sequence[int]) -> None:
        """Look up the unknown positions; a time after the last record means the end."""
        for at in (self._start.time, LATEST):
            unknown = [p for p in partitions if self._positions[p] is None]
            if not unknown:
                return
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=_READ_COMMITTED,
                topics=[self._times(unknown, at)],
            )
            response = leader.ask_newest(
                LIST_OFFSETS, LIST_OFFSETS_VERSION, request, ListOffsetsResponse
            )
            for found in response.topics[0].partitions:
                self._check(found.error_code)
                if found.offset >= 0:
                    self._positions[found.partition_index] = found.offset

    def _times(self, partitions: Sequence[int], at: int) -> ListOffsetsRequest.ListOffsetsTopic:
        asked = [
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition, current_leader_epoch=-1, timestamp=at
            )
            for partition in partitions
        ]
        return ListOffsetsRequest.ListOffsetsTopic(name=self._topic, partitions=asked)

    def _fetch_request(self, partitions: Sequence[int], wait_ms: int) -> FetchRequest:
        asked = [
            FetchRequest.FetchPartition(
                partition=partition,
                current_leader_epoch=-1,
                fetch_offset=self._positions[partition] or 0,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=_PARTITION_BYTES,
            )
            for partition in partitions
        ]
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=_READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=self._topic, partitions=asked)],
            forgotten_topics_data=[],
            rack_id="",
        )

    def _taken(self, data: FetchResponse.PartitionData) -> Set:
        """Return the committed records of a partition, and move its position past them."""
        partition = data.partition_index
        position = self._positions[partition] or 0
        batches = _batches(data.records or b"", self._what)
        if batches:
            self._positions[partition] = batches[-1].header.last_offset + 1
        elif position >= data.last_stable_offset and not self._follow:
            del self._positions[partition]
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        records = _records(_committed(batches, aborted), position, self._what)
        return Set(partition, records)

    def _check(self, code: int) -> None:
        if code == 0:
            return
        error = error_of(code)
        text = f"{self._what}: {error.name}: {error.text}"
        if error.retriable and error.refresh_metadata:
            raise _RetryError(text)
        is_out = issubclass(error, OffsetOutOfRangeError)
        advice = "`pykafka-core topics describe` shows which offsets exist" if is_out else ""
        raise CliError(text, advice)


_FOLLOW_MS = 500
_ABORT = 0


class _Batch(NamedTuple):
    header: BatchHeader
    data: bytes


def _batches(data: bytes, what: str) -> list[_Batch]:
    """Return the whole batches of a response; the last one may be cut off."""
    batches: list[_Batch] = []
    at = 0
    while at < len(data):
        try:
            header = parse_header(data[at : at + HEADER_SIZE], at)
        except UnknownFormatError as error:
            text = f"{what}: offset {error.offset} is in message format {error.magic}"
            raise CliError(text, "upgrade pykafka-core") from error
        except TailError as error:
            if len(data) - at < HEADER_SIZE:
                break
            raise CliError(f"{what}: {error}") from error
        end = at + header.size
        if end > len(data):
            break
        batches.append(_Batch(header, data[at:end]))
        at = end
    return batches


def _committed(batches: Sequence[_Batch], aborted: Sequence[tuple[int, int]]) -> Iterator[_Batch]:
    """Return the batches of committed records, without transaction markers.

    Args:
        aborted: The producer ids and the first offsets of the aborted transactions.
    """
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    open_ids: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1][1] <= batch.header.last_offset:
            open_ids.add(waiting.pop()[0])
        if batch.header.is_control:
            markers = RecordBatchReader(batch.data, control=True)
            if any(_is_abort(marker) for marker in markers):
                open_ids.discard(batch.header.producer_id)
        elif batch.header.producer_id not in open_ids:
            yield batch


def _is_abort(marker: Record) -> bool:
    """Return whether the marker aborts; its key is a version and a type, two bytes each."""
    return marker.key is not None and int.from_bytes(marker.key[2:4]) == _ABORT


def _records(batches: Iterable[_Batch], position: int, what: str) -> Iterator[Record]:
    try:
        for batch in batches:
            yield from RecordBatchReader(batch.data, start=position, repeats=False)
    except KafkaError as error:
        raise CliError(f"{what}: {error.name}: {error}") from error
