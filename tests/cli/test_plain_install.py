"""The command line when only the package and its required dependencies are installed."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import pykafka_core
from pykafka_core import Broker
from pykafka_core.log import Log
from tests.support.patience import PATIENCE_S

_WITHOUT_CLIENT = "import sys; sys.modules['confluent_kafka'] = None; "
_COMMAND = "from pykafka_core.cli import main; main(sys.argv[1:])"


def run(*arguments: str, code: str = _WITHOUT_CLIENT + _COMMAND) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a process without confluent-kafka."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize(
    "command", [[], ["serve"], ["topics"], ["topics", "list"], ["groups"], ["repair"]]
)
def test_help_needs_no_client(command: list[str], option: str) -> None:
    code, out, errors = run(*command, option)
    assert (code, errors) == (0, "")
    assert "Usage: pykafka-core" in out


def test_local_commands_need_no_client(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    with Log.open(log) as opened:
        opened.append([(b"k", b"v")])
    code, out, errors = run("dump-log", str(log), "--print-data-log")
    assert (code, errors) == (0, "")
    assert "payload: v" in out
    assert run("repair", str(log))[0] == 0
    assert run("doctor", "--data-dir", str(tmp_path / "new"))[0] == 0


def test_status_needs_no_client() -> None:
    with Broker() as broker:
        code, out, errors = run("status", "-b", broker.bootstrap_servers)
    assert (code, errors) == (0, "")
    assert "healthy" in out


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "list"],
        ["topics", "create", "t"],
        ["configs", "describe", "topic", "t"],
        ["produce", "t", "-b", "127.0.0.1:1"],
        ["consume", "t"],
        ["consume", "t", "--group", "g"],
        ["perf", "produce", "t"],
        ["perf", "consume", "t"],
        ["perf", "latency", "t"],
        ["groups", "list"],
        ["groups", "reset-offsets", "g", "--all-topics", "--to-earliest"],
    ],
)
def test_a_command_that_needs_the_client_names_the_extra(command: list[str]) -> None:
    code, out, errors = run(*command)
    assert (code, out) == (2, "")
    assert "needs confluent-kafka: pip install 'pykafka-core[cli]'" in errors


def test_the_version_is_that_of_the_package() -> None:
    installed = version("pykafka-core")
    assert pykafka_core.__version__ == installed
    assert run("--version") == (0, f"pykafka-core {installed}\n", "")


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "pykafka_core", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"pykafka-core {pykafka_core.__version__}\n"


def test_a_shell_completes_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "pykafka-core topics de")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_PYKAFKA_CORE_COMPLETE", "complete_bash")
    code, out, errors = run()
    assert (code, out.split(), errors) == (0, ["describe", "delete"], "")


def test_importing_the_package_loads_nothing_of_the_command_line() -> None:
    heavy = "{'typer', 'rich', 'click', 'pykafka_core.cli', 'pykafka_core._core'}"
    code = f"import sys, pykafka_core; assert not {heavy} & set(sys.modules)"
    assert run(code=code)[0] == 0
