"""Record objects from batches v2, in Cython: one object for each record of a log or a fetch."""

from collections.abc import Iterable, Iterator
from typing import final

from typing_extensions import Buffer

_Headers = tuple[tuple[str, bytes | None], ...]

@final
class Record:
    """One record; immutable, comparable, picklable.

    Attributes:
        offset: Its offset in the partition.
        timestamp: Milliseconds since 1970; -1 without one.
        key: ``None`` is null, which differs from ``b""``.
        value: ``None`` is null, a tombstone in compacted topics.
        headers: In order; names may repeat. Invalid UTF-8 in a name is replaced by U+FFFD, as in
            Java.
        timestamp_type: 0 set by the producer (CreateTime), 1 by the broker (LogAppendTime).
        leader_epoch: Epoch of the leader that appended it; -1 in a batch that was never appended by
            a leader.
        producer_id: Id of an idempotent producer; otherwise -1, as are ``producer_epoch`` and
            ``sequence``.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: _Headers
    timestamp_type: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp_type: int = 0,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        sequence: int = -1,
    ) -> None: ...
    def __hash__(self) -> int: ...

@final
class RecordBatchReader:
    """The records in concatenated batches, in order; an incomplete batch at the end is ignored.

    Args:
        data: Batches as stored or fetched. `bytes` are used without a copy, other buffers are
            copied.
        check_crcs: Check the CRCs of all batches in the constructor.
        start: Inclusive. Records below it are omitted: a fetch may start inside a batch.
        end: Exclusive; ``None`` for no end.
        control: Also return control records (transaction markers), whose key and value are not a
            user's.
        repeats: Also return records whose offset is not above that of the previous record. Kafka's
            consumers omit them. A set of format 0 from another log has such offsets.

    Raises:
        CorruptMessageError: In the constructor: wrong magic, length or CRC; with
            ``check_crcs=False`` while iterating.
        InvalidRecordError: While iterating: a malformed record, an unknown codec, invalid
            compressed data. The iterator ends then.
        MessageTooLargeError: While iterating: a batch decompresses to more than 128 MiB or 1,000
            times its size.
    """

    def __init__(
        self,
        data: Buffer,
        *,
        check_crcs: bool = True,
        start: int = 0,
        end: int | None = None,
        control: bool = False,
        repeats: bool = True,
    ) -> None: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __next__(self) -> Record: ...
