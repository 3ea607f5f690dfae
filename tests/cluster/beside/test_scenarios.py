"""A sample of `make beside`: two of our voters and one of Kafka's under load; one is killed."""

from pathlib import Path

import pytest

from tests.cluster.beside.agreement import CONTROL, epochs, up_to_metadata
from tests.cluster.beside.run import Task, report, run
from tests.cluster.beside.scenarios import SCENARIOS
from tests.faults.cluster.checker import split


@pytest.mark.kill
@pytest.mark.cluster
@pytest.mark.jvm
def test_mixed_cluster_keeps_acknowledged_records(tmp_path: Path) -> None:
    task = Task("sample", seed=0)
    found = run(task, tmp_path)
    assert not found, report(task, found)


def test_command_of_a_task_names_everything_that_its_steps_depend_on() -> None:
    assert Task("voter", 5, 2).command() == (
        "python -m tests.cluster.beside.run --scenario voter --seed 5 --steps 2"
    )
    assert set(SCENARIOS) > {"broker", "controller", "voter", "voters", "leadership", "zombies"}


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ("0\n1\n0 0\n", [(0, 0)]),
        ("0\n2\n0 0\n3 2\n", [(0, 0)]),
        ("0\n3\n0 0\n3 1\n4 1\n", [(0, 0), (4, 1)]),
    ],
    ids=["one", "the last without a record", "one in between without a record"],
)
def test_epochs_without_records_do_not_count(
    tmp_path: Path, noted: str, expected: list[tuple[int, int]]
) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(noted)
    (tmp_path / f"{0:020}.log").write_bytes(batch_of_two())
    assert epochs(tmp_path) == expected


def test_quorum_batches_after_the_metadata_are_omitted() -> None:
    control, data = (0, batch_of_two(CONTROL)), (2, batch_of_two())
    assert up_to_metadata([control, data, control, control]) == [control, data]
    assert up_to_metadata([control, data]) == [control, data]


def batch_of_two(attributes: int = 0) -> bytes:
    """Return a batch with the fields that are read: base offset, size, attributes, last delta."""
    head = bytes(8) + (49).to_bytes(4, "big") + bytes(9) + attributes.to_bytes(2, "big")
    batch = head + (1).to_bytes(4, "big") + bytes(34)
    assert list(split(batch)) == [batch]
    return batch
