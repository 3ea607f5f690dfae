"""Record objects from batches v2, in Cython: what a log or a fetch gives, one object for each record."""

from collections.abc import Iterable, Iterator
from typing import final

from typing_extensions import Buffer

_Headers = tuple[tuple[str, bytes | None], ...]

@final
class Record:
    """One record; immutable, comparable, picklable.

    Attributes:
        offset: Its number in the partition.
        timestamp: Milliseconds since 1970; -1 for none.
        key: ``None`` is null, which differs from ``b""``.
        value: The same; null is a tombstone in compacted topics.
        headers: In order; names may repeat. Bytes of a name that are no UTF-8 became U+FFFD, as in Java.
        timestamp_type: 0 set by the producer (CreateTime), 1 by the broker (LogAppendTime).
        leader_epoch: Epoch of the leader that appended it; -1 in a batch that no leader has seen.
        producer_id: Of an idempotent producer; -1 for none. So ``producer_epoch`` and ``sequence``.
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
        data: Batches as stored or fetched. `bytes` are taken as they are, other buffers copied.
        check_crcs: Compare each batch's CRC with its bytes, all of them at once here.
        start: Inclusive. Offsets below it are left out: a fetch may begin inside a batch.
        end: Exclusive; ``None`` for no end.
        control: Also give control records (transaction markers), whose key and value are not a user's.
        repeats: Also give records whose offset is not above that of the record before. Kafka's
            consumers leave them out. A set of format 0 from another log has such offsets.

    Raises:
        CorruptMessageError: Here: wrong magic, length or CRC; with ``check_crcs=False`` while iterating.
        InvalidRecordError: While iterating: a record that does not parse, an unknown codec, garbage. The iterator is
            over then.
        MessageTooLargeError: While iterating: a batch decompresses to more than 128 MiB or a thousandfold.
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
