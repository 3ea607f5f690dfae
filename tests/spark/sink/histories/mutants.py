"""Wrong rules: each changes a rule of the sink, as its name describes. Histories must find all."""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from pykafka_core.errors import ConfigurationError, DataLossError
from pykafka_core.idempotent import PartitionKey, SQLiteLedger, Transaction, sql
from pykafka_core.idempotent.deduplication import first_fresh, first_of_each
from spark_udfs.sink import executors, micro_batch_plan, processing, sink
from spark_udfs.sink.executors import Counts, Task
from spark_udfs.sink.gap_check import Read
from spark_udfs.sink.micro_batch_plan import Planned, StreamPlan, agreed
from spark_udfs.sink.rows import micro_batch
from spark_udfs.sink.rows.micro_batch import Batch, Rows
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.topic_partition import Range, TopicPartition
from tests.spark.sink.histories.machine import Histories
from tests.spark.sink.histories.spark import without_a_jvm
from tests.spark.sink.histories.tasks import TaskHistories
from tests.spark.sink.histories.walk import run, steps_of
from tests.support.wrong_rules import Plant, Recorded, WrongRules, seeds_violating

SEEDS_MAX: Final = 250
"""Limit of a search; most wrong rules are found in ten histories, the last one in 56."""

MUTANTS: Final = WrongRules()
FOUND_BY: Final[dict[str, type[Histories]]] = {}
"""The kind of histories that must find each wrong rule."""


def found_by(machine: type[Histories]) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        FOUND_BY[plant.__name__] = machine
        return MUTANTS.add(plant)

    return register


def _run(rule: str, seed: int) -> None:
    machine = FOUND_BY[rule]
    run(machine, steps_of(machine, seed))


def _finding(rule: str) -> Iterator[int]:
    return seeds_violating(partial(_run, rule), range(SEEDS_MAX))


RECORDED: Final = Recorded[int](
    rules=MUTANTS,
    run=_run,
    finding=_finding,
    file=Path(__file__).with_name("seeds.toml"),
    module="tests.spark.sink.histories.mutants",
    patching=without_a_jvm,
)


# Rows and marks.


@found_by(Histories)
def rows_below_a_mark_are_processed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(micro_batch, "first_fresh", lambda offset_at, start, stop, mark: start)


@found_by(Histories)
def a_mark_is_the_last_offset_that_was_processed(patch: pytest.MonkeyPatch) -> None:
    right = first_fresh
    patch.setattr(
        micro_batch,
        "first_fresh",
        lambda offset_at, start, stop, mark: right(offset_at, start, stop, mark + (mark > 0)),
    )


@found_by(Histories)
def marks_follow_a_batch_back(patch: pytest.MonkeyPatch) -> None:
    def advanced(read: Read, ends: Mapping[TopicPartition, int]) -> dict[PartitionKey, int]:
        return {read.key(place): end for place, end in ends.items()}

    patch.setattr(Read, "advanced", advanced)
    patch.setattr(sql, "check_mark", lambda *_: None)
    patch.setattr(sql, "NEVER_BACK", "")


@found_by(Histories)
def a_topic_keeps_its_first_id(patch: pytest.MonkeyPatch) -> None:
    """Topics of one name are treated as one topic."""

    def ids_of_topics(_: IdempotentSink, topics: set[str], brokers: Any) -> dict[str, bytes]:
        first: dict[str, bytes] = brokers.__dict__.setdefault("first", {})
        found = brokers(topics)
        return {topic: first.setdefault(topic, found[topic]) for topic in topics}

    patch.setattr(IdempotentSink, "_ids_of_topics", ids_of_topics)


@found_by(Histories)
def the_batch_number_decides(patch: pytest.MonkeyPatch) -> None:
    """A batch whose number was committed is skipped, as in Spark's guide."""
    right = IdempotentSink._by_offsets

    def by_offsets(self: IdempotentSink, df: Any, batch_id: int, brokers: Any) -> Counts:
        with self._ledger.transaction(self._group) as transaction:
            if batch_id <= transaction.batches().get("query", -1):
                return Counts()
        counts = right(self, df, batch_id, brokers)
        with self._ledger.transaction(self._group) as transaction:
            transaction.begin_batch("query", batch_id)
        return counts

    patch.setattr(IdempotentSink, "_by_offsets", by_offsets)


@found_by(Histories)
def marks_are_committed_before_the_effect(patch: pytest.MonkeyPatch) -> None:
    right = IdempotentSink._checked_transaction

    @contextmanager
    def advanced(
        self: IdempotentSink, plan: Planned, *rest: Any
    ) -> Iterator[tuple[Transaction, Read]]:
        with right(self, plan, *rest) as (transaction, read):
            transaction.advance(read.advanced(plan.ends))
            yield transaction, read

    patch.setattr(IdempotentSink, "_checked_transaction", advanced)
    _keep_at_roll_back(patch, "pykafka_marks")


@found_by(Histories)
def groups_share_their_marks(patch: pytest.MonkeyPatch) -> None:
    right = SQLiteLedger.transaction
    patch.setattr(SQLiteLedger, "transaction", lambda ledger, _: right(ledger, "g"))


# Message ids.


@found_by(Histories)
def ids_stay_claimed_when_the_effect_fails(patch: pytest.MonkeyPatch) -> None:
    _keep_at_roll_back(patch, "pykafka_ids")


@found_by(Histories)
def ids_are_compared_within_a_batch_only(patch: pytest.MonkeyPatch) -> None:
    def claimed(_: Any, ids: pa.ChunkedArray, good: Any) -> Any:
        values = ids.to_pylist()
        return np.array(first_of_each(values, set(values)))

    patch.setattr(processing, "_claimed", claimed)


def _keep_at_roll_back(patch: pytest.MonkeyPatch, table: str) -> None:
    """Make writes to the table survive a rollback."""
    right = SQLiteLedger._roll_back

    def roll_back(ledger: SQLiteLedger, connection: sqlite3.Connection) -> None:
        kept = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for name in ("pykafka_groups", table)
        }
        right(ledger, connection)
        for name, rows in kept.items():
            for row in rows:
                values = ", ".join("?" for _ in row)
                connection.execute(f"INSERT OR REPLACE INTO {name} VALUES ({values})", row)

    patch.setattr(SQLiteLedger, "_roll_back", roll_back)


# Where a batch may start.


def _passed_over(
    patch: pytest.MonkeyPatch, forgives: Callable[[Read, int | None, TopicPartition, Range], bool]
) -> None:
    """Accept some skipped offsets of a batch, by batch number, place and offsets."""
    right = Read.passed_over

    def passed_over(read: Read, plan: Planned, batch_id: int | None) -> dict[TopicPartition, Range]:
        lost = right(read, plan, batch_id)
        return {at: lost[at] for at in lost if not forgives(read, batch_id, at, lost[at])}

    patch.setattr(Read, "passed_over", passed_over)


@found_by(Histories)
def a_new_checkpoint_may_begin_at_the_latest(patch: pytest.MonkeyPatch) -> None:
    _passed_over(patch, lambda _, batch_id, *__: batch_id == 0)


@found_by(Histories)
def a_ledger_may_be_older_than_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    _passed_over(patch, lambda _, batch_id, *__: bool(batch_id))


@found_by(Histories)
def what_retention_took_need_not_be_said(patch: pytest.MonkeyPatch) -> None:
    _passed_over(patch, lambda read, _, place, lost: read._log_start(place) >= lost.end)


@found_by(Histories)
def an_added_partition_may_begin_anywhere(patch: pytest.MonkeyPatch) -> None:
    _passed_over(patch, lambda read, _, place, __: read.key(place) not in read.marks)


@found_by(Histories)
def a_checkpoint_may_be_of_an_earlier_topic(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Read, "check_topic_ids", lambda *_: None)


@found_by(Histories)
def a_log_may_end_before_the_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sink, "check_logs", lambda *_: None)


@found_by(Histories)
def topic_ids_are_not_asked_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        IdempotentSink, "_ids_of_topics", lambda _, topics, brokers: dict(brokers(topics))
    )


@found_by(Histories)
def a_call_that_failed_has_checked_the_logs_for_the_next_one(patch: pytest.MonkeyPatch) -> None:
    right = IdempotentSink._logs

    def logs(self: IdempotentSink, plan: Planned, batch_id: int, brokers: Any) -> Any:
        known = {(topic, 0): 0 for topic in self._run.topic_ids}
        with pytest.MonkeyPatch.context() as once:
            once.setattr(self._run, "marks", known | self._run.marks)
            return right(self, plan, batch_id, brokers)

    patch.setattr(IdempotentSink, "_logs", logs)


# Refusals without a cause: a sink that refuses everything would lose nothing.


@found_by(Histories)
def a_batch_may_not_begin_before_a_mark(patch: pytest.MonkeyPatch) -> None:
    right = Read.check_gaps

    def check_gaps(read: Read, plan: Planned, batch_id: int | None) -> None:
        right(read, plan, batch_id)
        if read.redelivered(plan):
            raise DataLossError("the batch begins before the marks")

    patch.setattr(Read, "check_gaps", check_gaps)


@found_by(Histories)
def streams_may_not_read_one_topic(patch: pytest.MonkeyPatch) -> None:
    right = agreed

    def agreed_or_not(streams: Sequence[StreamPlan]) -> Planned:
        plan = right(streams)
        if len(plan.ranges) < sum(map(len, streams)):
            raise ConfigurationError(["two streams read a topic"])
        return plan

    patch.setattr(micro_batch_plan, "agreed", agreed_or_not)


# Unions.


@found_by(Histories)
def streams_may_be_at_different_offsets(patch: pytest.MonkeyPatch) -> None:
    def unchecked(streams: Sequence[StreamPlan]) -> Planned:
        return Planned({place: at for stream in streams for place, at in stream.items()})

    patch.setattr(micro_batch_plan, "agreed", unchecked)


@found_by(Histories)
def a_second_stream_brings_nothing_new(patch: pytest.MonkeyPatch) -> None:
    """Only the first of several rows with one offset counts."""

    def in_log_order(table: pa.Table) -> Batch:
        places = zip(*(table[name].to_pylist() for name in micro_batch.SOURCE_COLUMNS), strict=True)
        first = {place: row for row, place in reversed(list(enumerate(places)))}
        return micro_batch.in_log_order(table.take(pa.array(sorted(first.values()), pa.int64())))

    patch.setattr(sink, "in_log_order", in_log_order)


# Tasks.


@found_by(TaskHistories)
def the_driver_advances_the_marks_before_its_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Planned, "starts", property(lambda plan: plan.ends))


@found_by(TaskHistories)
def a_task_trusts_the_marks_that_its_driver_saw(patch: pytest.MonkeyPatch) -> None:
    class Whole(Batch):
        def fresh(self, marks: Mapping[TopicPartition, int]) -> Rows:
            return super().fresh({})

    def whole(table: pa.Table) -> Batch:
        batch = micro_batch.in_log_order(table)
        return Whole(batch.table, batch.order, batch.runs)

    patch.setattr(executors, "in_log_order", whole)


@found_by(TaskHistories)
def a_task_goes_on_whatever_ledger_was_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(executors, "check_marks", lambda *_: None)


@found_by(TaskHistories)
def a_driver_goes_on_whatever_ledger_was_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sink, "check_marks", lambda *_: None)


@found_by(TaskHistories)
def a_task_does_not_know_what_its_driver_dropped(patch: pytest.MonkeyPatch) -> None:
    right = executors.check_marks

    def check_marks(ledger: Any, marks: Any, known: Mapping[PartitionKey, int]) -> None:
        right(ledger, marks, {key: min(begin, planned_at[key]) for key, begin in known.items()})

    def committed(task: Task, rows: pa.Table) -> Any:
        planned_at.clear()
        planned_at.update(
            {PartitionKey(task.ids[at[0]], *at): task.plan.starts[at] for at in task.plan.ranges}
        )
        return committed_right(task, rows)

    planned_at: dict[PartitionKey, int] = {}
    committed_right = Task._committed
    patch.setattr(executors, "check_marks", check_marks)
    patch.setattr(Task, "_committed", committed)


@found_by(TaskHistories)
def a_task_does_not_ask_whose_rows_it_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Task, "_check_topic_ids", lambda *_: None)


if __name__ == "__main__":
    sys.exit(RECORDED.main())
