"""A full disk: producers get KAFKA_STORAGE_ERROR until space returns; everything else works.

The tests run on a tmpfs of 24 MiB in a separate process (`disk_full_child`), and on a broker whose
logs are limited to as little memory.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_core import Broker
from tests.faults.disks.disk_full_child import SIZE, producers_resume
from tests.support.patience import seconds
from tests.support.processes.mounts import tmpfs

CHILD = "tests.faults.disks.disk_full_child"


def run(scenario: str, directory: Path) -> None:
    command = [*tmpfs(directory, str(SIZE)), sys.executable, "-m", CHILD, scenario, str(directory)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds(600), check=False
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def test_full_memory_is_a_typed_error_and_passes_when_space_returns() -> None:
    with Broker(listeners="127.0.0.1:0", memory_max=SIZE) as broker:
        producers_resume(broker)


def test_full_disk_is_a_typed_error_and_passes_when_space_returns(tmp_path: Path) -> None:
    run("producers", tmp_path)


@pytest.mark.interval
def test_topics_are_created_and_deleted_on_a_full_disk(tmp_path: Path) -> None:
    run("metadata", tmp_path)


@pytest.mark.interval
def test_created_topics_leave_the_reserve_to_deletions_and_the_next_start(
    tmp_path: Path,
) -> None:
    run("growth", tmp_path)


def test_broker_starts_on_a_full_disk(tmp_path: Path) -> None:
    run("start", tmp_path)


def test_deleted_files_are_removed_first_when_space_is_short(tmp_path: Path) -> None:
    run("removal", tmp_path)


def test_full_disk_without_a_reserve_is_an_error_with_advice(tmp_path: Path) -> None:
    run("no_reserve", tmp_path)
