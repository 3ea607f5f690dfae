"""`make check` runs the tests of the crates that a file is compiled into."""

from pathlib import Path

import pytest

from tests.tools.git_trees import commit
from tests.tools.module_trees import write_tree
from tests.tools.selection.repositories import commands


def _packages(root: Path, path: str) -> list[str]:
    """Return the packages that run after a file has changed."""
    write_tree(root, {path: "# changed\n"})
    return [
        word for line in commands(root) if line.startswith("cargo") for word in line.split()[4::2]
    ]


def test_deleted_rust_file_runs_its_crate(repository: Path) -> None:
    (repository / "rust/log/src/old.rs").unlink()
    assert commands(repository) == ["cargo --lib --tests -p pykafka-log"]


def test_changed_crate_runs_the_crates_that_depend_on_it(repository: Path) -> None:
    expected = ["pykafka-broker", "pykafka-wire"]
    assert _packages(repository, "rust/wire/src/lib.rs") == expected


def test_changed_test_of_a_crate_runs_that_crate_alone(repository: Path) -> None:
    assert _packages(repository, "rust/wire/tests/frames.rs") == ["pykafka-wire"]


@pytest.mark.parametrize(
    "manifest",
    [
        '[target."cfg(unix)".dependencies]\npykafka-log = "1"\n',
        '[build-dependencies]\npykafka-log = "1"\n',
        "[dependencies]\nstorage.workspace = true\n",
    ],
)
def test_crate_runs_with_its_dependency_in_any_table(repository: Path, manifest: str) -> None:
    files = {
        "Cargo.toml": '[workspace.dependencies]\nstorage = { package = "pykafka-log" }\n',
        "rust/client/Cargo.toml": f'[package]\nname = "pykafka-client"\n{manifest}',
    }
    commit(repository, files)
    expected = ["pykafka-client", "pykafka-log"]
    assert _packages(repository, "rust/log/src/lib.rs") == expected


@pytest.mark.parametrize(
    "text",
    [
        '#[path = "../../fuzz/random.rs"]\nmod random;\n',
        'include!("../../fuzz/random.rs");\n',
        'const TEXT: &str = include_str!("../../fuzz/random.rs");\n',
        'Path::new(env!("CARGO_MANIFEST_DIR"))\n    .join("../fuzz/random.rs")\n',
        'Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")\n',
        'concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/random.rs")\n',
        '#[path = "../../fuzz/driver.rs"]\nmod driver;\n',
    ],
)
def test_file_that_a_crate_contains_runs_that_crate(repository: Path, text: str) -> None:
    fuzz = {
        "rust/fuzz/random.rs": "",
        "rust/fuzz/driver.rs": '#[path = "random.rs"]\nmod random;\n',
    }
    commit(repository, {**fuzz, "rust/log/tests/fuzz.rs": text})
    assert _packages(repository, "rust/fuzz/random.rs") == ["pykafka-log"]


def test_golden_file_runs_the_crate_that_reads_it(repository: Path) -> None:
    text = 'Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/golden")\n'
    golden = {"tests/formats/golden/clean/0.log": ""}
    commit(repository, {**golden, "rust/log/tests/golden.rs": text})
    assert _packages(repository, "tests/formats/golden/clean/0.log") == ["pykafka-log"]


def test_deleted_crate_runs_nothing_and_a_new_crate_runs_by_its_package_name(
    repository: Path,
) -> None:
    for name in ("Cargo.toml", "src/lib.rs", "src/old.rs"):
        (repository / "rust/log" / name).unlink()
    new = {"src/lib.rs": "", "Cargo.toml": '[package]\nname = "pykafka-disk"\n'}
    write_tree(repository, {f"rust/storage/{name}": text for name, text in new.items()})
    assert commands(repository) == ["cargo --lib --tests -p pykafka-disk"]


def test_manifest_of_the_workspace_runs_every_crate(repository: Path) -> None:
    expected = ["pykafka-broker", "pykafka-log", "pykafka-wire"]
    assert _packages(repository, "Cargo.toml") == expected
