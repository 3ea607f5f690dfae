"""``format``, ``random-uuid`` and ``cluster up``: nodes of one cluster from the command line."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_core._core import Repair
from pykafka_core.broker.start.startup_config import plan
from pykafka_core.cli.doctor import processes
from pykafka_core.config import BrokerConfigs
from tests.cluster.clients import isr_of, read_by_group
from tests.support.cli import run
from tests.support.evidence.logs import new_log
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.ports import free_ports
from tests.support.processes.proc import proc_with_lock

Capture = pytest.CaptureFixture[str]
SERVES = "node 2 serves again\n"


def new_id(capsys: Capture) -> str:
    assert run("random-uuid") == 0
    return capsys.readouterr().out.strip()


def test_formatted_directory_contains_its_cluster_and_its_voters(
    tmp_path: Path, capsys: Capture
) -> None:
    cluster, *directories = [new_id(capsys) for _ in range(3)]
    voters = ",".join(f"{node}@127.0.0.1:{19000 + node}:{directories[node - 1]}" for node in (1, 2))
    for node in (1, 2):
        asked = "--data", tmp_path / str(node), "--node-id", node, "-t", cluster
        assert run("format", *asked, "--initial-controllers", voters) == 0
    settings = BrokerConfigs({"controller.listener.names": "CONTROLLER", "node.id": "1"})
    planned = plan(settings, tmp_path / "1", lambda: bytes(16))
    assert planned.identity.cluster_id == cluster
    assert [(voter.key.node_id, voter.port) for voter in planned.voters] == [(1, 19001), (2, 19002)]
    assert planned.is_member


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--initial-controllers", "1@h:1"), "is not a controller"),
        (("--initial-controllers", "7@h:1:AAAAAAAAAAAAAAAAAAAAAQ"), "not among the controllers"),
    ],
)
def test_invalid_format_options_format_nothing(
    tmp_path: Path, capsys: Capture, more: tuple[str, ...], said: str
) -> None:
    data, cluster = tmp_path / "data", new_id(capsys)
    assert run("format", "--data", data, "--node-id", 1, "-t", cluster, *more) == 2
    assert said in capsys.readouterr().err
    assert not data.exists()


def test_a_directory_is_formatted_once(tmp_path: Path, capsys: Capture) -> None:
    asked = "format", "--data", tmp_path / "data", "--node-id", 1, "-t", new_id(capsys)
    assert run(*asked) == 0
    assert run(*asked) == 1
    assert "formatted already" in capsys.readouterr().err


def test_directory_of_a_running_node_is_not_formatted(tmp_path: Path, capsys: Capture) -> None:
    asked = "format", "--data", tmp_path, "--node-id", 1, "-t", new_id(capsys)
    with closing(Repair(tmp_path)):
        assert run(*asked) == 1
    assert f"{tmp_path} is in use by this process" in capsys.readouterr().err


class Up(NamedTuple):
    """A running command, its brokers and the file of its stderr."""

    process: "subprocess.Popen[str]"
    brokers: str
    errors: Path


@contextmanager
def up(folder: Path, port: int, nodes: int = 3) -> Iterator[Up]:
    """Run nodes until the end of the block."""
    command = [sys.executable, "-m", "pykafka_core.cli", "cluster", "up", str(nodes), str(folder)]
    with new_log("cluster up") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready ")
        yield Up(process, line.split()[1], Path(log.name))
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_nodes_of_an_earlier_command_are_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "2").mkdir()
    command = [sys.executable, "-c", LOCK, str(tmp_path / "2" / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == b"locked\n"
        assert run("cluster", "up", 3, tmp_path, "--port", free_ports()) == 1
    found = capsys.readouterr().err
    assert f"{tmp_path} is in use: node 2 runs as process {node.pid}" in found
    assert f"kill {node.pid}" in found
    assert not list(tmp_path.glob("*.properties"))


def test_node_of_an_invisible_process_is_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cluster"
    (folder / "2").mkdir(parents=True)
    (folder / "2" / ".lock").touch()
    proc = proc_with_lock(tmp_path, folder / "2", is_listed=True)
    monkeypatch.setattr(processes, "_PROC", proc)
    assert run("cluster", "up", 3, folder, "--port", free_ports()) == 1
    found = capsys.readouterr().err
    assert f"{folder} is in use: node 2 runs as a process of another user or container" in found
    assert "stop that `cluster up` as its user or in its container" in found
    assert "kill" not in found
    assert not list(folder.glob("*.properties"))


@pytest.mark.cluster
def test_three_nodes_start_with_one_command_and_restart(tmp_path: Path) -> None:
    port = free_ports()
    with up(tmp_path, port) as (_, brokers, _):
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic("orders", 2)])["orders"].result(PATIENCE_S)
    with up(tmp_path, port) as (_, brokers, _):
        found = AdminClient({"bootstrap.servers": brokers}).list_topics("orders", PATIENCE_S)
        assert set(found.brokers) == {1, 2, 3}
        partitions = found.topics["orders"].partitions.values()
        assert [sorted(partition.replicas) for partition in partitions] == [[1, 2, 3]] * 2


@pytest.mark.cluster
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_small_cluster_has_groups_and_transactions(tmp_path: Path, nodes: int) -> None:
    with up(tmp_path, free_ports(), nodes) as (_, brokers, _):
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": brokers, "transactional.id": "t"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("orders", b"value")
        producer.commit_transaction(PATIENCE_S)
        assert read_by_group(brokers, "readers", "orders", 1) == [b"value"]


@pytest.mark.kill
def test_a_killed_node_starts_again_and_the_others_continue(tmp_path: Path) -> None:
    with up(tmp_path, free_ports()) as (process, brokers, errors):
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(PATIENCE_S)
        for number, delay in enumerate((1, 2), 1):
            os.kill(node_process(process.pid, tmp_path / "2"), signal.SIGKILL)
            ended = f"node 2 ended (SIGKILL); it starts again in {delay} s\n"
            wait_for(errors, ended, 1)
            send(brokers)
            wait_for(errors, SERVES, number)
        eventually(lambda: sorted(isr_of(brokers, "orders")[0]) == [1, 2, 3])


def wait_for(file: Path, line: str, count: int) -> None:
    eventually(lambda: file.read_text().count(line) == count)


def node_process(parent: int, data: Path) -> int:
    """Return the id of the process that serves a data directory."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (found,) = (
        int(child)
        for child in children
        if os.fsencode(data) in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    )
    return found


def send(brokers: str) -> None:
    """Produce a record; two of three replicas acknowledge it."""
    producer = Producer({"bootstrap.servers": brokers})
    failed: list[object] = []
    producer.produce(
        "orders", b"value", on_delivery=lambda error, _: failed.append(error) if error else None
    )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []
