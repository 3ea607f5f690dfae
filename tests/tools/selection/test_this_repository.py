"""Each file of this repository selects the tests that belong to it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from posixpath import normpath

import pytest

from tests.tools.module_trees import repository
from tools.selection.crates import Crates
from tools.selection.test_files import NEAREST_MAX, TestFiles

PRODUCT = ("pykafka_core/", "spark_udfs/")

BROKER = ("tests/broker/", "tests/handlers/")

READ = {
    "docs/SETTINGS.md": "tests/config/test_settings_page.py",
    "docs/guides/clients.md": "tests/clients/groups/test_groups_by_client.py",
    "examples/pytest": "tests/testing/test_plugin.py",
    "rust/broker/src/kafka_error.rs": "tests/test_errors.py",
    "rust/broker/src/control_api/settings.rs": "tests/config/test_honoured.py",
    "rust/log/src/config.rs": "tests/config/test_honoured.py",
    "rust/record/tests/data": "tests/pyx/test_records.py",
    "tests/faults/groups/hogged_broker.py": "tests/faults/groups/test_gil_hogs.py",
    "tests/formats/golden/clean/data": "tests/log/test_golden.py",
    "tests/formats/golden/killed/data": "tests/cli/test_doctor.py",
    "tools/oracle_filter.py": "tests/test_oracle.py",
    "tools/settings.py": "tests/config/test_settings_page.py",
    "tools/verdicts/__main__.py": "tests/config/test_kafka_verdicts.py",
}
"""A file or folder → one of its tests, which no import leads to, or one from another area."""

_DIVIDED = re.compile(r'(?:\s*/\s*f?"[^"\n{]+")+')
_QUOTED = re.compile(r'"([^"\n]+)"')
_IN_RUST = re.compile(r'#\[path = "([^"]+)"\]|include_str!\("([^"]+)"\)')


@cache
def _tests() -> TestFiles:
    return TestFiles(repository())


@cache
def _crates() -> Crates:
    return Crates(repository())


@cache
def _selected(path: str) -> list[str]:
    return _tests().of(path).tests


def test_each_module_of_the_product_has_tests() -> None:
    tree = repository()
    modules = [path for path in tree.paths if path.startswith(PRODUCT) and path.endswith(".py")]
    assert len(modules) > 400
    code = [path for path in modules if _has_code(tree.text(path))]
    assert [path for path in code if not _selected(path)] == []


def _has_code(text: str) -> bool:
    """Return whether a module is more than documentation."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(text).body)


def test_each_module_runs_the_test_of_its_name() -> None:
    pairs = list(_namesakes())
    assert len(pairs) > 100
    assert [pair for pair in pairs if pair[1] not in _selected(pair[0])] == []


def _namesakes() -> Iterator[tuple[str, str]]:
    """Yield modules of the product with the tests of the same name in the same area."""
    tests = [PurePosixPath(path) for path in repository().paths if path.startswith("tests/")]
    for path in repository().paths:
        place = PurePosixPath(path)
        if path.startswith(PRODUCT) and place.suffix == ".py":
            area = "spark" if place.parts[0] == "spark_udfs" else place.parts[1]
            for test in tests:
                same = test.parts[1] == area or place.parts[1:] == (place.name,) == test.parts[2:]
                if same and test.name == f"test_{place.name}":
                    yield path, str(test)


@pytest.mark.parametrize(("start", "test"), READ.items())
def test_file_runs_a_test_that_reads_or_starts_it(start: str, test: str) -> None:
    paths = [path for path in repository().paths if path == start or path.startswith(f"{start}/")]
    assert paths
    assert [path for path in paths if test not in _selected(path)] == []
    assert max(len(_selected(path)) for path in paths) <= 2 * NEAREST_MAX


def test_each_file_that_a_test_names_runs_that_test() -> None:
    named = list(_named_by_tests())
    assert len(named) > 15
    assert [pair for pair in named if pair[1] not in _selected(pair[0])] == []


def _named_by_tests() -> Iterator[tuple[str, str]]:
    """Yield files with the tests that name them: in a string, or as a path such as
    ``ROOT / "docs" / "PLANES.md"``.

    The tests of tools name files of small trees that they write.
    """
    paths = repository().paths
    for test in paths:
        if re.fullmatch(r"tests/(?!tools/).*test_\w+\.py", test):
            text = repository().text(test)
            parts = ["/".join(_QUOTED.findall(found)) for found in _DIVIDED.findall(text)]
            names = {one for one in (*parts, *_QUOTED.findall(text)) if "/" in one}
            for name in names:
                fits = [path for path in paths if f"/{path}".endswith(f"/{name}")]
                if len(fits) == 1:
                    yield fits[0], test


def test_each_program_that_a_test_starts_runs_that_test() -> None:
    paths = repository().paths
    named = [
        (path, test)
        for test in paths
        if re.fullmatch(r"tests/.*test_\w+\.py", test)
        for name in re.findall(r'"(tests(?:\.\w+)+)"', repository().text(test))
        if (path := f"{name.replace('.', '/')}.py") in paths
    ]
    assert len(named) > 8
    assert [pair for pair in named if pair[1] not in _selected(pair[0])] == []


def test_each_file_that_a_crate_contains_runs_that_crate() -> None:
    named = list(_named_by_crates())
    assert len(named) > 10
    assert [pair for pair in named if pair[1] not in _crates().of(pair[0])] == []


def _named_by_crates() -> Iterator[tuple[str, str]]:
    """Yield files with the packages whose sources contain their paths."""
    for source in repository().paths:
        if re.match(r"rust/(?!fuzz).*\.rs$", source):
            package = f"pykafka-{source.split('/')[1]}"
            for found in _IN_RUST.findall(repository().text(source)):
                yield normpath(f"{source}/../{found[0] or found[1]}"), package


@pytest.mark.parametrize(
    ("start", "package"),
    [
        ("tests/formats/golden/", "pykafka-log"),
        ("tests/protocol/golden/conversations.jsonl", "pykafka-wire"),
        ("rust/fuzz/driver.rs", "pykafka-record"),
        ("rust/fuzz/random.rs", "pykafka-wire"),
    ],
)
def test_file_of_another_folder_runs_the_crate_that_reads_it(start: str, package: str) -> None:
    paths = [path for path in repository().paths if path.startswith(start)]
    assert paths
    assert [path for path in paths if package not in _crates().of(path)] == []


@pytest.mark.parametrize("path", ["rust/bindings/src/core.rs", "rust/bindings/src/core/event.rs"])
def test_seam_runs_tests_of_the_broker_and_of_its_handlers(path: str) -> None:
    selected = _selected(path)
    assert [
        folder for folder in BROKER if any(test.startswith(folder) for test in selected)
    ] == list(BROKER)
