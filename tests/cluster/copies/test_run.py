"""A sample of `make copies-beside`."""

from pathlib import Path

import pytest

from tests.cluster.copies.histories import stored_log_start
from tests.cluster.copies.run import options, run


@pytest.mark.kill
@pytest.mark.cluster
@pytest.mark.jvm
def test_copies_on_both_kinds_of_nodes_keep_every_record(tmp_path: Path) -> None:
    sample = [
        "--histories",
        "6",
        "--partitions",
        "6",
        "--steps",
        "2",
        "--moves",
        "1",
        "--seed",
        "1",
    ]
    assert run(options(sample), tmp_path) == []


@pytest.mark.parametrize(
    ("rows", "segments", "expected"),
    [
        ("0\n0\n", [0], 0),
        ("0\n2\nother 0 9\ncopies 1 7\n", [0, 8], 7),
        ("0\n1\ncopies 1 7\n", [8, 12], 8),
    ],
    ids=["neither", "the checkpoint", "the first segment"],
)
def test_the_stored_log_start_is_the_higher_one(
    tmp_path: Path, rows: str, segments: list[int], expected: int
) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text(rows)
    (tmp_path / "copies-1").mkdir()
    for base in segments:
        (tmp_path / "copies-1" / f"{base:020}.log").touch()
    assert stored_log_start(tmp_path, "copies-1") == expected
