"""An idempotent consumer in plain Python, around a confluent-kafka client.

Theory of operation. The ledger's marks are the only position. They are read when the consumer
starts and after any error, and reading continues from there. Every assigned partition gets its mark
before its first record is read, so that "latest" has the same meaning after a crash. A batch is
polled, its topics are checked against the marks' topic ids, and one ledger transaction then filters
it, runs the effect and advances the marks. Any error rolls back the transaction and discards the
position; there is no other state to undo.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pykafka_core.errors import ConfigurationError, DataLossError
from pykafka_core.idempotent.deduplication import Gap, plan, starting_marks
from pykafka_core.idempotent.ids import IdSource, Record, ids_of
from pykafka_core.idempotent.ledger import Ledger, PartitionKey, Transaction
from pykafka_core.idempotent.source import KafkaSource, TopicPartition

Effect = Callable[[Any, list[Record]], object]
"""Called with the ledger's DB-API connection and one or more records; partitions in log order."""


class Batch(NamedTuple):
    """Record counts: ``polled`` = ``redelivered`` + ``duplicates`` + ``processed``.

    ``redelivered`` records were below the mark; ``duplicates`` had an id that was seen before.
    """

    polled: int = 0
    redelivered: int = 0
    duplicates: int = 0
    processed: int = 0


class IdempotentConsumer:
    """Passes every record to the effect once, in the transaction that also advances the offset.

    For one thread. It closes neither the clients nor the ledger.

    Args:
        consumer: A ``confluent_kafka.Consumer``, which must only be assigned and polled by this
            object. It needs a ``group.id`` (any) and ``enable.auto.commit=false``;
            ``isolation.level`` may have any value.
        ledger: A ledger in the database of the effects.
        group: Name of the progress: consumers with the same group share marks and ids.
        topics: Names; each must exist.
        admin: A ``confluent_kafka.admin.AdminClient`` of the same cluster, for topic ids.
        effect: The work to do once per record. It writes on the given connection and does not
            commit. Side effects elsewhere (mail, another database) are repeated with the batch.
        ids: Returns a record's id, such as ``header_id("message-id")``. None: only offsets are
            used, which prevents redelivery but not duplicates that a producer wrote.
        partitions: Only these partitions of each topic; None: all, including later ones.
        start: Where to start topics that the group has never read.
        fail_on_data_loss: Raise an error if records were deleted before they were processed; if
            False, skip them.
        batch_records_max: Maximum number of records in one transaction.
        request_timeout_s: Timeout of each request to the broker.

    Raises:
        ConfigurationError: Names every invalid argument.
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
        self._keys: dict[TopicPartition, PartitionKey] = {}
        self._marks: dict[PartitionKey, int] = {}
        """The ledger's marks after the last commit; empty if they must be read first."""

    def process_batch(self, timeout_s: float = 1.0) -> Batch:
        """Read some records, process the new ones and commit.

        Args:
            timeout_s: Maximum time to wait for a first record.

        Returns:
            All counts are zero if there were no records, or if reading had to restart because a
            topic was recreated or has new partitions. The next call continues.

        Raises:
            ConsumerError: The broker or the client failed.
            LedgerError: The database failed.
            MessageIdError: A record has no usable id.
            DataLossError: Records were deleted before they were processed.
            Exception: Raised by the effect. After any of these errors nothing of the batch is
                committed, and the next call repeats it.
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
        """Return whether the records are of the known topic ids and directly follow the marks."""
        if self._source.keys() != self._keys:
            return False
        lost = [gap for gap in plan(self._marks, self._places(records)).gaps if self._is_loss(gap)]
        if lost and self._fail_on_data_loss:
            key, expected, found = lost[0]
            raise DataLossError(
                f"{key.topic}-{key.partition}: records from offset {expected} to {found} were deleted "
                "before they were processed. fail_on_data_loss=False continues without them"
            )
        return not lost

    def _is_loss(self, gap: Gap) -> bool:
        """Return whether deletion caused the gap. Other gaps do not start below the log start."""
        return gap.expected < self._source.watermarks(gap.key)[0]

    def _places(self, records: Sequence[Record]) -> list[tuple[PartitionKey, int]]:
        return [(self._keys[r.topic(), r.partition()], r.offset()) for r in records]

    def _process(self, records: list[Record]) -> Batch | None:
        """Process records; return None if marks decreased, as after a restore from a backup."""
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
            )  # the effect may modify its list
            if new:
                self._effect(transaction.connection, new)
            transaction.advance(step.marks)
        # Another consumer of the group may have advanced further than this batch.
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
    """Return whether the object has these methods; wrappers of a client are accepted."""
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
"""librdkafka's limits."""

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
