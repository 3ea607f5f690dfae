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
    "tests/handlers/conftest.py": "",
    "tests/handlers/seeds.toml": "",
    "tests/docs/test_pages.py": "",
    "docs/SEEDS.md": "",
    "setup.cfg": "",
    "rust/log/src/lib.rs": "",
    "rust/log/src/old.rs": "",
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
    lines = _changed(repository).stdout.splitlines()
    assert lines == ["cargo --lib --tests -p pykafka-log", "pytest tests/test_new.py"]


def test_deleted_test_does_not_run(repository: Path) -> None:
    (repository / "tests/test_groups.py").unlink()
    assert _changed(repository).stdout.strip() == ""


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("tests/handlers/conftest.py", "tests/handlers/test_join.py"),
        ("tests/handlers/seeds.toml", "tests/handlers/test_join.py"),
        ("docs/SEEDS.md", "tests/docs/test_pages.py"),
    ],
)
def test_changed_file_without_importers_runs_its_folder(
    repository: Path, path: str, test: str
) -> None:
    (repository / path).write_text("# changed\n")
    assert _changed(repository).stdout.split() == ["pytest", test]


def test_deleted_rust_file_runs_its_crate(repository: Path) -> None:
    (repository / "rust/log/src/old.rs").unlink()
    assert _changed(repository).stdout.strip() == "cargo --lib --tests -p pykafka-log"


def test_file_without_tests_is_named(repository: Path) -> None:
    (repository / "setup.cfg").write_text("[metadata]\n")
    done = _changed(repository)
    assert (done.stdout, done.stderr) == ("", "no unit test for setup.cfg\n")


def test_commit_on_a_branch_without_an_upstream_is_checked(
    repository: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    _git(repository, "clone", "-q", str(repository), str(clone))
    _git(clone, "checkout", "-q", "--detach")
    (clone / "tests/test_groups.py").write_text("# changed\n")
    _git(clone, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qam", "two")
    assert _changed(clone).stdout.split() == ["pytest", "tests/test_groups.py"]


def test_unknown_commit_is_an_error(repository: Path) -> None:
    done = _changed(repository, "no-such-commit")
    assert done.returncode == 2
    assert done.stderr.startswith("no-such-commit: fatal: bad revision")
