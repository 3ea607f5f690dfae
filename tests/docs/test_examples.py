"""Each Python example of README and docs runs, and prints the output that the page shows."""

import os
import re
import runpy
import subprocess
import sys
from inspect import signature
from pathlib import Path
from types import ModuleType

import pytest

import pykafka_core
import spark_udfs
from tests.support.brokers import Serve
from tests.support.examples import (
    PAGES,
    ROOT,
    closing_databases,
    examples,
    shown_outputs,
    without_ports,
)

EXAMPLES = [
    pytest.param(code, shown_outputs(page).get(code), id=f"{page.stem}-{number}")
    for page in PAGES
    # Tests of other examples: tests/spark/test_guides.py (Spark), tests/idempotent/postgres.
    for number, code in enumerate(examples(page))
]


@pytest.mark.parametrize(("code", "shown"), EXAMPLES)
def test_the_example_runs(
    code: str,
    shown: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    with closing_databases():
        exec(compile(code, "example", "exec"), scope)
        for name, value in scope.items():
            if name.startswith("test_") and callable(value):
                value(*map(request.getfixturevalue, signature(value).parameters))
    if shown is not None:
        assert without_ports(capsys.readouterr().out) == without_ports(shown)


def test_the_program_with_a_ledger_closes_its_databases(serve: Serve, tmp_path: Path) -> None:
    program = runpy.run_path(str(ROOT / "examples" / "delivery" / "exactly_once.py"))
    with serve() as broker, closing_databases():
        broker.create_topic("payments")
        program["main"](broker.bootstrap_servers, tmp_path, 0)


@pytest.mark.load
def test_examples_that_are_tests_run_together_in_a_folder_and_run_again(tmp_path: Path) -> None:
    """Users run copies like this. Two examples once shared a ledger that outlived their topics."""
    count = 0
    for page in PAGES:
        for number, code in enumerate(examples(page)):
            if "def test_" in code:
                count += 1
                (tmp_path / f"test_{page.stem.replace('-', '_')}_{number}.py").write_text(code)
    assert count > 1
    for _ in range(2):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert f"{count} passed" in done.stdout, done.stdout


@pytest.mark.load
def test_the_examples_are_well_typed(tmp_path: Path) -> None:
    for page in PAGES:
        for number, code in enumerate(examples(page)):
            (tmp_path / f"{page.stem.replace('-', '_')}_{number}.py").write_text(code)
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir=cache", "."]
    there = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=there, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", [pykafka_core, spark_udfs], ids=lambda one: one.__name__)
def test_the_types_of_a_package_are_for_its_users(package: ModuleType) -> None:
    assert package.__file__ is not None
    assert (Path(package.__file__).parent / "py.typed").is_file()


def test_every_link_in_the_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} → {target}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/PLANES.md", "docs/SEEDS.md"])
def test_every_path_named_on_a_page_exists(page: str) -> None:
    named = set(re.findall(r"`([\w/.]+)`", (ROOT / page).read_text()))
    places = {name for name in named if (ROOT / name.partition("/")[0]).is_dir() and "/" in name}
    # NAME and ROOM are placeholders for files and folders that a developer adds.
    places = {name for name in places if not re.search(r"NAME|ROOM", name)}
    assert places
    for place in places:
        assert (ROOT / place).exists(), place
