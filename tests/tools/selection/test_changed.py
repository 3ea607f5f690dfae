"""`make check` runs the Python tests of changed files, and no others."""

from pathlib import Path

import pytest

from tests.tools.git_trees import commit
from tests.tools.module_trees import write_tree
from tests.tools.selection.repositories import changed, commands
from tools.selection.test_files import NEAREST_MAX, TESTS_MAX

MANY = {f"tests/test_other_{one}.py": "import pykafka_core.joins\n" for one in range(30)}


def _tests(root: Path) -> list[str]:
    """Return the tests that run for the changes since the newest commit, where no crate runs."""
    found = [line.split() for line in commands(root)]
    assert [runner for runner, *_ in found] in ([], ["pytest"])
    return [test for _, *tests in found for test in tests]


def _after(root: Path, *paths: str, text: str = "# changed\n") -> list[str]:
    """Return the tests that run after files have changed."""
    write_tree(root, dict.fromkeys(paths, text))
    return _tests(root)


def test_nothing_changed_runs_nothing(repository: Path) -> None:
    assert _tests(repository) == []


def test_changed_module_runs_the_tests_that_import_it(repository: Path) -> None:
    assert "tests/test_offsets.py" in _after(repository, "pykafka_core/offsets.py")


def test_tests_that_import_a_module_through_a_helper_run(repository: Path) -> None:
    expected = ["tests/handlers/test_join.py", "tests/test_groups.py"]
    assert _after(repository, "pykafka_core/groups.py") == expected


def test_module_runs_the_nearest_tests_that_import_it_through_others(repository: Path) -> None:
    assert _after(repository, "pykafka_core/sessions.py") == ["tests/test_groups_api.py"]


def test_of_many_tests_that_import_a_module_through_others_those_with_its_words_run(
    repository: Path,
) -> None:
    commit(repository, {**MANY, "tests/test_open_sessions.py": "import pykafka_core.joins\n"})
    files = _after(repository, "pykafka_core/sessions.py")
    assert len(files) == NEAREST_MAX
    assert "tests/test_open_sessions.py" in files


def test_of_many_tests_that_import_a_module_directly_few_run_and_the_others_are_counted(
    repository: Path,
) -> None:
    commit(repository, MANY)
    write_tree(repository, {"pykafka_core/joins.py": "# changed\n"})
    done = changed(repository, "HEAD")
    assert len(done.stdout.split()[1:]) == NEAREST_MAX
    assert "left to make test: 22 test files: tests/test_other_" in done.stderr


def test_change_of_many_files_runs_a_bounded_number_of_tests(repository: Path) -> None:
    commit(repository, {f"tests/area_{one}/test_it.py": "" for one in range(60)})
    assert len(_after(repository, *(f"tests/area_{one}/seeds.toml" for one in range(60)))) == (
        TESTS_MAX
    )


def test_test_with_the_name_of_a_module_runs_whatever_imports_it(repository: Path) -> None:
    weak = {
        f"tests/broker/test_slices_{one}.py": "import pykafka_core.handlers.create\n"
        for one in range(9)
    }
    module = {"pykafka_core/handlers/create.py": "", "tests/handlers/test_create.py": ""}
    commit(repository, {**module, **weak})
    assert "tests/handlers/test_create.py" in _after(repository, "pykafka_core/handlers/create.py")


def test_one_weak_importer_does_not_hide_those_behind_the_next_import(repository: Path) -> None:
    files = {
        "pykafka_core/handlers/create.py": "",
        "pykafka_core/handlers/all.py": "from pykafka_core.handlers import create\n",
        "tests/broker/test_slices.py": "from pykafka_core.handlers import create\n",
        "tests/handlers/test_topics.py": "from pykafka_core.handlers import all\n",
    }
    commit(repository, files)
    expected = ["tests/broker/test_slices.py", "tests/handlers/test_topics.py"]
    assert _after(repository, "pykafka_core/handlers/create.py") == expected


@pytest.mark.parametrize(
    "loader",
    [
        "from importlib import import_module\nROWS = [(1, 'topics.create')]\n",
        "HOMES = {'create': 'pykafka_core.handlers.topics.create'}\n",
    ],
)
def test_module_that_is_loaded_by_its_name_runs_the_tests_of_its_loader(
    repository: Path, loader: str
) -> None:
    files = {
        "pykafka_core/handlers/registry.py": loader,
        "pykafka_core/handlers/topics/create.py": "",
        "tests/broker/test_asked.py": "from pykafka_core.handlers.registry import ROWS\n",
    }
    commit(repository, files)
    found = _after(repository, "pykafka_core/handlers/topics/create.py")
    assert found == ["tests/broker/test_asked.py"]


def test_program_of_tests_runs_the_test_that_starts_it(repository: Path) -> None:
    test = "COMMAND = [sys.executable, '-m', 'tests.faults.child']\n"
    commit(repository, {"tests/faults/child.py": "", "tests/faults/test_gil.py": test})
    commit(repository, {"tests/faults/test_other.py": ""})
    assert _after(repository, "tests/faults/child.py") == ["tests/faults/test_gil.py"]


@pytest.mark.parametrize("path", ["bench/load.py", "tools/oracle.py"])
def test_module_outside_of_the_product_runs_the_tests_that_import_it(
    repository: Path, path: str
) -> None:
    name = path.removesuffix(".py").replace("/", ".")
    commit(repository, {path: "", "tests/broker/test_load.py": f"import {name}\n"})
    assert _after(repository, path) == ["tests/broker/test_load.py"]


READERS = {
    "a string": "PAGE = 'docs/guides/clients.md'\n",
    "parts": "PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'guides' / 'clients.md'\n",
    "a name": "ROOT = Path(__file__).parent.parent.parent\nROOT / 'docs/guides/clients.md'\n",
    "a name of another module": "from tests.support.places import ROOT\nROOT / 'docs' / name\n",
    "a neighbour": "Path(__file__).with_name('x').parents[2].joinpath, GUIDES / 'clients.md'\n"
    "HERE, GUIDES = Path(__file__).parent, Path(__file__).parents[2] / 'docs/guides'\n",
}


@pytest.mark.parametrize("text", READERS.values(), ids=READERS.keys())
def test_file_that_a_test_names_runs_it(repository: Path, text: str) -> None:
    files = {
        "docs/guides/clients.md": "",
        "tests/support/places.py": "ROOT = Path(__file__).parents[2]\n",
        "tests/clients/test_table.py": text,
    }
    commit(repository, files)
    found = _after(repository, "docs/guides/clients.md")
    assert found == ["tests/clients/test_table.py", "tests/docs/test_pages.py"]


def test_module_that_no_test_imports_runs_the_folder_of_its_name(repository: Path) -> None:
    found = _after(repository, "pykafka_core/handlers/unused.py")
    assert found == ["tests/handlers/test_join.py"]


def test_new_test_and_changed_crate_run(repository: Path) -> None:
    write_tree(repository, {"tests/test_new.py": "", "rust/log/src/roll.rs": ""})
    assert commands(repository) == [
        "cargo --lib --tests -p pykafka-log",
        "pytest tests/test_new.py",
    ]


def test_deleted_test_does_not_run(repository: Path) -> None:
    (repository / "tests/test_groups.py").unlink()
    assert _tests(repository) == []


@pytest.mark.parametrize("path", ["pykafka_core/offsets.py", "tests/support/world.py"])
def test_deleted_module_runs_the_tests_that_import_it(repository: Path, path: str) -> None:
    (repository / path).unlink()
    expected = {"tests/test_offsets.py", "tests/handlers/test_join.py"}
    assert expected & set(_tests(repository))


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
    assert _after(repository, path) == [test]


def test_file_without_tests_is_named(repository: Path) -> None:
    write_tree(repository, {"setup.cfg": "[metadata]\n"})
    done = changed(repository, "HEAD")
    assert done.stdout == ""
    assert done.stderr.splitlines()[1:] == ["no unit test for setup.cfg"]


def test_file_with_a_syntax_error_still_runs(repository: Path) -> None:
    broken = {
        "tests/test_broken.py": "def\n",
        "tests/with space/test_é.py": "",
        "tests/l.toml": "[",
    }
    assert set(_after(repository, *broken, text="def\n")) >= {"tests/test_broken.py"}


def test_unknown_commit_is_an_error(repository: Path) -> None:
    done = changed(repository, "no-such-commit")
    assert done.returncode == 2
    assert done.stderr.startswith(f"git diff in {repository}: fatal: bad revision 'no-such-commit'")


def test_damaged_manifest_is_named(repository: Path) -> None:
    (repository / "rust/log/Cargo.toml").write_text("[package\n")
    done = changed(repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert "\nrust/log/Cargo.toml: " in done.stderr


def test_folder_outside_git_is_an_error(tmp_path: Path) -> None:
    done = changed(tmp_path)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr
    assert "Traceback" not in done.stderr
