"""Responses that are made of reads in shards. Large results are measured first, and read once
their memory is reserved.

Theory of operation. The results of all reads share `UNRESERVED_BYTES_MAX` bytes. Results beyond
them are only measured: a request that waits for memory holds their sizes. Then the memory of the
response is reserved, and these reads are executed again. A request with reserved memory does not
wait for a shard without bound (`ShardCalls.release`). In the meantime a result may have grown: if
it does not fit any more, its part gets COORDINATOR_LOAD_IN_PROGRESS, so that clients request it
again. So no part takes more memory than is reserved.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError
from pykafka_core.handlers.outcome import (
    Made,
    Reserve,
    ShardCalls,
    ShardOperation,
    ShardResult,
    Work,
)
from pykafka_core.protocol.messages import Message

K = TypeVar("K", bound=Hashable)

LATER = ShardResult(CoordinatorNotAvailableError.code)
"""The result beyond the limit of a response, or without a shard."""
GROWN = ShardResult(CoordinatorLoadInProgressError.code)
"""The result that does not fit into the reserved memory."""
_GROWTH = 8
"""The reserved memory has space for an eighth more than was measured, because groups grow."""


class Mention(NamedTuple, Generic[K]):
    """A part of a response, which needs a read.

    Attributes:
        key: The read.
        own_bytes: Upper bound of the rows that do not depend on the result of the read.
        has_size: Whether `Read.size` belongs to this part.
    """

    key: K
    own_bytes: int = 0
    has_size: bool = True

    def size(self, read: Read) -> int:
        """Return the upper bound of this part."""
        return self.own_bytes + read.size * self.has_size


class Reading(NamedTuple, Generic[K]):
    """A response that is made of reads.

    Args:
        operation: Returns the operation of a read, whose response is a `Read` within the given
            budget; None if there is no shard.
        mentions: Yields the parts of the response in order. Called several times, with the same
            result.
        bytes_max: Limit of the sizes of all parts; the parts after it get an error. The first part
            is always included.
        respond: Creates the response from the results of the parts; see `value_of`.
    """

    operation: Callable[[K, Budget], ShardOperation | None]
    mentions: Callable[[], Iterable[Mention[K]]]
    bytes_max: int
    respond: Callable[[Sequence[ShardResult]], Work[Message]]


def coordinate_reads(reading: Reading[K], keys: Iterable[K]) -> Work[ShardCalls]:
    """Execute each read once, and respond; a large response takes two reads."""
    operations = yield from _operations(reading, keys, Budget(UNRESERVED_BYTES_MAX))

    def reply(results: Sequence[ShardResult]) -> Work[Made]:
        return _reserve(reading, dict(zip(operations, results, strict=True)))

    return ShardCalls(list(operations.values()), reply)


def _operations(
    reading: Reading[K], keys: Iterable[K], budget: Budget
) -> Work[dict[K, ShardOperation]]:
    operations: dict[K, ShardOperation] = {}
    for key in keys:
        if operations:
            yield
        operation = reading.operation(key, budget)
        if operation is not None:
            operations[key] = operation
    return operations


def value_of(result: ShardResult) -> object:
    """Return the value of a read; None if the result is an error."""
    return result.value.value if isinstance(result.value, Read) else None


def _reserve(reading: Reading[K], results: dict[K, ShardResult]) -> Work[Made]:
    """Choose the parts within the limit of the response, and reserve its memory."""
    came: list[ShardResult] = []
    chosen: set[K] = set()
    measured: list[K] = []
    bytes_left, held_bytes, count = reading.bytes_max, 0, 0
    for mention in reading.mentions():
        if came:
            yield
        if bytes_left <= 0:
            came.append(LATER)
            continue
        count += 1
        came.append(results.get(mention.key, LATER))
        read = came[-1].value
        if isinstance(read, Read):
            bytes_left -= mention.size(read)
            if mention.key not in chosen:
                chosen.add(mention.key)
                held_bytes += read.held_bytes
                if read.value is None:
                    measured.append(mention.key)
    size = reading.bytes_max - bytes_left + held_bytes
    if measured:
        return (yield from _read_again(reading, results, measured, count, size + size // _GROWTH))
    if size <= UNRESERVED_BYTES_MAX:
        return (yield from reading.respond(came))
    return Reserve(size, lambda: reading.respond(came))


def _read_again(
    reading: Reading[K],
    results: dict[K, ShardResult],
    measured: Sequence[K],
    count: int,
    size: int,
) -> Work[Reserve]:
    """Reserve ``size`` bytes, execute the measured reads again, and respond.

    Args:
        reading: The response.
        results: The results so far.
        measured: The reads without a value.
        count: Number of the parts within the limit.
        size: Upper bound of these parts and of their values.
    """
    budget = Budget(size)
    operations = yield from _operations(reading, measured, budget)

    def reply(again: Sequence[ShardResult]) -> Work[Message]:
        bytes_left = budget.end()  # an operation that has not run yet is too late
        results.update(zip(operations, again, strict=True))
        return _respond_within(reading, results, count, bytes_left)

    return Reserve(size, lambda: ShardCalls(list(operations.values()), reply, budget.close))


def _respond_within(
    reading: Reading[K], results: dict[K, ShardResult], count: int, bytes_left: int
) -> Work[Message]:
    """Create the response from the parts that fit into the reserved memory."""
    came: list[ShardResult] = []
    for mention in reading.mentions():
        yield
        result = results.get(mention.key, LATER) if len(came) < count else LATER
        read = result.value
        if isinstance(read, Read):
            if read.value is None or mention.size(read) > bytes_left:
                result = GROWN
            else:
                bytes_left -= mention.size(read)
        came.append(result)
    return (yield from reading.respond(came))
