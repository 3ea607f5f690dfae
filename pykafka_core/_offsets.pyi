"""Committed offsets, in Cython: a broker has millions, which Python's garbage collector need not
visit.
"""

from typing import final

@final
class Committed:
    """A committed offset of a partition; immutable, comparable, picklable.

    Attributes:
        offset: Offset of the next record to read.
        leader_epoch: Epoch of the record before it; -1 if the client does not know it.
        metadata: The client's text, up to ``offset.metadata.max.bytes``.
        commit_timestamp_ms: Time of the commit.
        expire_timestamp_ms: Set if the client requested a retention time; else -1.
        topic_id: 16 bytes; zeros if unknown.

    Raises:
        ValueError: A topic id of another size.
        OverflowError: A number beyond its 64 bits, or an epoch beyond 32.
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
