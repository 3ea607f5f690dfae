"""Mapped appends tortured: a full disk, truncation, strangers and forks give errors or old data, never a signal.

Each scenario runs in a process of its own, on tmpfs and, where mounting a file is allowed, on a small ext4. What is
promised and what is not is in docs/design/0003-mapped-appends.md.
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


def tmpfs(directory: Path) -> list[str]:
    """Run what follows with a tmpfs of 4 MiB at ``directory``, in a mount namespace of its own."""
    return [*_unshare(), "sh", "-ec", MOUNT, "tmpfs", "size=4m", "tmpfs", str(directory)]


def ext4(directory: Path) -> list[str]:
    """The same with ext4 in a file, which only root may mount."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount an ext4; tmpfs stands for it")
    image = directory.with_name("ext4.img")
    with image.open("wb") as file:
        file.truncate(12 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", image], check=True)
    return [*_unshare(), "sh", "-ec", MOUNT, "ext4", "loop", str(image), str(directory)]


def _unshare() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


@pytest.mark.parametrize("mount", [tmpfs, ext4])
def test_a_full_disk_is_a_typed_error_and_appends_resume(mount: object, tmp_path: Path) -> None:
    assert callable(mount)
    directory = tmp_path / "disk"
    directory.mkdir()
    run("full_disk", directory, mount(directory))


@pytest.mark.parametrize(
    "scenario", ["foreign_truncate", "truncate_with_live_arrow", "forked_reader"]
)
def test_no_signal_comes_of(scenario: str, tmp_path: Path) -> None:
    run(scenario, tmp_path)
