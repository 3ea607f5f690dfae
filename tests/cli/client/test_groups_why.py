"""``groups why``, which reads from ``serve --metrics``."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.patience import PATIENCE_S
from tests.support.processes.nodes import SERVE

Capture = pytest.CaptureFixture[str]


def serve(*arguments: str) -> list[str]:
    command = [*SERVE, "--listen", "127.0.0.1:0"]
    return [*command, "--durability", "memory", *arguments]


@pytest.fixture
def served() -> Iterator[tuple[str, str]]:
    """Yield the addresses of a broker and of its metrics."""
    arguments = serve("--metrics", "127.0.0.1:0", "--set", "group.initial.rebalance.delay.ms=0")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            assert words[4].startswith("metrics=127.0.0.1:")
            yield words[1], words[4].removeprefix("metrics=")
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def test_history_of_a_group_is_printed(
    served: tuple[str, str], tmp_path: Path, capsys: Capture
) -> None:
    bootstrap, metrics = served
    (tmp_path / "lines").write_text("a\nb\n")
    assert run("topics", "create", "t", "-b", bootstrap) == 0
    assert run("produce", "t", str(tmp_path / "lines"), "-b", bootstrap) == 0
    assert run("consume", "t", "--group", "a/b c", "--max", "1", "-b", bootstrap) == 0
    capsys.readouterr()
    assert run("groups", "why", "a/b c", "--metrics", metrics, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["group"], found["state"]) == ("a/b c", "Empty")
    assert [one["lag"] for one in found["lag"]] == [1]
    assert run("groups", "why", "a/b c", "--metrics", metrics) == 0
    out = capsys.readouterr().out
    assert out.startswith("group a/b c is Empty\n  It has had no members")
    assert "events, oldest first" in out
    assert run("groups", "why", "none", "--metrics", metrics) == 1
    assert "there is no group none" in capsys.readouterr().err


def test_without_a_metrics_server_the_option_is_named(capsys: Capture) -> None:
    assert run("groups", "why", "g", "--metrics", "127.0.0.1:1") == 1
    assert "pykafka-core serve --metrics" in capsys.readouterr().err


def test_kafka_port_is_not_a_metrics_port(served: tuple[str, str], capsys: Capture) -> None:
    assert run("groups", "why", "g", "--metrics", served[0]) == 1
    assert "cannot read groups from" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["9404x", "localhost", "127.0.0.1:99999", "127.0.0.1:"])
def test_invalid_address_is_wrong_usage(text: str, capsys: Capture) -> None:
    assert run("groups", "why", "g", "--metrics", text) == 2
    done = subprocess.run(
        serve("--metrics", text), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not HOST:PORT" in done.stderr


def test_used_address_is_reported(served: tuple[str, str]) -> None:
    done = subprocess.run(
        serve("--metrics", served[1]),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "choose another address with --metrics" in done.stderr
