"""Committed offsets, in Cython: a broker holds millions, which Python's collector need not look at."""

from typing import final

@final
class Committed:
    """What was committed for a partition; immutable, comparable, picklable.

    Attributes:
        offset: Of the record that is to be read next.
        leader_epoch: Of the record before it; -1 if the client does not know.
        metadata: The client's own, up to ``offset.metadata.max.bytes``.
        commit_timestamp_ms: When.
        expire_timestamp_ms: Given by clients that set a retention time themselves; else -1.
        topic_id: 16 bytes; zeros where it is not known.

    Raises:
        ValueError: A topic id of another size.
        OverflowError: A number beyond its 64 bits, or the epoch's 32.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp_ms: int,
        expire_timestamp_ms: int = -1,
        topic_id: bytes = ...,
    ) -> None: ...
    def __hash__(self) -> int: ...
