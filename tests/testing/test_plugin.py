"""The pytest plugin, as projects use it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "pytest"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_the_example_project_passes(options: list[str]) -> None:
    result = run(*options, cwd=EXAMPLE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_pytest_starts_without_loading_the_broker(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_nothing_heavy():\n"
        "    heavy = {'pykafka_core._core', 'pykafka_core.broker', 'pykafka_core.config',\n"
        "             'confluent_kafka', 'numpy', 'pyarrow', 'rich', 'typer'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_fixtures_are_described(tmp_path: Path) -> None:
    result = run("--fixtures", cwd=tmp_path)
    for name in ("kafka_broker", "kafka_topic", "kafka_bootstrap_servers"):
        assert name in result.stdout


def test_topics_are_fresh_and_named_after_their_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('x', ['a b', 'ä'])\n"
        "def test_topic(x, kafka_topic, kafka_broker):\n"
        "    assert kafka_topic.startswith('test_topic-')\n"
        "    assert list(kafka_broker.topics()) == [kafka_topic]\n"
    )
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
