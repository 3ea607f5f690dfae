"""Histories with effects on the executors: tasks fail, and hanging ones continue later."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink import sink
from spark_udfs.sink.executors import Committed, Counts, Task
from spark_udfs.sink.topic_partition import TopicPartition
from tests.spark.sink.histories.cluster import TOPICS, Record
from tests.spark.sink.histories.database import Backup, effect_of
from tests.spark.sink.histories.machine import (
    REFUSALS,
    STARTS,
    TROUBLES,
    EffectError,
    Histories,
    trouble,
    troubles,
)
from tests.spark.sink.histories.spark import Frame, Row, SourceError, TaskFailedError, table_of
from tests.spark.sink.histories.walk import one_of, step

FATES = (
    "is done",
    "is done after one that hung",
    "fails at once",
    "fails in the effect",
    "fails after its commit",
    "hangs before it reads",
    "hangs before it commits",
)
TASK_TROUBLES = (
    *TROUBLES,
    *FATES,
    *FATES,  # twice as often
    "a ledger is put back before the tasks",
    "a ledger is put back after the tasks",
)


@dataclass
class HangingTask:
    """``rows`` is None before it has read; ``deleted`` rows were already gone at the read."""

    task: Task
    frame: Frame
    place: TopicPartition
    rows: list[Row] | None = None
    deleted: set[Record] = field(default_factory=set)


class TaskHistories(Histories):
    effect_on = "executors"

    def __init__(self) -> None:
        super().__init__()
        self.fates: list[str] = []
        self.trouble: Sequence[str] = ()
        self.hanging: list[HangingTask] = []

    @step(weight=3, troubles=troubles(TASK_TROUBLES))
    def run_batches(self, troubles: Sequence[Sequence[str]] = ((),)) -> None:
        """Run batches; their first tasks, by place, have the fates among the batch's troubles."""
        Histories.run_batches(self, troubles)

    @step(weight=3, trouble=trouble(TASK_TROUBLES))
    def run_batch(self, trouble: Sequence[str] = ()) -> None:
        """Run a batch; see `run_batches`."""
        self.fates = [one for one in trouble if one in FATES]
        self.trouble = trouble
        Histories.run_batch(self, trouble)
        self.end_troubles()  # also without a batch

    def end_troubles(self) -> None:
        super().end_troubles()
        self.fates, self.trouble = [], ()

    @step(start=one_of(STARTS), troubles=troubles(TASK_TROUBLES))
    def begin_a_checkpoint(
        self, start: str = "earliest", troubles: Sequence[Sequence[str]] = ()
    ) -> None:
        Histories.begin_a_checkpoint(self, start, troubles)

    @step(topic=one_of(TOPICS), records=one_of(range(1, 6)))
    def recreate_under_a_hanging_task(self, topic: str = "a", records: int = 3) -> None:
        """The task then reads rows of the new topic."""
        self.run_batches([["hangs before it reads", "hangs before it reads"]])
        self.recreate(topic)
        self.cluster.produce(self.cluster.partitions[topic, 0], records)
        self.a_task_goes_on()

    @step(fate=one_of(["hangs before it reads", "hangs before it commits"]))
    def put_a_ledger_back_under_a_hanging_task(self, fate: str = "hangs before it reads") -> None:
        """The batch has redelivered rows, which its driver dropped."""
        self.back_up_the_ledger()
        self.run_batches([(), ()])
        self.begin_a_checkpoint("earliest", [[fate, fate]])
        self.put_a_ledger_back(len(self.backups) - 1)
        self.a_task_goes_on()

    def process(self, frame: Frame) -> None:
        left_out, group = self.rules().left_out_by(frame), self.driver.group

        def run_tasks(frame: Frame, task: Task) -> Committed:
            # The driver skips them once it has checked the batch, whatever its outcome is.
            self.leave_out(group, left_out)
            return self.run_tasks(frame, task)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sink, "run_tasks", run_tasks)
            super().process(frame)

    def run_tasks(self, frame: Frame, task: Task) -> Committed:
        """Run a task for each partition; tasks after a failed one may have run before it."""
        places = sorted({row[:2] for row in frame.rows()})
        parts = {place: frame.rows(place) for place in places}
        deleted = {place: self.deleted(task, place) for place in places}
        self.spark.are_read()
        self.put_the_ledger_back_if("a ledger is put back before the tasks", self.backups[0])
        fates = [*self.fates, *["is done"] * len(places)][: len(places)]
        for place, fate in zip(places, fates, strict=True):
            if fate == "hangs before it reads":
                self.hanging.append(HangingTask(task, frame, place))
            elif fate == "hangs before it commits":
                self.hanging.append(HangingTask(task, frame, place, parts[place], deleted[place]))
            elif fate != "fails at once":
                self.run_task(task, parts[place], fate)
                # Again, because a restored ledger does not have them.
                self.leave_out(task.group, deleted[place])
        if not all(fate.startswith("is done") for fate in fates):
            raise TaskFailedError
        self.put_the_ledger_back_if("a ledger is put back after the tasks", self.backups[-1])
        return Committed(Counts(), set(places))

    def put_the_ledger_back_if(self, trouble: str, backup: Backup) -> None:
        if trouble in self.trouble:
            self.database.put_back(backup)
            self.note(trouble)

    def run_task(self, task: Task, rows: list[Row], fate: str) -> None:
        if fate == "is done after one that hung":
            self.a_task_goes_on()
        if fate == "fails in the effect":
            with suppress(EffectError):
                work = replace(task.work, effect=effect_of(task.group, fail))
                run(replace(task, work=work), rows)
        else:
            run(task, rows)

    @step(trouble=trouble(TROUBLES))
    def run_a_batch_on_the_driver(self, trouble: Sequence[str] = ()) -> None:
        """Restart the query with ``effect_on="driver"``, then as before; hanging tasks remain."""
        self.effect_on = "driver"
        self.restart()
        self.run_batch(trouble)
        self.effect_on = "executors"
        self.restart()
        self.happened.add("a batch on the driver")

    @step(weight=2, which=one_of(range(10)))
    def a_task_goes_on(self, which: int = 0) -> None:
        """Continue a task whose driver ended, or whose second run is done."""
        if not self.hanging:
            return
        hanging = self.hanging.pop(which % len(self.hanging))
        with suppress(*REFUSALS, SourceError, EffectError):
            task, rows, left_out = hanging.task, hanging.rows, hanging.deleted
            if rows is None:
                rows = hanging.frame.rows(hanging.place)
                left_out = self.deleted(task, hanging.place) if rows else set()
            run(task, rows)
            self.leave_out(task.group, left_out)
            self.note("a task went on")

    def deleted(self, task: Task, place: TopicPartition) -> set[Record]:
        """Return the task's rows deleted by retention, if the source tolerates that."""
        mark = self.database.marks(task.group).get(PartitionKey(task.ids[place[0]], *place), 0)
        planned, partition = task.plan.ranges[place], self.cluster.partitions[place]
        end = min(planned.end, partition.start)
        return partition.records(range(max(mark, planned.start), end))

    def finish(self) -> None:
        """Continue some of the hanging tasks before the end, and the others after it."""
        for _ in range((len(self.hanging) + 1) // 2):
            self.a_task_goes_on()
        self.check()
        self.fates = []
        super().finish()
        while self.hanging:
            self.a_task_goes_on()
        self.check()


def run(task: Task, rows: list[Row]) -> None:
    list(task(iter(table_of(rows).to_batches())))


def fail() -> None:
    raise EffectError
