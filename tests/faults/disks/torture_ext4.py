"""The full disk of `test_mapped_append` on small ext2 and ext4; run by `make torture`, as root."""

import subprocess
from pathlib import Path

import pytest

from tests.faults.disks.test_mapped_append import run
from tests.support.processes.mounts import mounted


@pytest.mark.parametrize(
    ("kind", "options"), [("ext4", ["-O", "^has_journal"]), ("ext2", []), ("ext3", [])]
)
def test_a_full_ext_is_a_typed_error_and_appends_resume(
    kind: str, options: list[str], tmp_path: Path
) -> None:
    """ext2 and ext3 reserve nothing ahead: there, a mapped write to a full disk caused SIGBUS."""
    image, directory = tmp_path / "ext.img", tmp_path / "disk"
    directory.mkdir()
    with image.open("wb") as file:
        file.truncate(12 << 20)
    subprocess.run([f"mkfs.{kind}", "-q", "-F", *options, "-m", "0", image], check=True)
    run("full_disk", directory, mounted(directory, kind, "loop", str(image)))
