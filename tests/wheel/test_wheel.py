"""The wheel in an empty environment, as a new user installs it.

It contains the modules that `make build` compiled.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.examples import ROOT, examples
from tests.support.wheel import make_environment, run, serve, stop

README = ROOT / "README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINES = [line for block in _BLOCK.findall(README.read_text()) for line in block.splitlines()]
COMMANDS = [line.removeprefix("$ ") for line in LINES if line.startswith("$ ")]
SHOWN = [line for line in LINES if not line.startswith("$ ")]
"""The printed lines that the page shows."""


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the commands of an environment with the wheel, its extra ``cli`` and pytest."""
    folder = tmp_path_factory.mktemp("environment")
    return make_environment(folder, f"{wheel}[cli]", "pytest")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_wheel_runs_on_other_linux_systems_and_holds_modules_of_one_interpreter(
    wheel: Path,
) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"pykafka_core-[\d.]+-{tag}-{tag}-manylinux_2_\d+_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
    assert len(modules) == 1 + len(list((ROOT / "pyx").glob("*.pyx")))
    assert all(f".cpython-{tag[2:]}-" in name for name in modules), modules


def test_wheel_contains_no_test_doubles_and_no_demo(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "pykafka_core/testing/plugin.py" in names
    assert [name for name in names if re.search("fake|simulated|demo|flights", name)] == []


def test_the_metadata_is_complete(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist", [])
    assert {one.partition(">")[0] for one in required if ";" not in one} == {"typer", "rich"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"LICENSE", "NOTICE"} <= set(metadata.get_all("License-File", []))
    assert "kafka" in metadata["Keywords"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_page_of_a_package_index_has_no_link_into_the_repository(metadata: Message) -> None:
    page = str(metadata.get_payload())
    assert page.startswith("# pykafka_core")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert [one for one in targets if not one.startswith(("https://", "#"))] == []


def test_readme_starts_with_the_commands_that_install() -> None:
    assert COMMANDS[0] == "make wheel"
    assert COMMANDS[1] == "pip install --find-links dist 'pykafka-core[cli]'"
    assert COMMANDS[2].startswith("pykafka-core serve")


def test_the_commands_of_the_readme_run(scripts: Path, tmp_path: Path) -> None:
    commands = [command for command in COMMANDS if "pykafka-core " in command]
    assert len(commands) > 4
    printed = "".join(_session(scripts, tmp_path, commands))
    assert len(SHOWN) > 1
    assert [line for line in SHOWN if line not in printed.splitlines()] == []


def test_the_examples_of_the_readme_run(scripts: Path, tmp_path: Path) -> None:
    count = 0
    for number, code in enumerate(examples(README)):
        is_test = "def test_" in code
        count += is_test
        file = tmp_path / f"{'test' if is_test else 'example'}_{number}.py"
        file.write_text(code)
        if not is_test:
            run(str(scripts / "python"), file.name, folder=tmp_path)
    out = run(str(scripts / "python"), "-m", "pytest", "-q", folder=tmp_path)
    assert f"{count} passed" in out


def _session(scripts: Path, folder: Path, commands: list[str]) -> Iterator[str]:
    """Run the commands one after the other, brokers in the background; yield their output."""
    server: subprocess.Popen[str] | None = None
    address = ""
    try:
        for command in commands:
            if command.startswith(("pykafka-core serve", "pykafka-core cluster up")):
                stop(server)
                server, address = serve(scripts, folder, command)
            else:
                shell = "bash", "-euo", "pipefail", "-c", command
                yield run(*shell, folder=folder, scripts=scripts, address=address)
    finally:
        stop(server)
