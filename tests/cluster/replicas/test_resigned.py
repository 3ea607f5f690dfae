"""A leader that cannot write resigns to replicas in sync, and follows them when it can write."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.fairness.disk import Disk
from tests.cluster.replicas.resigning_child import ALL, NODE_BYTES
from tests.support.patience import seconds
from tests.support.processes.mounts import tmpfs

CHILD = "tests.cluster.replicas.resigning_child"
pytestmark = pytest.mark.cluster


def run(scenario: str, folder: Path, nodes: Sequence[int] = ALL) -> None:
    disk, data = Disk(folder / "disk"), folder / "data"
    command = [sys.executable, "-m", CHILD, scenario, str(data), str(folder / "disk")]
    for node in nodes:
        (data / str(node)).mkdir(parents=True)
        command = [*tmpfs(data / str(node), str(NODE_BYTES)), *command]
    environment = {**os.environ, **disk.environment}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds(600), check=False
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def test_a_full_disk_is_left_by_its_leaderships_until_there_is_space(tmp_path: Path) -> None:
    run("full", tmp_path)


def test_full_disks_of_all_nodes_leave_two_members_in_sync(tmp_path: Path) -> None:
    """Regression: the ISR shrank to one full node; 0 of 200 acknowledged records were readable."""
    run("all_full", tmp_path)


def test_a_file_that_hangs_costs_its_partition_alone_the_leadership(tmp_path: Path) -> None:
    """Regression: all partitions of the broker left the ISR."""
    run("hanging", tmp_path)


def test_a_partition_whose_files_fail_is_led_by_another_until_a_restart(tmp_path: Path) -> None:
    run("failing", tmp_path)


def test_a_single_node_with_a_full_disk_leads_on_and_takes_records_again(tmp_path: Path) -> None:
    run("single", tmp_path, nodes=[0])


def test_a_reassignment_during_a_resignation_ends_with_each_record_on_all_nodes(
    tmp_path: Path,
) -> None:
    run("reassigned", tmp_path)
