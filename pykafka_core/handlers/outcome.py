"""What a handler may decide: answer, propose metadata records, or have logs maintained."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, TypeVar, cast, overload

from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import TransactionEnd, Turn, Waiter
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.errors import KafkaError, PolicyViolationError
from pykafka_core.protocol.messages import Message

T = TypeVar("T")

RECORDS_MAX = 10_000
"""Metadata records of one request, as Kafka's ``MAX_RECORDS_PER_USER_OP``: one request must not
hold up the others for long, nor fill the disk."""


class Propose(NamedTuple):
    """Append ``records`` to the metadata log as one atomic batch, then answer.

    Args:
        records: Empty when there is nothing to change; then ``reply(0)`` comes at once.
        reply: Called with 0 once they are committed and applied, or with the error code with which
            they were refused; nothing was changed then. What takes long is made in slices.
        kraft_version: What ``kraft.version`` is raised to before ``records``, of which there are
            some; None if it stays as it is.
    """

    records: Sequence[Message]
    reply: Callable[[int], "Reply"]
    kraft_version: int | None = None


class DeleteBefore(NamedTuple):
    """Advance a log's start to ``offset``; -1 is the high watermark."""

    topic_id: bytes
    partition: int
    offset: int


class DescribeLogs(NamedTuple):
    """Sizes of logs, by (topic id, partition), and the space of their disk."""

    partitions: Sequence[tuple[bytes, int]]


class DescribeLogProducers(NamedTuple):
    """The idempotent producers that a log remembers."""

    topic_id: bytes
    partition: int


class WriteMarker(NamedTuple):
    """End a producer's transaction on one partition."""

    topic_id: bytes
    partition: int
    end: TransactionEnd


LogCommand = DeleteBefore | DescribeLogs | DescribeLogProducers | WriteMarker


class Maintained(NamedTuple):
    """What came of a `LogCommand`: 0, or an error code.

    ``offset`` is the new log start offset of a `DeleteBefore`; ``answer`` is the answer to a question, `_core.LogDirs`
    or a sequence of `_core.ProducerState`.
    """

    error_code: int
    offset: int
    answer: object = None


class Maintain(NamedTuple):
    """Have logs changed, or ask them, then answer; ``reply`` gets one result for each command, in order.

    After ``timeout_ms``, unless that is None, it gets REQUEST_TIMED_OUT for those that are not over.
    """

    commands: Sequence[LogCommand]
    timeout_ms: int | None
    reply: Callable[[Sequence[Maintained]], "Reply"]


class GroupOperation(NamedTuple):
    """Something to do in the shard of a partition of `__consumer_offsets`.

    ``run`` answers its waiter, now or in a later turn; it may raise a `KafkaError` before it changes anything.
    """

    partition: int
    run: Callable[[GroupShard, Waiter, Turn], None]


class TransactionOperation(NamedTuple):
    """Something to do in the shard of a partition of `__transaction_state`; ``run`` as in `GroupOperation`."""

    partition: int
    run: Callable[[TransactionShard, Waiter, Turn], None]


class TransactionQuestion(NamedTuple):
    """Ask the coordinator of a transaction, on whichever node it is, about partitions (KIP-890).

    Answered as `add_partitions` or `verify_partitions` of `pykafka_core.coordinator.transaction` answer, or with an
    error code: that of the coordinator, or NETWORK_EXCEPTION without an answer of it.

    Args:
        transactional_id: Decides who coordinates it.
        producer_id: Of the transaction.
        producer_epoch: Likewise.
        partitions: By topic and index.
        add: Whether they become part of the transaction, or must be so.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[tuple[str, int]]
    add: bool


ShardOperation = GroupOperation | TransactionOperation | TransactionQuestion


class Coordinated(NamedTuple):
    """What came of an operation: 0 and what the shard answered, or an error code."""

    error_code: int
    answer: object = None


class Coordinate(NamedTuple):
    """Have shards decide, then answer; ``reply`` gets one result for each operation, in order."""

    operations: Sequence[ShardOperation]
    reply: Callable[[Sequence[Coordinated]], "Reply"]


Outcome = Message | Propose | Maintain | Coordinate
OUTCOMES = (Message, Propose, Maintain, Coordinate)
"""For `isinstance`, which is faster with them than with a union."""

Slices = Generator[None, None, T]
"""Work that yields after each item, where other work may be done, and returns what it made. Whatever grows with a
request is made so. What a handler knows (`Context`) does not change meanwhile."""

Reply = Message | Slices[Message] | Coordinate | Maintain
"""What comes of an outcome: the answer, or what else has to be done before there is one."""

Steps = Slices[Outcome]
"""A handler whose work grows with its request."""


def in_slices(made: T | Slices[T]) -> Slices[T]:
    """What is made already, or in slices."""
    return (yield from made) if isinstance(made, Generator) else made


def collect(items: Iterable[T]) -> Slices[list[T]]:
    """Make items one by one."""
    made = []
    for item in items:
        made.append(item)
        yield
    return made


@overload
def finish(made: Slices[T]) -> T: ...
@overload
def finish(made: T) -> T: ...
def finish(made: T | Slices[T]) -> T:
    """What is made already, or what the work makes that is run to its end."""
    steps = in_slices(made)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)


def kept(error: KafkaError) -> KafkaError:
    """An error that an answer is made of, without the frames that it came through: they hold what holds the error."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def bounded(count: int) -> None:
    """Refuse a request that needs ``count`` metadata records, if that is too many.

    Raises:
        PolicyViolationError: More than `RECORDS_MAX`.
    """
    if count > RECORDS_MAX:
        raise PolicyViolationError(
            f"The request needs {count} metadata records; one may need {RECORDS_MAX}."
        )
