"""Random histories of topics, checkpoints and ledgers, compared with a model.

Theory of operation. The model plans batches as Spark does and passes them to the real sink, with a
real ledger. It checks after every step, for each group:

- Nothing is done twice: a record has had its effect at most once for each stream that reads it.
  With message ids: at most once per message.
- Nothing is lost: all records before a mark had their effect, except those that the group was
  allowed to skip (`Rules.left_out_by`). Records deleted by retention count as lost, too, unless an
  error reported them.

An error stops a query, so a sink that refuses everything would pass. Hence the third rule: a batch
is refused only if the model, which has all facts, finds a cause (`Rules.causes_to_refuse`). And at
the end of each history, a new checkpoint from the earliest processes all missing records.
"""

import copy
from collections.abc import Iterator, Sequence

from pykafka_core.errors import ConfigurationError, ConsumerError, DataLossError, LedgerError
from spark_udfs.sink.sink import IdempotentSink
from tests.spark.sink.histories.cluster import LATE, TOPICS, Cluster, Partition, Record
from tests.spark.sink.histories.database import Backup, CurrentLedger, Database, effect_of
from tests.spark.sink.histories.rules import Driver, Rules
from tests.spark.sink.histories.spark import Checkpoint, Frame, SourceError, Spark, TaskFailedError
from tests.spark.sink.histories.walk import Choice, list_of, one_of, some_of, step

SHAPES = ("a", "ab", "a|b", "a|a", "ab|a", "ab|ab", "a&a", "ab&ab", "abc", "abc|a", "abc&abc")
"""Shapes of queries, see `subscriptions_of`."""
GROUPS = ("g", "h")
STARTS = ("earliest", "middle", "latest")
TROUBLES = (
    "the effect fails",
    "a crash before Spark's commit",
    "records arrive between plans",
    "a is recreated once read",
    "the sink is called again after an error",
)
"""Troubles of one batch. A crash before its commit is the same as a failed effect."""
REFUSALS = (ConfigurationError, ConsumerError, DataLossError, LedgerError)


def trouble(kinds: Sequence[str]) -> Choice:
    """Return a choice of troubles for one batch."""
    return some_of(kinds, 3)


def troubles(kinds: Sequence[str]) -> Choice:
    """Return a choice of troubles for several batches."""
    return list_of(trouble(kinds), 4)


class EffectError(Exception):
    """Raised by an effect that has written."""


def subscriptions_of(shape: str) -> list[set[str]]:
    """Return the topics of each stream of a shape.

    "a|ab" is a union of one stream that reads a and one that reads both, "a&a" a join. "abc" is a
    pattern: it matches c once that exists.
    """
    return [set(topics) for topics in shape.replace("&", "|").split("|")]


class Histories:
    """Histories with effects on the driver. Defaults of steps are the first or frequent values."""

    effect_on = "driver"

    @step(
        shape=one_of(SHAPES),
        limit=one_of((1, 2, 4, 10)),
        ids=one_of([False, True]),
        filters=one_of([False, True]),
        source_fails=one_of([False, True]),
    )
    def begin(
        self,
        shape: str = "a",
        limit: int = 4,
        ids: bool = False,
        filters: bool = False,
        source_fails: bool = True,
    ) -> None:
        subscriptions = subscriptions_of(shape)
        self.read: set[str] = set().union(*subscriptions)
        self.cluster, self.database, self.ids = Cluster(), Database(), ids
        self.spark = Spark(
            self.cluster,
            subscriptions,
            limit,
            joins="&" in shape,
            filters=filters,
            fails_on_data_loss=source_fails,
        )
        self.ledger = CurrentLedger(self.database)
        self.backups: list[Backup] = [self.database.back_up()]
        self.kept: list[Checkpoint] = []
        self.effect_fails = False
        self.driver = self.new_driver(Checkpoint("earliest"), "g")
        self.other_driver = self.new_driver(Checkpoint("earliest"), "g")
        topics = sorted(topic for one in subscriptions for topic in one)
        self.happened = {"two streams read a topic"} if len(set(topics)) < len(topics) else set()
        """Events since a batch was accepted."""
        self.noted: set[str] = set()

    def new_driver(
        self, checkpoint: Checkpoint, group: str, fails_on_data_loss: bool = True
    ) -> Driver:
        def break_down() -> None:
            if self.effect_fails:
                raise EffectError

        sink = IdempotentSink(
            self.ledger,
            group,
            "id" if self.ids else None,
            effect=effect_of(group, break_down),
            brokers=self.cluster,
            fail_on_data_loss=fails_on_data_loss,
            effect_on=self.effect_on,  # type: ignore[arg-type]
        )
        return Driver(checkpoint, sink, group, fails_on_data_loss)

    # Steps that change topics.

    @step(which=one_of(range(6)), records=one_of(range(1, 6)))
    def produce(self, which: int = 0, records: int = 1) -> None:
        if partition := self.partition(which):
            self.cluster.produce(partition, records)

    @step(which=one_of(range(6)), repeated=one_of(range(21)))
    def produce_again(self, which: int = 0, repeated: int = 0) -> None:
        if self.ids and (partition := self.partition(which)):
            self.cluster.produce_again(partition, repeated)
            self.happened.add("a message was sent again")

    @step(which=one_of(range(6)), records=one_of(range(1, 6)))
    def delete_records(self, which: int = 0, records: int = 1) -> None:
        if partition := self.partition(which):
            partition.start = min(partition.start + records, partition.end)
            self.happened.add("retention")

    @step(which=one_of(range(6)))
    def delete_all_but_the_last(self, which: int = 0) -> None:
        """Simulate a long pause of the query."""
        self.produce(which, 3)
        self.delete_records(which, 1_000)
        self.produce(which, 1)

    def partition(self, which: int) -> Partition | None:
        there = sorted(at for at in self.cluster.partitions if at[0] in self.read)
        return self.cluster.partitions[there[which % len(there)]] if there else None

    @step(topic=one_of(TOPICS))
    def grow(self, topic: str = "a") -> None:
        if topic in self.cluster.ids and (topic, 2) not in self.cluster.partitions:
            self.cluster.grow(topic)
            if topic in self.read:
                self.happened.add("a partition was added")

    @step()
    def make_what_a_pattern_finds(self) -> None:
        if LATE in self.read and LATE not in self.cluster.ids:
            self.cluster.create(LATE)
            self.happened.add("a pattern finds a topic")

    @step(topic=one_of(TOPICS))
    def recreate(self, topic: str = "a") -> None:
        self.cluster.create(topic)
        if topic in self.read:
            self.happened.add("a topic was recreated")

    @step(topic=one_of(TOPICS), records=one_of(range(4)), trouble=trouble(TROUBLES))
    def recreate_under_a_planned_batch(
        self, topic: str = "b", records: int = 0, trouble: Sequence[str] = ()
    ) -> None:
        """The batch is the topic's first one, and is repeated with the new topic's records."""
        if topic not in self.cluster.ids:
            return
        self.recreate(topic)
        self.begin_a_checkpoint()
        self.run_batches()
        self.cluster.produce(self.cluster.partitions[topic, 0], 3)
        self.run_batch(["the effect fails"])
        self.recreate(topic)
        self.cluster.produce(self.cluster.partitions[topic, 0], records)
        self.run_batch(["the sink is called again after an error", *trouble])

    @step(topic=one_of((*TOPICS, LATE)))
    def delete_topic(self, topic: str = "a") -> None:
        self.cluster.delete(topic)

    # Steps of the query.

    @step(weight=3, troubles=troubles(TROUBLES))
    def run_batches(self, troubles: Sequence[Sequence[str]] = ((),)) -> None:
        """Produce a record and run a batch, for each of ``troubles``."""
        for trouble in troubles:
            self.produce()
            self.run_batch(trouble)

    @step(weight=3, trouble=trouble(TROUBLES))
    def run_batch(self, trouble: Sequence[str] = ()) -> None:
        """Run one batch of the query."""
        arrive = 2 if "records arrive between plans" in trouble else 0
        frame = self.spark.next_batch(self.driver.checkpoint, arrive)
        if frame is None:
            return
        causes = self.rules().causes_to_refuse(frame)
        self.effect_fails = "the effect fails" in trouble
        if "a is recreated once read" in trouble:
            causes.add("a topic is recreated meanwhile")
            self.spark.once_read = self.recreate
        causes.update(one for one in trouble if one.startswith("a ledger is put back"))
        is_done = self.is_accepted(frame, causes)
        self.end_troubles()
        if not is_done and "the sink is called again after an error" in trouble:
            # By a function of the user, in the same run of the query.
            is_done = self.is_accepted(frame, self.rules().causes_to_refuse(frame))
            self.note(f"called again, {'accepted' if is_done else 'not accepted'}")
        if not is_done or "a crash before Spark's commit" in trouble:
            self.restart()
        else:
            self.driver.checkpoint.done += 1

    def is_accepted(self, frame: Frame, causes: set[str]) -> bool:
        """Return whether the sink processed the batch; it may refuse it only for a cause."""
        try:
            self.process(frame)
        except REFUSALS as error:
            self.refused(error, causes)
            return False
        except (SourceError, EffectError, TaskFailedError) as error:
            self.note(f"stopped by {type(error).__name__}")
            return False
        self.note_accepted()
        return True

    def refused(self, error: Exception, causes: set[str]) -> None:
        assert causes, f"refused without a cause: {error!r}"
        self.note(f"refused with {type(error).__name__}")

    def end_troubles(self) -> None:
        """End the troubles of a batch, so that they happen only once."""
        self.effect_fails, self.spark.once_read = False, None

    def process(self, frame: Frame) -> None:
        """Pass the batch to the sink; record what it may skip, which is known before."""
        driver, left_out = self.driver, self.rules().left_out_by(frame)
        topics = {place[0] for place, _ in frame.places()} & self.cluster.ids.keys()
        driver.seen = {**{topic: self.cluster.ids[topic] for topic in topics}, **driver.seen}
        driver.sink.foreach_batch(frame, driver.checkpoint.done)  # type: ignore[arg-type]
        self.leave_out(driver.group, left_out)

    def rules(self) -> Rules:
        marks = self.database.marks(self.driver.group)
        return Rules(self.cluster, self.spark, self.driver, marks)

    def leave_out(self, group: str, records: set[Record]) -> None:
        self.database.left_out |= {(group, record) for record in records}

    @step()
    def restart(self) -> None:
        self.driver = self.new_driver(self.driver.checkpoint, self.driver.group)

    @step()
    def go_on_without_what_is_lost(self) -> None:
        """Run one batch with ``fail_on_data_loss=False``."""
        self.driver = self.new_driver(self.driver.checkpoint, self.driver.group, False)
        self.run_batch()
        self.restart()

    @step()
    def switch_drivers(self) -> None:
        """Continue with a driver that was considered dead, with its own checkpoint and memory."""
        self.driver, self.other_driver = self.other_driver, self.driver
        self.happened.add("another driver goes on")

    @step(start=one_of(STARTS), troubles=troubles(TROUBLES))
    def begin_a_checkpoint(
        self, start: str = "earliest", troubles: Sequence[Sequence[str]] = ()
    ) -> None:
        self.driver.checkpoint = Checkpoint(start)
        self.restart()
        self.happened.add(f"a new checkpoint, {start}")
        self.run_batches(troubles)

    @step(weight=2)
    def keep_the_checkpoint(self) -> None:
        self.kept.append(copy.deepcopy(self.driver.checkpoint))

    @step(which=one_of(range(10)))
    def put_a_checkpoint_back(self, which: int = 0) -> None:
        if self.kept:
            self.driver.checkpoint = copy.deepcopy(self.kept[which % len(self.kept)])
            self.restart()
            self.happened.add("a checkpoint was put back")

    @step(entries=one_of(range(3)), repeats=one_of([False, True]))
    def lose_the_end_of_the_checkpoint(self, entries: int = 1, repeats: bool = True) -> None:
        self.driver.checkpoint.lose(entries, repeats=repeats)
        self.restart()
        self.happened.add("the end of a checkpoint was lost")

    # Steps that change the database.

    @step(weight=2)
    def back_up_the_ledger(self) -> None:
        self.backups.append(self.database.back_up())

    @step(which=one_of(range(10)))
    def put_a_ledger_back(self, which: int = 0) -> None:
        """Restore a backup; the first one is empty, like another database."""
        self.database.put_back(self.backups[which % len(self.backups)])
        self.restart()
        self.happened.add(
            "a ledger was put back" if which % len(self.backups) else "a ledger was lost"
        )

    @step(group=one_of(GROUPS))
    def rename_the_group(self, group: str = "h") -> None:
        """Change the group; the ledger's rows of the old name stay."""
        if group != self.driver.group:
            self.driver.group = group
            self.restart()
            self.happened.add(f"a group was renamed to {group}")

    # Rules.

    def check(self) -> None:
        """Check that nothing was lost or done twice."""
        for group in GROUPS:
            if self.ids:
                self.check_messages(group)
            else:
                self.check_records(group)

    def check_records(self, group: str) -> None:
        done = self.database.effects(group)
        for record, times in done.items():
            assert times == self.times(self.cluster.names[record[0]]), f"{record}: {times} times"
        for record, _ in self.processed(group):
            assert record in done, f"{record} is before its mark and had no effect"

    def times(self, topic: str) -> int:
        """Return how often each record of a topic has its effect."""
        streams = sum(topic in topics for topics in self.spark.subscriptions)
        return min(streams, 1) if self.spark.joins else streams

    def check_messages(self, group: str) -> None:
        done = self.database.effects_by_id(group)
        assert max(done.values(), default=1) == 1, f"twice: {done.most_common(3)}"
        for record, message_id in self.processed(group):
            assert message_id in done, f"{record} is before its mark and had no effect"

    def processed(self, group: str) -> Iterator[tuple[Record, bytes]]:
        """Yield records before the group's marks, whose effects must exist, with message ids."""
        marks = self.database.marks(group)
        for place, partition in self.cluster.partitions.items():
            mark = marks.get(self.cluster.key(place), 0)
            assert mark <= partition.end, (
                f"{place}: the mark {mark} is of records that are yet to come"
            )
            for offset in range(mark):
                record = (*partition.uid, offset)
                if (group, record) not in self.database.left_out and self.spark.wants(offset):
                    yield record, partition.ids[offset]

    def finish(self) -> None:
        """Process missing records with a new checkpoint; only deleted ones may cause a refusal."""
        checkpoint = Checkpoint("earliest")
        group = self.driver.group
        self.driver = self.new_driver(checkpoint, group, not self.records_are_gone())
        while (frame := self.spark.next_batch(checkpoint)) is not None:
            try:
                self.process(frame)
            except REFUSALS as error:
                raise AssertionError("a checkpoint from the earliest was refused") from error
            checkpoint.done += 1
            self.check()
        marks = self.database.marks(group)
        for place, partition in self.cluster.partitions.items():
            if place[0] in self.read and partition.start < partition.end:
                mark = marks.get(self.cluster.key(place), 0)
                assert mark == partition.end, f"{place}: only what is before {mark} was processed"

    def records_are_gone(self) -> bool:
        """Return whether retention deleted records that the group had not processed."""
        marks = self.database.marks(self.driver.group)
        there = [
            (self.cluster.key(at), partition) for at, partition in self.cluster.partitions.items()
        ]
        return any(partition.start > marks.get(key, partition.start) for key, partition in there)

    def end(self) -> None:
        self.database.close()

    # Coverage of the histories.

    def note(self, state: str) -> None:
        self.noted.add(state)

    def note_accepted(self) -> None:
        self.note("accepted")
        for what in self.happened:
            self.note(f"accepted after: {what}")
        self.happened.clear()
