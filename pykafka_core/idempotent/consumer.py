"""An idempotent consumer in plain Python, around a confluent-kafka client.

Theory of operation. The ledger's marks are the only position: they are read when the consumer starts,
and again after anything went wrong, and reading goes on from there. Every assigned partition gets its
mark before its first record is read, so that "latest" means the same after a crash. A batch is polled,
its topics are checked to be the ones the marks are for, and then one ledger transaction filters it,
runs the effect and moves the marks. An error anywhere rolls back and forgets the position; nothing
else needs to be undone, as nothing else was changed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pykafka_core.errors import ConfigurationError, DataLossError
from pykafka_core.idempotent.ids import IdSource, Record, ids_of
from pykafka_core.idempotent.ledger import Ledger, PartitionKey, Transaction
from pykafka_core.idempotent.plan import Gap, plan, starting_marks
from pykafka_core.idempotent.source import KafkaSource, Place

Effect = Callable[[Any, list[Record]], object]
"""Called with the ledger's DB-API connection and records to process, at least one, in log order per partition."""


class Batch(NamedTuple):
    """How many records: ``polled`` = ``redelivered`` + ``duplicates`` + ``processed``.

    ``redelivered`` stood below the mark; ``duplicates`` had an id that was seen before.
    """

    polled: int = 0
    redelivered: int = 0
    duplicates: int = 0
    processed: int = 0


class IdempotentConsumer:
    """Gives every record to the effect once, in the transaction that also moves the offset.

    For one thread. It neither closes the clients nor the ledger.

    Args:
        consumer: A ``confluent_kafka.Consumer``; this object assigns its partitions and polls it, nobody
            else may. It needs a ``group.id`` (any) and ``enable.auto.commit=false``;
            ``isolation.level`` is its own choice.
        ledger: Where the effects go.
        group: Whose progress: consumers of one name share their marks and ids.
        topics: Names; each must exist.
        admin: A ``confluent_kafka.admin.AdminClient`` of the same cluster: it tells topic ids.
        effect: What is to happen once. It writes on the connection it is given and does not commit.
            What it does elsewhere (a mail, another database) happens again when the batch is repeated.
        ids: Gives a record's id, such as ``header_id("message-id")``; None: offsets alone, which stops
            redelivery but not a producer that wrote the same record twice.
        partitions: Only these of each topic; None: all, and those added later.
        start: Where to begin topics that the group has never read.
        fail_on_data_loss: Raise when retention deleted records before they were processed; else go on.
        batch_records_max: In one transaction.
        request_timeout_s: For each question to the broker.

    Raises:
        ConfigurationError: Names every argument that cannot be used.
        ImportError: confluent-kafka is not installed.
    """

    def __init__(
        self,
        consumer: Any,
        ledger: Ledger,
        group: str,
        *,
        topics: Sequence[str],
        admin: Any,
        effect: Effect,
        ids: IdSource | None = None,
        partitions: Collection[int] | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        fail_on_data_loss: bool = True,
        batch_records_max: int = 1000,
        request_timeout_s: float = 10.0,
    ) -> None:
        _check(
            consumer=_has(consumer, "assign", "consume", "get_watermark_offsets", "list_topics"),
            ledger=_has(ledger, "transaction"),
            group=_is_name(group),
            topics=_are_names(topics),
            admin=_has(admin, "describe_topics"),
            effect=callable(effect),
            ids=ids is None or callable(ids),
            partitions=partitions is None or _are_numbers(partitions),
            start=start in ("earliest", "latest"),
            fail_on_data_loss=type(fail_on_data_loss) is bool,
            batch_records_max=type(batch_records_max) is int
            and 0 < batch_records_max <= RECORDS_MAX,
            request_timeout_s=isinstance(request_timeout_s, int | float)
            and 0 < request_timeout_s <= REQUEST_TIMEOUT_S_MAX,
        )
        self._source = KafkaSource(consumer, admin, topics, partitions, request_timeout_s)
        self._ledger, self._group, self._effect, self._ids = ledger, group, effect, ids
        self._start, self._fail_on_data_loss = start, fail_on_data_loss
        self._batch_records_max = batch_records_max
        self._keys: dict[Place, PartitionKey] = {}
        self._marks: dict[PartitionKey, int] = {}
        """The ledger's, as of the last commit; empty: to be read before anything else."""

    def process_batch(self, timeout_s: float = 1.0) -> Batch:
        """Read some records, process those that are new and commit.

        Args:
            timeout_s: How long to wait for a first record.

        Returns:
            All zero if none came, and also when reading had to begin again (a topic was recreated, or
            has more partitions): the next call reads on.

        Raises:
            ConsumerError: The broker or the client failed.
            LedgerError: The database failed.
            MessageIdError: A record has no usable id.
            DataLossError: Records were deleted before they were processed.
            Exception: Whatever the effect raised. After any of them nothing of the batch has happened, and
                the next call begins with it again.
        """
        try:
            if not self._marks:
                self._resume()
            records = self._source.poll(self._batch_records_max, timeout_s)
            batch = self._process(records) if self._is_current(records) else None
        except BaseException:
            self._marks = {}
            raise
        if batch is None:
            self._marks = {}
        return batch or Batch()

    def _resume(self) -> None:
        keys = self._source.keys()
        self._source.refresh()
        with self._ledger.transaction(self._group) as transaction:
            starts = starting_marks(
                transaction.marks(),
                {key: self._source.watermarks(key) for key in keys.values()},
                start=self._start,
                fail_on_data_loss=self._fail_on_data_loss,
            )
            transaction.advance(starts)
        self._source.assign(starts)
        self._keys, self._marks = keys, starts

    def _is_current(self, records: Sequence[Record]) -> bool:
        """Whether the records belong to the topics, and follow the marks, as they are known."""
        if self._source.keys() != self._keys:
            return False
        lost = [gap for gap in plan(self._marks, self._places(records)).gaps if self._is_loss(gap)]
        if lost and self._fail_on_data_loss:
            key, expected, found = lost[0]
            raise DataLossError(
                f"{key.topic}-{key.partition}: records from offset {expected} to {found} were deleted "
                "before they were processed. fail_on_data_loss=False goes on without them"
            )
        return not lost

    def _is_loss(self, gap: Gap) -> bool:
        """Compaction and transactions leave gaps behind the log's first offset; deletion before it."""
        return gap.expected < self._source.watermarks(gap.key)[0]

    def _places(self, records: Sequence[Record]) -> list[tuple[PartitionKey, int]]:
        return [(self._keys[r.topic(), r.partition()], r.offset()) for r in records]

    def _process(self, records: list[Record]) -> Batch | None:
        """None if the ledger's marks went back, as they do when the database is restored from a backup."""
        if not records:
            return Batch()
        with self._ledger.transaction(self._group) as transaction:
            marks = transaction.marks()
            if _went_back(self._marks, marks):
                return None
            step = plan(marks, self._places(records))
            fresh = [records[index] for index in step.fresh]
            new = self._new_of(transaction, fresh)
            polled, count, new_count = (
                len(records),
                len(fresh),
                len(new),
            )  # Whatever the effect makes of its list.
            if new:
                self._effect(transaction.connection, new)
            transaction.advance(step.marks)
        # Another consumer of the group may have gone further than this batch.
        self._marks = {key: step.marks.get(key, marks[key]) for key in self._marks}
        return Batch(polled, polled - count, count - new_count, new_count)

    def _new_of(self, transaction: Transaction, fresh: list[Record]) -> list[Record]:
        if self._ids is None or not fresh:
            return fresh
        mask = transaction.claim(ids_of(fresh, self._ids))
        return [record for record, is_new in zip(fresh, mask, strict=True) if is_new]


def _went_back(known: Mapping[PartitionKey, int], marks: Mapping[PartitionKey, int]) -> bool:
    return any(marks.get(key, -1) < mark for key, mark in known.items())


def _has(client: object, *methods: str) -> bool:
    """Methods are asked for, not a class: a wrapper of a client is as good."""
    return all(callable(getattr(client, name, None)) for name in methods)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _are_names(topics: object) -> bool:
    if not isinstance(topics, Sequence) or isinstance(topics, str):
        return False
    return 0 < len(topics) == len(set(map(str, topics))) and all(map(_is_name, topics))


def _are_numbers(partitions: object) -> bool:
    if not isinstance(partitions, Collection):
        return False
    return len(partitions) > 0 and all(type(n) is int and n >= 0 for n in partitions)


RECORDS_MAX: Final = 1_000_000
REQUEST_TIMEOUT_S_MAX: Final = 3600
"""What librdkafka takes."""

_WANTED: Final = {
    "consumer": "a confluent_kafka.Consumer",
    "ledger": "a ledger, such as SQLiteLedger(path)",
    "group": "a name",
    "topics": "a list of names, one at least, and each once",
    "admin": "a confluent_kafka.admin.AdminClient",
    "effect": "a function of a connection and records",
    "ids": "a function of a record, such as header_id(name), or None",
    "partitions": "numbers from 0, one at least, or None",
    "start": "'earliest' or 'latest'",
    "fail_on_data_loss": "True or False",
    "batch_records_max": f"an integer from 1 to {RECORDS_MAX}",
    "request_timeout_s": f"a number of seconds above 0, up to {REQUEST_TIMEOUT_S_MAX}",
}


def _check(**is_good: bool) -> None:
    problems = [
        f"IdempotentConsumer: {name} must be {_WANTED[name]}"
        for name, good in is_good.items()
        if not good
    ]
    if problems:
        raise ConfigurationError(problems)
