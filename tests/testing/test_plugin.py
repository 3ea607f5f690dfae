"""The pytest plugin, in separate pytest processes as in a user's project."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support.patience import seconds

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "pytest"
PLUGIN = "pykafka_core.testing"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest with our plugin only: the import of the other installed plugins takes seconds."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments]
    alone = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        timeout=seconds(400),
        check=False,
    )


def test_pytest_finds_the_plugin_by_itself() -> None:
    assert [one.value for one in entry_points(group="pytest11", name="pykafka_core")] == [PLUGIN]


@pytest.mark.parametrize("options", [[], ["-p", "xdist", "-n", "2"]], ids=["alone", "xdist"])
def test_the_example_project_passes(options: list[str]) -> None:
    result = run(*options, cwd=EXAMPLE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_fixtures_are_light_described_and_fresh(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "import pytest\n"
        "HEAVY = {'pykafka_core._core', 'pykafka_core.broker', 'pykafka_core.config',\n"
        "         'confluent_kafka', 'numpy', 'pyarrow', 'rich', 'typer'} & set(sys.modules)\n"
        "def test_pytest_starts_without_loading_the_broker():\n"
        "    assert not HEAVY\n"
        "def test_fixtures_are_described(pytestconfig):\n"
        "    plugin = pytestconfig.pluginmanager.get_plugin('pykafka_core.testing')\n"
        "    for name in ('kafka_broker', 'kafka_topic', 'kafka_bootstrap_servers', 'kafka_cluster'):\n"
        "        assert getattr(plugin, name).__doc__\n"
        "@pytest.mark.parametrize('x', ['a b', 'ä'])\n"
        "def test_topic(x, kafka_topic, kafka_broker):\n"
        "    assert kafka_topic.startswith('test_topic-')\n"
        "    assert list(kafka_broker.topics()) == [kafka_topic]\n"
    )
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_each_test_has_its_own_cluster_with_the_options(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "SEEN = []\n"
        "@pytest.fixture(scope='session')\n"
        "def kafka_cluster_options():\n"
        "    return {'brokers': 2, 'config': {'num.partitions': 3}}\n"
        "@pytest.mark.parametrize('time', [1, 2])\n"
        "def test_nodes_die(time, kafka_cluster):\n"
        "    assert len(kafka_cluster.brokers) == 2\n"
        "    kafka_cluster.create_topic('orders')\n"
        "    assert kafka_cluster.wait_isr('orders', 2) == (0, 1)\n"
        "    kafka_cluster.kill(1)\n"
        "    SEEN.append(kafka_cluster.bootstrap_servers)\n"
        "def test_they_were_others():\n"
        "    assert len(set(SEEN)) == 2\n"
    )
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed" in result.stdout


def test_topic_has_the_partitions_of_its_description_and_the_options(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "from pykafka_core.testing import kafka_topic as described\n"
        "@pytest.fixture(scope='session')\n"
        "def kafka_broker_options():\n"
        "    return {'config': {'num.partitions': 3}}\n"
        "def test_topic(kafka_topic, kafka_broker):\n"
        "    assert 'num.partitions' in described.__doc__\n"
        "    assert kafka_broker.topics()[kafka_topic] == 3\n"
    )
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
