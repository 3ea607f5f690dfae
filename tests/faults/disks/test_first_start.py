"""A first start that is killed after any operation on the disk can be repeated.

The second start must find what the first one reported: the cluster's id and topics. A library that
is loaded before libc counts the operations (`killed_at.c`, compiled here).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tests.support.processes.mounts import tmpfs

pytestmark = pytest.mark.kill

CHILD = "tests.faults.disks.first_start_child"
SOURCE = Path(__file__).with_name("killed_at.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("library") / "killed_at.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize(
    ("scenario", "step"),
    [
        ("broker", 1),
        ("formatting", 1),
        ("places", 1),
        # A start of a cluster's node takes a second.
        pytest.param("formatted", 11, marks=pytest.mark.cluster),
        pytest.param("cluster", 29, marks=pytest.mark.cluster),
    ],
)
def test_start_after_a_killed_first_start_loses_nothing(
    tmp_path: Path, library: Path, scenario: str, step: int
) -> None:
    command = [*tmpfs(tmp_path, "256m"), "env", f"LD_PRELOAD={library}", sys.executable]
    done = subprocess.run(
        [*command, "-m", CHILD, scenario, str(tmp_path), str(step)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=seconds(600),
        check=False,
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"
    assert int(done.stdout.rpartition("kills: ")[2]) > 1, done.stdout
