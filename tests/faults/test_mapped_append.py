"""Mapped appends tortured: a full disk, truncation, strangers and forks give errors or old data, never a signal.

Each scenario runs in a process of its own, the full disk on a small tmpfs; `torture_ext4.py` is its twin for ext4. What
is promised and what is not is in docs/design/0003-mapped-appends.md.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("mapped_append_child.py")
MOUNT = 'mount -t "$0" -o "$1" "$2" "$3"; shift 3; exec "$@"'


def run(scenario: str, directory: Path, prefix: Sequence[str] = ()) -> None:
    command = [*prefix, sys.executable, str(CHILD), scenario, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def mounted(directory: Path, kind: str, options: str, source: str) -> list[str]:
    """Run what follows with ``source`` mounted at ``directory``, in a mount namespace of its own."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    return [*unshare, "sh", "-ec", MOUNT, kind, options, source, str(directory)]


def test_a_full_disk_is_a_typed_error_and_appends_resume(tmp_path: Path) -> None:
    run("full_disk", tmp_path, mounted(tmp_path, "tmpfs", "size=4m", "tmpfs"))


@pytest.mark.parametrize(
    "scenario", ["foreign_truncate", "truncate_with_live_arrow", "forked_reader"]
)
def test_no_signal_comes_of(scenario: str, tmp_path: Path) -> None:
    run(scenario, tmp_path)
