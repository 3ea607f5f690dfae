"""`tools/need` lists what a machine lacks, with the command that installs it."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.support.patience import PATIENCE_S
from tools.guards.tree import ROOT

UNIX = ("bash", "cat", "cut", "dirname", "grep", "head", "id", "sort", "tail", "tr")


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
    error = fail_to_find(bare, target)
    assert [one for one in missing if one not in error] == []


@pytest.mark.parametrize(
    ("target", "free_kb", "is_missing"),
    [
        ("build", 878_592, True),
        ("build", 3 << 20, False),
        ("test-all", 3 << 20, True),
        ("test-all", 6 << 20, False),
    ],
)
def test_too_little_disk_space_is_listed(
    bare: Path, target: str, free_kb: int, is_missing: bool
) -> None:
    df = bare / "df"
    df.write_text(
        "#!/bin/sh\necho 'Filesystem 1024-blocks Used Available Capacity Mounted on'\n"
        f"echo '/dev/vda 264000000 95000000 {free_kb} 100% /'\n"
    )
    df.chmod(0o755)
    error = fail_to_find(bare, target)
    assert (f"{free_kb >> 10} MB are free" in error) == is_missing


def fail_to_find(programs: Path, target: str) -> str:
    """Run `tools/need` with these programs only, before a first build, and return its errors."""
    done = subprocess.run(
        [programs / "bash", ROOT / "tools" / "need", target],
        env={"PATH": str(programs)},
        cwd=programs,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr
