"""The end of the interpreter in a forked child changes no file of its parent."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

PROGRAM = "tests.broker.forks.exiting_program"


@pytest.mark.parametrize("what", ["broker", "log", "cluster"])
def test_the_exit_of_a_child_changes_no_file_of_its_parent(tmp_path: Path, what: str) -> None:
    command = [sys.executable, "-m", PROGRAM, what, str(tmp_path / "orders-0")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "child\nunchanged\n", "")
