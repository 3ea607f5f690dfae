"""`make check` runs the tests of changed files, and no others."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.changed import NEAREST_MAX, TestFiles
from tools.guards.tree import ROOT, Tree

PRODUCT = ("pykafka_core/", "spark_udfs/")

WITHOUT_TESTS = {"pykafka_core/__main__.py": "one call of pykafka_core.cli.main, which has tests"}
"""A module of the product that no test covers → the reason."""

BROKER = """\
[package]
name = "pykafka-broker"
[dependencies]
wire = { package = "pykafka-wire" }
"""

FILES = {
    "pykafka_core/__init__.py": "",
    "pykafka_core/offsets.py": "START = 0\n",
    "pykafka_core/groups.py": "from pykafka_core.offsets import START\n",
    "spark_udfs/__init__.py": "",
    "pykafka_core/groups_api.py": "from pykafka_core.joins import join\n",
    "pykafka_core/joins.py": "from pykafka_core.sessions import open_session\n",
    "pykafka_core/sessions.py": "",
    "pykafka_core/handlers/__init__.py": "",
    "pykafka_core/handlers/unused.py": "",
    "tests/test_groups_api.py": "import pykafka_core.groups_api\n",
    "tests/test_offsets.py": "from pykafka_core.offsets import START\n",
    "tests/test_groups.py": "import pykafka_core.groups\n",
    "tests/support/world.py": "from pykafka_core import groups\n",
    "tests/handlers/test_join.py": "from tests.support import world\n",
    "tests/handlers/conftest.py": "",
    "tests/handlers/seeds.toml": "",
    "tests/docs/test_pages.py": "",
    "docs/SEEDS.md": "",
    "setup.cfg": "",
    "tests/handlers/seeds/join/recorded.json": "",
    "tests/support/only_conftest.py": "",
    "tests/commands/conftest.py": "from tests.support import only_conftest\n",
    "tests/commands/test_cli.py": "",
    "tests/pyx/test_records.py": "",
    "tests/tools/test_changed.py": "",
    "Cargo.toml": "",
    "pyproject.toml": "",
    "rust/log/Cargo.toml": '[package]\nname = "pykafka-log"\n',
    "rust/log/src/lib.rs": "",
    "rust/log/src/old.rs": "",
    "rust/wire/Cargo.toml": '[package]\nname = "pykafka-wire"\n[dependencies]\nlibc = "1"\n',
    "rust/wire/src/lib.rs": "",
    "rust/server/Cargo.toml": BROKER,
    "rust/bindings/Cargo.toml": '[package]\nname = "pykafka-bindings"\n',
    "rust/bindings/src/lib.rs": "",
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
    _commit(tmp_path)
    return tmp_path


def _commit(folder: Path) -> None:
    _git(folder, "add", ".")
    _git(folder, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "one")


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


def test_module_runs_the_nearest_tests_that_import_it_through_others(repository: Path) -> None:
    (repository / "pykafka_core/sessions.py").write_text("# changed\n")
    assert _changed(repository).stdout.split() == ["pytest", "tests/test_groups_api.py"]


def test_of_many_tests_that_import_a_module_through_others_those_with_its_words_run(
    repository: Path,
) -> None:
    for number in range(30):
        (repository / f"tests/test_other_{number}.py").write_text("import pykafka_core.joins\n")
    (repository / "tests/test_sessions.py").write_text("import pykafka_core.joins\n")
    _commit(repository)
    (repository / "pykafka_core/sessions.py").write_text("# changed\n")
    files = _changed(repository).stdout.split()[1:]
    assert len(files) == NEAREST_MAX
    assert "tests/test_sessions.py" in files


def test_module_that_no_test_imports_runs_the_folder_of_its_name(repository: Path) -> None:
    (repository / "pykafka_core/handlers/unused.py").write_text("# changed\n")
    assert _changed(repository).stdout.split() == ["pytest", "tests/handlers/test_join.py"]


def test_each_module_of_the_product_has_tests() -> None:
    tree = Tree(ROOT)
    tests = TestFiles(tree)
    modules = [path for path in tree.paths if path.startswith(PRODUCT) and path.endswith(".py")]
    assert len(modules) > 400
    without = {path for path in modules if not tests.of(path) and _has_code(tree, path)}
    assert without == set(WITHOUT_TESTS)


def _has_code(tree: Tree, path: str) -> bool:
    """Return whether a module is more than documentation."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(tree.text(path)).body)


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
        ("tests/handlers/seeds/join/recorded.json", "tests/handlers/test_join.py"),
        ("tests/support/only_conftest.py", "tests/commands/test_cli.py"),
        ("docs/SEEDS.md", "tests/docs/test_pages.py"),
        ("rust/bindings/src/lib.rs", "tests/pyx/test_records.py"),
        ("pyproject.toml", "tests/tools/test_changed.py"),
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


def test_changed_crate_runs_the_crates_that_depend_on_it(repository: Path) -> None:
    (repository / "rust/wire/src/lib.rs").write_text("// changed\n")
    expected = "cargo --lib --tests -p pykafka-broker -p pykafka-wire"
    assert _changed(repository).stdout.strip() == expected


def test_deleted_crate_runs_nothing_and_a_new_crate_runs_by_its_package_name(
    repository: Path,
) -> None:
    for name in ("Cargo.toml", "src/lib.rs", "src/old.rs"):
        (repository / "rust/log" / name).unlink()
    new = repository / "rust/storage/src/lib.rs"
    new.parent.mkdir(parents=True)
    new.write_text("")
    (repository / "rust/storage/Cargo.toml").write_text('[package]\nname = "pykafka-disk"\n')
    assert _changed(repository).stdout.strip() == "cargo --lib --tests -p pykafka-disk"


def test_manifest_of_the_workspace_runs_every_crate(repository: Path) -> None:
    (repository / "Cargo.toml").write_text("# changed\n")
    expected = "cargo --lib --tests -p pykafka-broker -p pykafka-log -p pykafka-wire"
    assert _changed(repository).stdout.strip() == expected


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
    _commit(clone)
    assert _changed(clone).stdout.split() == ["pytest", "tests/test_groups.py"]


def test_unknown_commit_is_an_error(repository: Path) -> None:
    done = _changed(repository, "no-such-commit")
    assert done.returncode == 2
    assert done.stderr.startswith(f"git diff in {repository}: fatal: bad revision 'no-such-commit'")


def test_a_folder_without_git_and_a_damaged_manifest_are_named(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (repository / "rust/log/Cargo.toml").write_text("[package\n")
    done = _changed(repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rust/log/Cargo.toml: ")
    plain = tmp_path_factory.mktemp("plain")
    done = _changed(plain)
    assert done.returncode == 2
    assert done.stderr.startswith(f"git rev-list in {plain}: fatal: not a git repository")
