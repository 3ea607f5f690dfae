"""The results of a handler: a response, metadata records to propose, or commands for logs."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, TypeVar, cast, overload

from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import CoordinatorResult, TransactionEnd, Waiter
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.errors import KafkaError, PolicyViolationError
from pykafka_core.protocol.messages import Message

T = TypeVar("T")

HELD_NS_MAX = 5_000_000_000
"""How long a request with reserved memory waits for shards; see `ShardCalls`."""

RECORDS_MAX = 10_000
"""The maximum of metadata records of one request, as Kafka's ``MAX_RECORDS_PER_USER_OP``.

One request must not delay the others for long, nor fill the disk.
"""


class MetadataWrite(NamedTuple):
    """Append ``records`` to the metadata log as one atomic batch, then respond.

    Args:
        records: If there is nothing to change, they are empty and ``reply(0)`` is called at once.
        reply: Called with 0 after the records are committed and applied, or with an error code if
            they were refused and nothing has changed. Long work is done in slices.
        kraft_version: The level to which ``kraft.version`` rises before ``records``, which must not
            be empty then; None if it does not change.
    """

    records: Sequence[Message]
    reply: Callable[[int], "Reply"]
    kraft_version: int | None = None


class DeleteBefore(NamedTuple):
    """Advance a log's start to ``offset``; -1 means the high watermark."""

    topic_id: bytes
    partition: int
    offset: int


class DescribeLogs(NamedTuple):
    """Return the sizes of logs, by (topic id, partition), and the space of their disk."""

    partitions: Sequence[tuple[bytes, int]]


class DescribeLogProducers(NamedTuple):
    """Return the idempotent producers in a log."""

    topic_id: bytes
    partition: int


class WriteMarker(NamedTuple):
    """End a producer's transaction on one partition."""

    topic_id: bytes
    partition: int
    end: TransactionEnd


LogCommand = DeleteBefore | DescribeLogs | DescribeLogProducers | WriteMarker


class LogResult(NamedTuple):
    """The result of a `LogCommand`: 0, or an error code.

    ``offset`` is the new log start offset of a `DeleteBefore`. ``value`` is the result of a query:
    `_core.LogDirs`, or a sequence of `_core.ProducerState`.
    """

    error_code: int
    offset: int
    value: object = None


class LogCommands(NamedTuple):
    """Execute commands on logs, then respond; ``reply`` gets their results in order.

    With a ``timeout_ms``, unfinished commands get REQUEST_TIMED_OUT after it.
    """

    commands: Sequence[LogCommand]
    timeout_ms: int | None
    reply: Callable[[Sequence[LogResult]], "Reply"]


class GroupOperation(NamedTuple):
    """Work in the shard of a partition of `__consumer_offsets`.

    ``run`` completes its waiter, now or in a later turn. It may raise a `KafkaError` before it
    changes anything.
    """

    partition: int
    run: Callable[[GroupShard, Waiter, CoordinatorResult], None]


class TransactionOperation(NamedTuple):
    """Work in the shard of a partition of `__transaction_state`; ``run`` as in `GroupOperation`."""

    partition: int
    run: Callable[[TransactionShard, Waiter, CoordinatorResult], None]


class TransactionQuery(NamedTuple):
    """A query about partitions to the coordinator of a transaction, on any node (KIP-890).

    The response is that of `add_partitions` or `verify_partitions` of
    `pykafka_core.coordinator.transaction`, or an error code: the coordinator's, or
    NETWORK_EXCEPTION if it does not answer.

    Args:
        transactional_id: It determines the coordinator.
        producer_id: The producer id of the transaction.
        producer_epoch: The producer epoch of the transaction.
        partitions: Topics and indexes.
        add: Whether the partitions join the transaction; otherwise they must be part of it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[tuple[str, int]]
    add: bool


ShardOperation = GroupOperation | TransactionOperation | TransactionQuery


class ShardResult(NamedTuple):
    """The result of an operation: 0 and the shard's response, or an error code."""

    error_code: int
    value: object = None


class ShardCalls(NamedTuple):
    """Execute operations in shards, then respond; ``reply`` gets their results in order.

    Args:
        operations: The operations.
        reply: Creates the response.
        release: Set if the results take memory that is reserved for the response. The memory is not
            held without bound: after `HELD_NS_MAX` operations without a result get
            COORDINATOR_LOAD_IN_PROGRESS. Called when the request ends, to release the results; some
            may still wait for their commit.
    """

    operations: Sequence[ShardOperation]
    reply: Callable[[Sequence[ShardResult]], "Reply"]
    release: Callable[[], object] | None = None


class Reserve(NamedTuple):
    """Reserve memory for a large response before it is built.

    Args:
        bytes: Upper bound of the response with its objects. Only what its encoded form takes stays
            reserved until the client has received it.
        then: Creates the response; called once the memory is reserved.
    """

    bytes: int
    then: Callable[[], "Reply"]


Outcome = Message | MetadataWrite | LogCommands | ShardCalls
OUTCOMES = (Message, MetadataWrite, LogCommands, ShardCalls)
"""The types for `isinstance`, which is faster with a tuple than with a union."""

Work = Generator[None, None, T]
"""Work that yields after each item, so that other work can run, and returns its result.

All work that grows with a request has this type. Its `Context` does not change in the meantime.
"""

Made = Message | Reserve
"""The result of work in slices: the response, or the memory that it needs first."""

Reply = Message | Work[Made] | ShardCalls | LogCommands
"""The next step after an outcome: the response, or more work before it."""

HandlerWork = Work[Outcome]
"""A handler whose work grows with its request."""


def as_work(made: T | Work[T]) -> Work[T]:
    """Return a finished result, or the result of work in slices."""
    return (yield from made) if isinstance(made, Generator) else made


def collect(items: Iterable[T]) -> Work[list[T]]:
    """Collect items, and yield after each."""
    made = []
    for item in items:
        made.append(item)
        yield
    return made


@overload
def run_to_end(made: Work[T]) -> T: ...
@overload
def run_to_end(made: T) -> T: ...
def run_to_end(made: T | Work[T]) -> T:
    """Return a finished result, or run the work to its end and return its result."""
    steps = as_work(made)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)


def without_traceback(error: KafkaError) -> KafkaError:
    """Return an error for a response, without its traceback.

    The frames of the traceback refer to the object that holds the error.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def check_record_limit(count: int) -> None:
    """Refuse a request that needs too many metadata records.

    Raises:
        PolicyViolationError: ``count`` is larger than `RECORDS_MAX`.
    """
    if count > RECORDS_MAX:
        raise PolicyViolationError(
            f"The request needs {count} metadata records; one may need {RECORDS_MAX}."
        )
