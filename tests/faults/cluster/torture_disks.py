"""Disks lose exactly the unsynced data; clocks jump. `make torture` runs it, as root."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.cluster.clocks import JUMP_S, Clocks
from tests.faults.cluster.disks import Disk, memory
from tests.support.patience import PATIENCE_S

SIZE = 64 << 20
MODULE = "tests.faults.cluster.torture_disks"
ASKED = "import sys, time\nfor _ in sys.stdin: print(time.time() - time.monotonic(), flush=True)"


def in_own_namespace(scenario: str, folder: Path) -> None:
    command = ["unshare", "-m", sys.executable, "-m", MODULE, scenario, str(folder)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("scenario", ["power_cut", "full"])
def test_a_disk(tmp_path: Path, scenario: str) -> None:
    in_own_namespace(scenario, tmp_path)


def power_cut(disk: Disk) -> None:
    """A synced file and the synced part of another remain, and nothing of a third."""
    for name, is_synced in (("synced", True), ("longer", True), ("lost", False)):
        with (disk.path / name).open("wb", buffering=0) as file:
            file.write(b"x" * 1000)
            if is_synced:
                os.fsync(file.fileno())
    with (disk.path / "longer").open("ab", buffering=0) as file:
        file.write(b"y" * 100_000)
    disk.lose_power()
    left = {file.name: file.read_bytes() for file in disk.path.iterdir()}
    assert left == {"synced": b"x" * 1000, "longer": b"x" * 1000}


def full(disk: Disk) -> None:
    """Nothing can be written until space is freed."""
    disk.fill()
    with pytest.raises(OSError, match="space"):
        (disk.path / "refused").write_bytes(bytes(4096))
    disk.free()
    (disk.path / "taken").write_bytes(bytes(4096))


def test_clock_jumps_only_for_its_process(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path, (1, 2))
    with subprocess.Popen(
        [sys.executable, "-c", ASKED],
        env={**os.environ, **clocks.environment(1)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for shift_s in (0, JUMP_S, -JUMP_S, 0):
            clocks.shift(1, shift_s)
            clocks.shift(2, 2 * JUMP_S)
            process.stdin.write("\n")
            process.stdin.flush()
            own = time.time() - time.monotonic()
            assert float(process.stdout.readline()) - own == pytest.approx(shift_s, abs=60)


if __name__ == "__main__":
    images = Path(sys.argv[2]) / "images"
    memory(images)
    {"power_cut": power_cut, "full": full}[sys.argv[1]](
        Disk(images / "disk", Path(sys.argv[2]) / "data", SIZE)
    )
