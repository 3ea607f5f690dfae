"""Mapped appends under faults give errors or old data, never a signal.

The faults are a full disk, truncation, changes by other processes, and forks. Each scenario runs in
a separate process, the full disk on a small tmpfs; `torture_ext4.py` is the version for ext4.
docs/design/0003-mapped-appends.md lists the promises.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tests.support.processes.mounts import tmpfs

CHILD = Path(__file__).with_name("mapped_append_child.py")


def run(scenario: str, directory: Path, prefix: Sequence[str] = ()) -> None:
    command = [*prefix, sys.executable, str(CHILD), scenario, str(directory)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds(600), check=False
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def test_a_full_disk_is_a_typed_error_and_appends_resume(tmp_path: Path) -> None:
    run("full_disk", tmp_path, tmpfs(tmp_path, "4m"))


@pytest.mark.parametrize(
    "scenario", ["foreign_truncate", "truncate_with_live_arrow", "forked_reader"]
)
def test_truncation_or_fork_of_a_mapped_log_raises_no_signal(scenario: str, tmp_path: Path) -> None:
    run(scenario, tmp_path)
