"""No change of topics, checkpoints or ledgers loses or repeats a record without an error.

Each seed gives a history (`tests.spark.sink.histories`). ``make sink-histories`` runs 10,000 of
each kind (``SINK_HISTORIES`` sets the number); ``SINK_HISTORIES_SEED`` repeats one.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.spark.sink.histories.machine import Histories
from tests.spark.sink.histories.mutants import FOUND_BY, MUTANTS
from tests.spark.sink.histories.spark import without_a_jvm
from tests.spark.sink.histories.tasks import TaskHistories
from tests.spark.sink.histories.walk import Step, run, run_all, shortest, steps_of

COUNT = int(os.environ.get("SINK_HISTORIES", "250"))
SEED = os.environ.get("SINK_HISTORIES_SEED")
SEEDS = range(COUNT) if SEED is None else range(int(SEED), int(SEED) + 1)

MACHINES = pytest.mark.parametrize("machine", [Histories, TaskHistories])

REACHED = [
    *(
        f"accepted after: {what}"
        for what in (
            "a checkpoint was put back",
            "a group was renamed to g",
            "a group was renamed to h",
            "a ledger was lost",
            "a ledger was put back",
            "a message was sent again",
            "a new checkpoint, earliest",
            "a new checkpoint, latest",
            "a new checkpoint, middle",
            "a partition was added",
            "a pattern finds a topic",
            "a topic was recreated",
            "another driver goes on",
            "retention",
            "the end of a checkpoint was lost",
            "two streams read a topic",
        )
    ),
    "called again, accepted",
    "called again, not accepted",
    "refused with ConfigurationError",
    "refused with ConsumerError",
    "refused with DataLossError",
    "stopped by EffectError",
    "stopped by SourceError",
]
"""Each state is reached by some histories; a model that refuses too much does not reach it."""

TASKS_REACHED = [
    "a ledger is put back after the tasks",
    "a ledger is put back before the tasks",
    "a task went on",
    "accepted after: a batch on the driver",
    "refused with LedgerError",
    "stopped by TaskFailedError",
]


@pytest.fixture(autouse=True)
def patch() -> Iterator[pytest.MonkeyPatch]:
    with without_a_jvm() as patch:
        yield patch


@MACHINES
@pytest.mark.campaign
def test_nothing_is_lost_or_done_twice_without_an_error(machine: type[Histories]) -> None:
    reached: Counter[str] = Counter()
    for history in run_all(machine, SEEDS):
        reached.update(history.noted)
    for state, count in sorted(reached.items()):
        print(f"{count:6d} of {len(SEEDS)}: {state}")
    expected = REACHED + (TASKS_REACHED if machine is TaskHistories else [])
    if SEED is None:
        assert not [state for state in expected if reached[state] < COUNT // 50]


def batches(*troubles: str) -> Step:
    """Return three batches; the first one has the troubles."""
    return Step("run_batches", {"troubles": [troubles, (), ()]})


def a_new_checkpoint(start: str) -> Step:
    return Step("begin_a_checkpoint", {"start": start})


TYPICAL = {
    "batches": [batches()],
    "a query begins at the end": [a_new_checkpoint("latest"), batches()],
    "drivers crash": [
        batches("the effect fails"),
        batches("a crash before Spark's commit"),
        Step("switch_drivers"),
        batches(),
    ],
    "a checkpoint is lost": [batches(), a_new_checkpoint("earliest"), batches()],
    "a checkpoint is put back": [
        batches(),
        Step("keep_the_checkpoint"),
        batches(),
        Step("put_a_checkpoint_back"),
        batches(),
    ],
    "a checkpoint loses its end": [
        batches(),
        Step("lose_the_end_of_the_checkpoint", {"entries": 2}),
        batches(),
    ],
    "a ledger is put back, and a checkpoint": [
        batches(),
        Step("keep_the_checkpoint"),
        Step("back_up_the_ledger"),
        batches(),
        Step("put_a_ledger_back", {"which": 1}),
        Step("put_a_checkpoint_back"),
        batches(),
    ],
    "a ledger is lost, and a checkpoint": [
        batches(),
        Step("put_a_ledger_back"),
        a_new_checkpoint("earliest"),
        batches(),
    ],
    "a group gets another name and back": [
        batches(),
        Step("keep_the_checkpoint"),
        Step("rename_the_group", {"group": "h"}),
        a_new_checkpoint("earliest"),
        batches(),
        Step("rename_the_group", {"group": "g"}),
        Step("put_a_checkpoint_back"),
        batches(),
    ],
    "retention takes what was processed": [
        batches(),
        batches(),
        Step("delete_records", {"records": 5}),
        batches(),
        a_new_checkpoint("earliest"),
        batches(),
    ],
    "a topic is recreated": [
        batches(),
        Step("recreate"),
        a_new_checkpoint("earliest"),
        batches(),
    ],
    "partitions are added": [
        batches(),
        Step("grow"),
        Step("produce", {"which": 1}),
        batches(),
        Step("grow"),
        a_new_checkpoint("earliest"),
        Step("produce", {"which": 2}),
        batches(),
    ],
    "a producer retries": [batches(), Step("produce_again"), batches()],
}


@MACHINES
@pytest.mark.parametrize("shape", ["a", "ab", "a|a", "ab|ab", "a&a", "a|b"])
@pytest.mark.parametrize("ids", [False, True], ids=["offsets", "ids"])
@pytest.mark.parametrize("name", TYPICAL)
def test_typical_operations_are_accepted(
    machine: type[Histories], shape: str, ids: bool, name: str
) -> None:
    begin = Step("begin", {"shape": shape, "ids": ids})
    history = run(machine, [begin, *TYPICAL[name]])
    assert "accepted" in history.noted
    assert not [state for state in history.noted if state.startswith("refused")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_batch_whose_ledger_is_restored_is_rejected(when: str) -> None:
    """It begins at 0, like the restored marks: dropped or committed rows would be lost."""
    trouble = f"a ledger is put back {when} the tasks"
    begin = Step("begin", {"shape": "a"})
    new = Step("begin_a_checkpoint", {"troubles": [[trouble]]})
    history = run(TaskHistories, [begin, Step("run_batch"), new])
    assert {trouble, "refused with LedgerError"} <= history.noted


def test_failed_history_reports_how_to_repeat_it(patch: pytest.MonkeyPatch) -> None:
    rule = "a_ledger_may_be_older_than_the_checkpoint"
    machine = FOUND_BY[rule]
    MUTANTS[rule](patch)
    with pytest.raises(AssertionError, match="SINK_HISTORIES_SEED=") as raised:
        list(run_all(machine, range(20)))
    steps: list[Step] = eval(str(raised.value).split("Histories, ")[1].rstrip(")"), {"Step": Step})
    assert len(steps) < 10
    assert shortest(machine, steps) == steps
    with pytest.raises(AssertionError):
        run(machine, steps)


@MACHINES
def test_seed_determines_one_history(machine: type[Histories]) -> None:
    assert steps_of(machine, 1) == steps_of(machine, 1) != steps_of(machine, 2)
