"""A sample of the runs of `make torture`: three processes under load, kill -9 and SIGSTOP."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from tests.faults.cluster.run import Task, report, run
from tests.faults.cluster.scenarios import FAULTS, PAIRS, TOUCHES_ALL, Place, plan
from tests.faults.cluster.workloads.workload import fatal_errors


@pytest.mark.kill
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("fault", "workloads"), [("kill", ("list", "transactions")), ("pause", ("queue", "groups"))]
)
def test_cluster_keeps_acknowledged_records(
    tmp_path: Path, fault: str, workloads: tuple[str, ...]
) -> None:
    task = Task("ours", seed=1, steps=1, faults=(fault,), workloads=workloads)
    found = run(task, tmp_path)
    assert not found, report(task, found)


def test_fatal_error_of_a_delivery_report_is_raised_unchanged() -> None:
    fatal = KafkaException("fenced")
    with pytest.raises(KafkaException) as raised, fatal_errors():
        raise SystemError("a callback returned a result with an exception set") from fatal
    assert raised.value is fatal
    with pytest.raises(SystemError), fatal_errors():
        raise SystemError("another one")


def test_seed_determines_the_plan() -> None:
    assert plan(7, 20) == plan(7, 20)
    assert plan(7, 20) != plan(8, 20)
    assert plan(7, 20, in_pairs=True) == plan(7, 20, in_pairs=True)


def test_plan_has_each_fault_before_it_repeats_one() -> None:
    singles = plan(3, len(FAULTS))
    assert {step.faults[0][0] for step in singles} == set(FAULTS)
    pairs = plan(3, len(PAIRS), in_pairs=True)
    assert {frozenset(name for name, _ in step.faults) for step in pairs} == set(
        map(frozenset, PAIRS)
    )
    assert {name for pair in PAIRS for name in pair} == set(FAULTS)


def test_paired_faults_are_ordered_by_their_place() -> None:
    for step in plan(3, len(PAIRS), in_pairs=True):
        (first, _), (second, _) = step.faults
        assert first not in TOUCHES_ALL
        if FAULTS[first].place is Place.FIRST is not FAULTS[second].place:
            assert step.first_is_healed_last
        assert FAULTS[second].place is not Place.FIRST or FAULTS[first].place is Place.FIRST


def test_command_of_a_task_names_everything_that_its_plan_depends_on() -> None:
    task = Task("kafka", 5, 2, ("kill", "pause"), ("list",), in_pairs=True)
    assert task.command() == (
        "python -m tests.faults.cluster.run --on kafka --seed 5 --steps 2"
        " --faults kill,pause --workloads list --pairs"
    )
