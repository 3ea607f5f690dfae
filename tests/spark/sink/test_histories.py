"""Random histories of a topic, of Spark's checkpoints and of a ledger, held against a model of Spark.

The model plans batches as Spark's Kafka source does and hands them to the consumer itself. Whatever was deleted, put
back or begun again: once a batch is accepted, everything before a mark had its effect once for each stream that read
it. What nobody could read any more, and what a new group chose to leave out by starting at the end, is exempt.
"""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count, zip_longest

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyspark.sql.types import StructType

from pykafka_core.errors import ConfigurationError, ConsumerError, DataLossError, LedgerError
from pykafka_core.idempotent import PartitionKey
from spark_udfs.sink import sink
from spark_udfs.sink.executors import Counts, Task
from spark_udfs.sink.places import Place, Range
from spark_udfs.sink.planned import StreamPlan, agreed
from spark_udfs.sink.sink import IdempotentSink

TOPICS = ("a", "b")
LATE = "c"
"""Does not exist at first; a pattern finds it once it does."""
SCHEMA = StructType().add("topic", "string").add("partition", "integer").add("offset", "long")
TABLE = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
Offsets = dict[Place, int]
Record = tuple[bytes, int, int]
"""Topic id, partition and offset."""


@dataclass
class Partition:
    """``uid`` tells it from others of its name."""

    uid: tuple[bytes, int]
    start: int = 0
    end: int = 0


NONE = Partition((b"", 0))


class Cluster:
    """Topics by name; their ids are never used twice."""

    def __init__(self) -> None:
        self._ids = count(1)
        self.ids: dict[str, bytes] = {}
        self.partitions: dict[Place, Partition] = {}
        for topic in TOPICS:
            self.create(topic)
        for partition in self.partitions.values():
            partition.end = 3

    def create(self, topic: str) -> None:
        """Anew, if there is one."""
        self.ids[topic] = next(self._ids).to_bytes(16, "big")
        for place in [place for place in self.partitions if place[0] == topic]:
            del self.partitions[place]
        self.grow(topic)

    def grow(self, topic: str) -> None:
        number = sum(place[0] == topic for place in self.partitions)
        self.partitions[topic, number] = Partition((self.ids[topic], number))

    def __call__(self, topics: Iterable[str]) -> Mapping[str, bytes]:
        return {topic: self.ids[topic] for topic in topics}

    def log_ranges(self, places: Iterable[Place]) -> Mapping[Place, Range]:
        there = {place: self.partitions.get(place, NONE) for place in places}
        return {place: Range(partition.start, partition.end) for place, partition in there.items()}


@dataclass
class Checkpoint:
    """Spark's: batches that were planned, by stream where each ends, and how many of them are done."""

    start: str
    initial: list[Offsets] | None = None
    ends: list[list[Offsets]] = field(default_factory=list)
    done: int = 0


@dataclass
class Frame:
    """A micro-batch, as far as the consumer asks."""

    streams: Sequence[StreamPlan]
    rows: list[tuple[str, int, int]]
    schema = SCHEMA

    def toArrow(self) -> pa.Table:
        rows = [dict(zip(TABLE.names, row, strict=True)) for row in self.rows]
        return pa.Table.from_pylist(rows, TABLE)


@dataclass
class Ledger:
    """In memory. Effects are part of it, as they are of the database."""

    marks: dict[PartitionKey, int] = field(default_factory=dict)
    effects: Counter[Record] = field(default_factory=Counter)
    left_out: set[Record] = field(default_factory=set)

    @contextmanager
    def transaction(self, group: str) -> Iterator["Transaction"]:
        transaction = Transaction(copy.deepcopy(self))
        yield transaction
        self.__dict__.update(transaction.connection.__dict__)

    @contextmanager
    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> Iterator["Transaction"]:
        with self.transaction(group) as transaction:
            transaction.own = set(partitions)
            yield transaction

    def close(self) -> None: ...


class Transaction:
    def __init__(self, connection: Ledger) -> None:
        self.connection = connection
        self.own: set[PartitionKey] | None = None
        """None: all of the group's."""

    def marks(self) -> dict[PartitionKey, int]:
        known = self.connection.marks
        return dict(known) if self.own is None else {key: known.get(key, 0) for key in self.own}

    def claim(self, ids: Sequence[bytes]) -> list[bool]:
        assert not ids
        return []

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        known = self.connection.marks
        assert self.own is None or marks.keys() <= self.own
        assert all(mark >= known.get(key, 0) for key, mark in marks.items())
        known.update(marks)


class Spark:
    """Plans as MicroBatchExecution and KafkaMicroBatchStream do, without failing on data loss itself."""

    def __init__(
        self, cluster: Cluster, subscriptions: list[set[str]], limit: int, *, joins: bool
    ) -> None:
        self._cluster, self._subscriptions, self._limit = cluster, subscriptions, limit
        self._joins = joins

    def next_batch(self, checkpoint: Checkpoint, arrive: int = 0) -> Frame | None:
        """The planned one that is not done, or a new one; None if there is nothing to read.

        Args:
            checkpoint: Written before this returns.
            arrive: Records that come to the first topic after each stream's plan.
        """
        if checkpoint.initial is None:
            checkpoint.initial = [
                self._initial(topics, checkpoint.start) for topics in self._subscriptions
            ]
        if checkpoint.done == len(checkpoint.ends):
            begins = checkpoint.ends[-1] if checkpoint.ends else checkpoint.initial
            planned = []
            for topics, begin in zip(self._subscriptions, begins, strict=True):
                planned.append(self._plan(topics, begin))
                self._cluster.partitions[TOPICS[0], 0].end += arrive
            if planned == begins:
                return None
            checkpoint.ends.append(planned)
        begins = ([checkpoint.initial] + checkpoint.ends)[checkpoint.done]
        streams = [
            {place: Range(begin.get(place, 0), offset) for place, offset in end.items()}
            for begin, end in zip(begins, checkpoint.ends[checkpoint.done], strict=True)
        ]
        rows = [list(self._rows(stream)) for stream in streams]
        if self._joins:  # on the place and the offset
            return Frame(streams, sorted(set.intersection(*map(set, rows))))
        return Frame(streams, [row for part in rows for row in part])

    def _places(self, topics: set[str]) -> dict[Place, Partition]:
        return {at: p for at, p in self._cluster.partitions.items() if at[0] in topics}

    def _initial(self, topics: set[str], start: str) -> Offsets:
        places = self._places(topics).items()
        return {at: p.start if start == "earliest" else p.end for at, p in places}

    def _plan(self, topics: set[str], begins: Offsets) -> Offsets:
        ends = {}
        for place, partition in self._places(topics).items():
            begin = begins.get(place, partition.start)
            ends[place] = max(begin, min(partition.end, begin + self._limit))
        return ends

    def _rows(self, stream: StreamPlan) -> Iterator[tuple[str, int, int]]:
        for place, planned in stream.items():
            partition = self._cluster.partitions.get(place, NONE)
            end = min(planned.end, partition.end)
            for offset in range(max(planned.start, partition.start), end):
                yield (*place, offset)


def subscriptions_of(shape: str) -> list[set[str]]:
    """Streams by their topics: "a|ab" is a union of one that reads a and one that reads both, "a&a" a join.

    "abc" is a pattern: it finds c once that exists.
    """
    return [set(topics) for topics in shape.replace("&", "|").split("|")]


class Histories(RuleBasedStateMachine):
    @initialize(
        shape=st.sampled_from(
            ["a", "ab", "a|b", "a|a", "ab|a", "ab|ab", "a&a", "ab&ab", "abc", "abc|a", "abc&abc"]
        ),
        limit=st.integers(1, 4),
    )
    def begin(self, shape: str, limit: int) -> None:
        self.subscriptions = subscriptions_of(shape)
        self.read = set().union(*self.subscriptions)
        self.cluster = Cluster()
        self.joins = "&" in shape
        self.spark = Spark(self.cluster, self.subscriptions, limit, joins=self.joins)
        self.ledger, self.backups = Ledger(), [Ledger()]
        self.checkpoint = Checkpoint("earliest")
        self.kept: list[Checkpoint] = []
        self.consumer = self.new_consumer()
        self.deleted: set[Record] = set()
        self.refused = False

    def new_consumer(self, fail_on_data_loss: bool = True) -> IdempotentSink:
        def note(connection: Ledger, table: pa.Table) -> None:
            for row in table.to_pylist():
                partition = self.cluster.partitions[row["topic"], row["partition"]]
                connection.effects[(*partition.uid, row["offset"])] += 1

        return IdempotentSink(
            self.ledger,  # type: ignore[arg-type]
            "g",
            effect=note,
            brokers=self.cluster,
            fail_on_data_loss=fail_on_data_loss,
        )

    # What happens to the topics.

    @rule(which=st.integers(0, 5), records=st.integers(1, 5))
    def produce(self, which: int, records: int) -> None:
        self.partition(which).end += records

    @rule(which=st.integers(0, 5), records=st.integers(1, 5))
    def delete_records(self, which: int, records: int) -> None:
        partition = self.partition(which)
        start = min(partition.start + records, partition.end)
        self.deleted |= {(*partition.uid, at) for at in range(partition.start, start)}
        partition.start = start

    def partition(self, which: int) -> Partition:
        there = sorted(at for at in self.cluster.partitions if at[0] in self.read)
        return self.cluster.partitions[there[which % len(there)]]

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        if (topic, 2) not in self.cluster.partitions:
            self.cluster.grow(topic)

    @precondition(lambda self: LATE in self.read and LATE not in self.cluster.ids)
    @rule()
    def make_what_a_pattern_finds(self) -> None:
        self.cluster.create(LATE)

    @rule(topic=st.sampled_from(TOPICS))
    def make_anew(self, topic: str) -> None:
        self.cluster.create(topic)

    # What happens to the query.

    @rule(batches=st.integers(1, 4))
    def run_batches(self, batches: int) -> None:
        for _ in range(batches):
            self.produce(0, 1)
            self.run_batch(crash=False, arrive=0)

    @rule(crash=st.booleans(), arrive=st.sampled_from([0, 0, 0, 2]))
    def run_batch(self, crash: bool, arrive: int) -> None:
        """A crash is one after the consumer's commit and before Spark's."""
        frame = self.spark.next_batch(self.checkpoint, arrive)
        if frame is None:
            return
        left_out = set(self.what_a_new_group_may_leave_out(frame))
        try:
            self.process(frame, left_out)
        except (ConfigurationError, ConsumerError, DataLossError):
            self.refused = True
            self.restart()
            return
        self.ledger.left_out |= left_out
        if crash:
            self.restart()
        else:
            self.checkpoint.done += 1

    def process(self, frame: Frame, left_out: set[Record]) -> None:
        self.consumer.foreach_batch(frame, self.checkpoint.done)  # type: ignore[arg-type]

    def what_a_new_group_may_leave_out(self, frame: Frame) -> Iterator[Record]:
        """Batch 0 of a group that never read a topic may begin anywhere."""
        known = {key.topic for key in self.ledger.marks}
        for place, planned in (item for stream in frame.streams for item in stream.items()):
            partition = self.cluster.partitions.get(place)
            if partition and place[0] not in known and self.checkpoint.done == 0:
                yield from ((*partition.uid, at) for at in range(planned.start))

    @rule()
    def restart(self) -> None:
        self.consumer = self.new_consumer()

    @rule(start=st.sampled_from(["earliest", "latest"]))
    def begin_a_checkpoint(self, start: str) -> None:
        self.checkpoint = Checkpoint(start)
        self.restart()

    @rule()
    def keep_the_checkpoint(self) -> None:
        self.kept.append(copy.deepcopy(self.checkpoint))

    @precondition(lambda self: self.kept)
    @rule(which=st.integers(0, 9))
    def put_a_checkpoint_back(self, which: int) -> None:
        self.checkpoint = copy.deepcopy(self.kept[which % len(self.kept)])
        self.restart()

    # What happens to the database.

    @rule()
    def back_up_the_ledger(self) -> None:
        self.backups.append(copy.deepcopy(self.ledger))

    @rule(which=st.integers(0, 9))
    def put_a_ledger_back(self, which: int) -> None:
        """The first is empty: another path, or a group of another name."""
        self.ledger = copy.deepcopy(self.backups[which % len(self.backups)])
        self.restart()

    # What must be true.

    @invariant()
    def everything_before_a_mark_had_its_effect_once(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for place, partition in self.cluster.partitions.items():
            mark = self.ledger.marks.get(PartitionKey(self.cluster.ids[place[0]], *place), 0)
            streams = sum(place[0] in topics for topics in self.subscriptions)
            times = min(streams, 1) if self.joins else streams
            for offset in range(partition.end):
                record = (*partition.uid, offset)
                done = self.ledger.effects[record]
                assert done in (
                    {times} if offset < mark and not self.is_exempt(record) else {0, times}
                )

    def records_are_gone(self) -> bool:
        """Whether retention took what the group had not processed."""
        keys = {
            PartitionKey(self.cluster.ids[at[0]], *at): p
            for at, p in self.cluster.partitions.items()
        }
        return any(p.start > self.ledger.marks.get(key, p.start) for key, p in keys.items())

    def is_exempt(self, record: Record) -> bool:
        return record in self.deleted or record in self.ledger.left_out

    def teardown(self) -> None:
        """A new checkpoint from the earliest brings what is missing, and is refused only for what is gone."""
        if not hasattr(self, "ledger"):
            return
        self.begin_a_checkpoint("earliest")
        self.consumer = self.new_consumer(fail_on_data_loss=not self.records_are_gone())
        self.refused, planned = False, -1
        while not self.refused and len(self.checkpoint.ends) > planned:
            planned = len(self.checkpoint.ends)
            self.run_batch(crash=False, arrive=0)
            self.everything_before_a_mark_had_its_effect_once()
        assert not self.refused
        for place, partition in self.cluster.partitions.items():
            if any(place[0] in topics for topics in self.subscriptions):
                for offset in range(partition.end):
                    record = (*partition.uid, offset)
                    assert self.ledger.effects[record] or self.is_exempt(record)


class TaskFailedError(Exception):
    """As Spark's, of a job."""


FATES = ("fails before the commit", "fails after the commit", "hangs")


class TaskHistories(Histories):
    """The same with effects on the executors: tasks fail, and those that hang go on at any time later."""

    def new_consumer(self, fail_on_data_loss: bool = True) -> IdempotentSink:
        self.fates: list[str] = []
        if not hasattr(self, "hanging"):
            self.hanging: list[tuple[Task, pa.RecordBatch]] = []

        def note(connection: Ledger, table: pa.Table) -> None:
            for row in table.to_pylist():
                record = (*self.uids[row["topic"], row["partition"]], row["offset"])
                connection.effects[record] += 1

        return IdempotentSink(
            Database(self),  # type: ignore[arg-type]
            "g",
            effect=note,
            brokers=self.cluster,
            fail_on_data_loss=fail_on_data_loss,
            effect_on="executors",
        )

    @property
    def uids(self) -> dict[Place, tuple[bytes, int]]:
        return {place: partition.uid for place, partition in self.cluster.partitions.items()}

    @rule(fates=st.lists(st.sampled_from(("is done", *FATES)), min_size=1, max_size=5))
    def give_tasks_their_fates(self, fates: list[str]) -> None:
        """Of the next batch that has tasks."""
        self.fates = fates

    def process(self, frame: Frame, left_out: set[Record]) -> None:
        def run_tasks(frame: Frame, task: Task) -> Counts:
            # The driver left them out when it had judged the batch, whatever becomes of it.
            self.ledger.left_out |= left_out
            return self.run_tasks(frame, task)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sink, "run_tasks", run_tasks)
            super().process(frame, left_out)

    def run_batch_of_tasks(self, crash: bool, arrive: int) -> None:
        try:
            Histories.run_batch(self, crash, arrive)
        except TaskFailedError:
            self.restart()

    @rule(crash=st.booleans(), arrive=st.sampled_from([0, 0, 0, 2]))
    def run_batch(self, crash: bool, arrive: int) -> None:
        self.run_batch_of_tasks(crash, arrive)

    def run_tasks(self, frame: Frame, task: Task) -> Counts:
        """A task for each partition; those after one that failed may have come first."""
        fates, self.fates = self.fates, []
        places = sorted({row[:2] for row in frame.rows})
        for place, fate in zip_longest(places, fates[: len(places)], fillvalue="is done"):
            rows = [
                dict(zip(TABLE.names, row, strict=True)) for row in frame.rows if row[:2] == place
            ]
            batch = pa.RecordBatch.from_pylist(rows, TABLE)
            if fate == "hangs":
                self.hanging.append((task, batch))
            elif fate != "fails before the commit":
                list(task(iter([batch])))
        if {*fates[: len(places)]} & {*FATES}:
            raise TaskFailedError
        return Counts()

    @precondition(lambda self: self.hanging)
    @rule(which=st.integers(0, 9))
    def a_task_goes_on(self, which: int) -> None:
        """Its driver is gone, or a second run of it is done."""
        task, batch = self.hanging.pop(which % len(self.hanging))
        with suppress(ConfigurationError, ConsumerError, LedgerError):
            list(task(iter([batch])))


class Database:
    """The ledger that there is now: one that is put back takes the place of the other."""

    def __init__(self, history: Histories) -> None:
        self._history = history

    def transaction(self, group: str) -> AbstractContextManager[Transaction]:
        return self._history.ledger.transaction(group)

    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> AbstractContextManager[Transaction]:
        return self._history.ledger.partitions_transaction(group, partitions)

    def close(self) -> None: ...


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=40)
TestTaskHistories = TaskHistories.TestCase
TestTaskHistories.settings = settings(max_examples=150, stateful_step_count=40)


@pytest.fixture(autouse=True)
def plans_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "planned", lambda frame: agreed(frame.streams))
    monkeypatch.setattr(sink, "_rows", lambda frame, _: nullcontext(frame.toArrow()))
    monkeypatch.setattr(sink, "_query_id", lambda _: "query")
    monkeypatch.setattr(sink, "check_pickled", lambda **_: None)
    monkeypatch.setattr(sink, "without_redelivered", lambda frame, _: (frame, lambda: 0))
