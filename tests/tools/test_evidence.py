"""The output of a failed test explains why it failed, without a second run."""

import functools
import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import IO

import pytest

from tests.support.evidence import ends, stacks
from tests.support.evidence.conditions import explain
from tests.support.evidence.exchanges import CHARACTERS_MAX, described, shortened
from tests.support.evidence.logs import BYTES_MAX, LINES_MAX, LineBuffer, new_log, tail_of
from tests.support.evidence.plugin import GRACE_S
from tests.support.patience import PATIENCE_S, SCALE, VARIABLE, seconds

ROOT = Path(__file__).resolve().parents[2]
FAILURES = ROOT / "tests" / "tools" / "failures.py"

EXPECTED = {
    "test_with_a_broker_in_this_process": [
        r"- Captured log call -[^¶]*WARNING +pykafka_core[^¶]*0\.0\.0\.0"
    ],
    "test_with_a_broker_in_a_child": [
        r"- Log of the broker at 127\.0\.0\.1:\d+ -[^¶]*no meaning[^¶]*num\.io\.threads"
    ],
    "test_with_a_fixture_that_fails": [r"- Log of the lost child -[^¶]*ValueError: lost"],
    "test_during_which_a_broker_dies": [
        r"- End of the broker at 127\.0\.0\.1:\d+ -+\nkilled by SIGKILL\n"
    ],
    "test_before_which_a_broker_died": [
        r"ConnectionRefusedError",
        r"- End of the broker at 127\.0\.0\.1:\d+ -+\nkilled by SIGKILL\n"
        r"It wrote last \d+\.\d s before the test began:\n[^¶]*num\.io\.threads",
    ],
    "test_with_a_raw_connection": [
        r"- Last requests and responses -",
        r"127\.0\.0\.1:\d+  → MetadataRequest v12, \d+ bytes",
        r"← MetadataResponse v12, \d+ bytes \[UNKNOWN_TOPIC_OR_PARTITION ×1\]",
    ],
    "test_with_a_simulated_broker": [
        r"SimulatedBroker  → #1  CreateTopicsRequest\(",
        r"SimulatedBroker  ← #1 \[INVALID_TOPIC_EXCEPTION ×1\]",
        r"FakeCore  respond ",
    ],
    "test_with_a_child_that_fails": [
        r"- Captured stderr of the child -[^¶]*ValueError: its reason"
    ],
    "test_that_hangs": [
        r"Timeout \(>",
        r"- Stacks of this process -[^¶]*Thread hung thread\n[^¶]*wait_in_a_thread",
        r"Thread MainThread\n[^¶]*in test_that_hangs\n",
        r"- Stacks of process \d+ \(S\): [^¶]*wait_in_the_child \(<string>:",
    ],
    "test_whose_child_hangs": [r"wait_in_the_child \(<string>:"],
    "test_whose_wait_times_out": [
        r"not within [^¶]*sorted\(in_sync\) == \[0, 1, 2\]\n.*  sorted\(in_sync\) is \[0, 2\]",
        r"Thread hung thread\n[^¶]*wait_in_a_thread",
    ],
}
"""Patterns in the report of each planted failure."""


def run_pytest(*arguments: str, **environment: str) -> str:
    """Run tests of `FAILURES` in a separate process; return its output."""
    plugins = ["-p", "tests.support.evidence.plugin", "-p", "pytest_timeout"]
    command = [sys.executable, "-m", "pytest", "--noconftest", *plugins, "-c", os.devnull]
    others = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(ROOT), *arguments],
        env=os.environ | others | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds(600),
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def printed() -> str:
    """The output of one run of all planted failures but the one that ends its process."""
    chosen = " or ".join(EXPECTED)
    return run_pytest(str(FAILURES), "-k", f"({chosen}) and not gil")


@pytest.mark.load
@pytest.mark.parametrize("name", EXPECTED)
def test_a_failed_test_shows_its_evidence(name: str, printed: str) -> None:
    (report,) = re.findall(
        rf"^_+ (?:ERROR at setup of )?{name} _+$([^¶]*?)^(?:_+ [A-Za-z]|=)", printed, re.M
    )
    missing = [pattern for pattern in EXPECTED[name] if not re.search(pattern, report)]
    assert missing == [], report


def test_every_planted_failure_is_checked() -> None:
    planted = set(re.findall(r"^def (test_\w+)", FAILURES.read_text(), re.M))
    assert planted == {*EXPECTED, "test_that_hangs_with_the_gil"}


def test_a_hang_that_keeps_the_gil_ends_the_process_with_its_stacks() -> None:
    short = str(0.5 * SCALE / GRACE_S)
    printed = run_pytest(f"{FAILURES}::test_that_hangs_with_the_gil", **{VARIABLE: short})
    assert re.search(r'failures\.py", line \d+ in test_that_hangs_with_the_gil', printed)


def _child(program: str, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """A child that has ended, and for which nothing has waited."""
    child = subprocess.Popen([sys.executable, "-c", program], stderr=log)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def test_a_child_that_ended_is_described_until_it_is_forgotten() -> None:
    with new_log("the lost child") as log:
        child = _child("raise SystemExit('its reason')", log)
    later = time.time() + PATIENCE_S
    text = dict(ends.sections(later))["End of the lost child"]
    assert re.fullmatch(
        r"exit status 1\nIt wrote last \d+\.\d s before the test began:\nits reason", text
    )
    assert dict(ends.sections(0))["End of the lost child"] == "exit status 1"
    assert child.wait() == 1
    assert dict(ends.sections(0))["End of the lost child"] == "exit status 1"
    del child
    gc.collect()
    assert "End of the lost child" not in dict(ends.sections(0))


def test_a_running_child_and_a_success_without_a_log_are_not_ends() -> None:
    with sleeping("sleep") as process:
        assert ends.status_of(process) is None
        done = subprocess.Popen(["true"])
        assert done.wait() == 0
        titles = [title for title, _ in ends.sections(0)]
        assert "End of true" not in titles
        assert "End of sleep 60" not in titles
    assert dict(ends.sections(0))["End of sleep 60"] == "killed by SIGKILL"


def test_the_end_of_a_log_is_bounded_in_lines_and_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number}\n" for number in range(LINES_MAX + 5)))
    assert tail_of(log).splitlines() == [str(number) for number in range(5, LINES_MAX + 5)]
    log.write_text("x" * (BYTES_MAX + 5) + "end")
    assert len(tail_of(log)) == BYTES_MAX
    assert tail_of(log).endswith("xend")


def test_a_long_message_loses_its_middle() -> None:
    text = shortened("a" * CHARACTERS_MAX + "b" * CHARACTERS_MAX)
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert f"… {CHARACTERS_MAX} characters …" in text


def test_a_condition_is_explained_by_its_operands() -> None:
    found, wanted = {"orders": 3}, 4
    text = explain(lambda: "orders" in found and found["orders"] == wanted)
    assert text == (
        "'orders' in found and found['orders'] == wanted"
        "\n  found is {'orders': 3}\n  found['orders'] is 3\n  wanted is 4"
    )


def test_an_operand_that_raises_is_explained_by_its_error() -> None:
    empty: list[int] = []
    assert (
        explain(lambda: not empty[0])
        == "not empty[0]\n  empty[0] is IndexError('list index out of range')"
    )


def test_a_partial_is_explained_by_its_arguments() -> None:
    assert explain(functools.partial(max, 1, 2)) == "max\n  arguments is (1, 2)"


class Unprintable:
    """A value whose ``repr`` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_unprintable_values_are_named() -> None:
    assert described(Unprintable()) == "<Unprintable, whose repr raises RuntimeError>"
    value: object = Unprintable()
    assert "whose repr raises RuntimeError" in explain(lambda: value == 1)


@pytest.fixture
def no_stacks() -> Iterator[None]:
    """Stacks that this test takes are not those of a failure."""
    yield
    stacks.clear()


@contextmanager
def sleeping(program: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    arguments = ["60"] if str(program) != sys.executable else ["-c", "import time; time.sleep(60)"]
    with subprocess.Popen([program, *arguments]) as process:
        yield process
        process.kill()


@pytest.mark.usefixtures("no_stacks")
def test_process_name_that_is_cut_inside_a_character_is_listed(tmp_path: Path) -> None:
    """Linux keeps 15 bytes of a name."""
    program = tmp_path / "fourteen-bytesé"
    program.symlink_to(which("sleep") or "/bin/sleep")
    with sleeping(program) as process:
        stacks.take(PATIENCE_S)
        titles = [title for title, _ in stacks.sections()]
    assert any(f"process {process.pid} " in title for title in titles), titles


@pytest.mark.usefixtures("no_stacks")
def test_children_continue_without_py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later tests may share them. The output of a broken py-spy is not text."""
    broken = tmp_path / "py-spy"
    broken.write_text("#!/bin/sh\nprintf '\\351'\n")
    broken.chmod(0o755)
    signals: list[object] = []
    with sleeping(sys.executable), monkeypatch.context() as patch:
        patch.setattr(os, "kill", lambda *given: signals.append(given))
        for program, text in ((Path("/bin/false"), stacks.NO_PY_SPY), (broken, "\ufffd")):
            stacks.clear()
            patch.setattr(stacks, "PY_SPY", program)
            stacks.take(PATIENCE_S)
            assert any(text in found for _, found in stacks.sections())
        assert signals == []


@pytest.mark.usefixtures("no_stacks")
def test_dumps_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[float] = []

    def dumped(process: stacks.Process, bound_s: float) -> str:
        bounds.append(bound_s)
        return process.command

    monkeypatch.setattr(stacks, "stacks_of", dumped)
    with sleeping("sleep"), sleeping("sleep"):
        stacks.take(PATIENCE_S)
    assert len(bounds) >= 2
    assert PATIENCE_S > bounds[0] > bounds[1]


@pytest.mark.usefixtures("no_stacks")
def test_taking_stacks_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "descendants", lambda: [][0])
    stacks.take(PATIENCE_S)
    assert "IndexError" in dict(stacks.sections())["Stacks are incomplete"]


def test_long_line_keeps_its_end() -> None:
    buffer = LineBuffer("a child")
    buffer.append("x" * 10 * BYTES_MAX + "end\n")
    assert buffer.tail().endswith("xend\n")
    assert sum(map(len, buffer._lines)) <= BYTES_MAX
