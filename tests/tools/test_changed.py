"""`make check` runs the tests of changed files, and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.guards.tree import ROOT

FILES = {
    "pykafka_core/__init__.py": "",
    "pykafka_core/offsets.py": "START = 0\n",
    "pykafka_core/groups.py": "from pykafka_core.offsets import START\n",
    "spark_udfs/__init__.py": "",
    "tests/test_offsets.py": "from pykafka_core.offsets import START\n",
    "tests/test_groups.py": "import pykafka_core.groups\n",
    "tests/support/world.py": "from pykafka_core import groups\n",
    "tests/handlers/test_join.py": "from tests.support import world\n",
    "rust/log/src/lib.rs": "",
    "rust/wire/src/lib.rs": "",
    "README.md": "# A project\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit of `FILES`."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "one")
    return tmp_path


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def _changed(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tools.changed", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_changed_runs_nothing(repository: Path) -> None:
    assert _changed(repository).stdout.strip() == ""


def test_changed_module_runs_the_tests_that_import_it(repository: Path) -> None:
    (repository / "pykafka_core/offsets.py").write_text("START = 1\n")
    assert _changed(repository).stdout.split() == ["pytest", "tests/test_offsets.py"]


def test_tests_that_import_a_module_through_a_helper_run(repository: Path) -> None:
    (repository / "pykafka_core/groups.py").write_text("")
    expected = ["pytest", "tests/handlers/test_join.py", "tests/test_groups.py"]
    assert _changed(repository).stdout.split() == expected


def test_new_test_and_changed_crate_run(repository: Path) -> None:
    (repository / "tests/test_new.py").write_text("")
    (repository / "rust/log/src/roll.rs").write_text("")
    (repository / "README.md").write_text("# Another name\n")
    lines = _changed(repository).stdout.splitlines()
    assert lines == ["cargo --lib -p pykafka-log", "pytest tests/test_new.py"]


def test_deleted_test_does_not_run(repository: Path) -> None:
    (repository / "tests/test_groups.py").unlink()
    assert _changed(repository).stdout.strip() == ""


def test_unknown_commit_is_an_error(repository: Path) -> None:
    done = _changed(repository, "no-such-commit")
    assert done.returncode == 2
    assert "no-such-commit" in done.stderr
