"""The full disk of `test_mapped_append` on a small ext4: `make torture` runs it, as only root may mount one."""

import subprocess
from pathlib import Path

from tests.faults.test_mapped_append import run
from tests.support.mounts import mounted


def test_a_full_ext4_is_a_typed_error_and_appends_resume(tmp_path: Path) -> None:
    image, directory = tmp_path / "ext4.img", tmp_path / "disk"
    directory.mkdir()
    with image.open("wb") as file:
        file.truncate(12 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", image], check=True)
    run("full_disk", directory, mounted(directory, "ext4", "loop", str(image)))
