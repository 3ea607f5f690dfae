"""`tools/need` lists missing programs with the command that installs each."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.support.patience import PATIENCE_S
from tools.guards.tree import ROOT

UNIX = ("bash", "cat", "cut", "dirname", "grep", "head", "id", "sort", "tr")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the programs of every Unix system, and no others."""
    for name in UNIX:
        program = which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ("build", ["Python >= 3.11 with headers", "make", "cc", "cargo >= 1.89"]),
        ("test-all", ["a JDK >= 17 (javac)", "Maven (mvn)", "apt-get install maven"]),
        ("spark", ["Java >= 17 (java)", "openjdk-17-jre-headless"]),
    ],
)
def test_missing_programs_are_listed(bare: Path, target: str, missing: list[str]) -> None:
    done = subprocess.run(
        [bare / "bash", ROOT / "tools" / "need", target],
        env={"PATH": str(bare)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert [one for one in missing if one not in done.stderr] == []
