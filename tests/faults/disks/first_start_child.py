"""First starts that are killed after each operation on the disk, and second starts after them.

Usage: ``LD_PRELOAD=killed_at.so first_start_child.py SCENARIO FOLDER STEP``. Each start is in a
forked child. First starts are killed after operation 1, 1 + STEP, 1 + 2 STEP and so on, until one
ends before. The output is the number of kills.
"""

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from traceback import print_exc

from pykafka_core import Broker, Cluster
from pykafka_core.broker.cluster.places import Places
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.cli.errors import CliError
from pykafka_core.cli.files.format import format_node
from pykafka_core.types import id_text
from tests.support.processes.ports import free_ports

CLUSTER_ID = "2EmZYW-FRB2ZlZqcy_R5Fw"
TOPICS = ("orders", "payments")
SESSION_MS = 1000
"""A second start waits until the session of the first one has ended."""

Report = Callable[[str], object]
"""Receives the ids and topics that must exist from now on."""


def broker(data: Path, _: int, report: Report) -> None:
    with Broker(data) as started:
        _create_topics(started, report)


def formatting(data: Path, port: int, report: Report) -> None:
    """Only `format`, which must not do it twice."""
    with suppress(CliError):
        format_node(
            data,
            node_id=1,
            cluster_id=CLUSTER_ID,
            controllers=None,
            standalone=f"127.0.0.1:{port + 10_000}",
        )
    identity = DataDirectory(data).identity()
    assert identity is not None
    assert identity.directory_id is not None
    report(id_text(identity.directory_id))


def formatted(data: Path, port: int, report: Report) -> None:
    formatting(data, port, report)
    config = {
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 10_000}",
        "controller.listener.names": "CONTROLLER",
        "broker.session.timeout.ms": SESSION_MS,
    }
    with Broker(data, config=config) as started:
        _create_topics(started, report)


def places(data: Path, _: int, report: Report) -> None:
    """Only the format of a cluster."""
    Places(3, data).close()
    report("places")


def cluster(data: Path, _: int, report: Report) -> None:
    with Cluster(3, data=data) as started:
        assert len({node.cluster_id for node in started.brokers}) == 1
        _create_topics(started.brokers[0], report)


def _create_topics(started: Broker, report: Report) -> None:
    report(started.cluster_id)
    for topic in started.topics():
        report(topic)
    for topic in set(TOPICS) - set(started.topics()):
        started.create_topic(topic)
        report(topic)


Scenario = Callable[[Path, int, Report], None]
SCENARIOS = {
    scenario.__name__: scenario for scenario in (broker, formatting, formatted, places, cluster)
}


def run(start: Callable[[Report], None], kill_at: int) -> tuple[int, set[str]]:
    """Return the exit code of a child, and its reports.

    Args:
        start: Runs in the child.
        kill_at: The number of the operation on the disk after which the child is killed; 0 lets it
            end.
    """
    reports, reporting = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ctypes.CDLL(None).kill_at(kill_at)
            start(lambda what: os.write(reporting, f"{what}\n".encode()))
            code = 0
        except BaseException:
            print_exc()
        os._exit(code)
    os.close(reporting)
    with os.fdopen(reports) as lines:
        reported = set(lines.read().split())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), reported


def main(scenario: Scenario, data: Path, step: int) -> int:
    """Return the number of kills."""
    start = partial(scenario, data, free_ports())
    for kills in count():
        code, before = run(start, 1 + kills * step)
        if code == 0:
            return kills
        assert code == -signal.SIGKILL, f"start {kills} ended with {code}"
        code, after = run(start, 0)
        assert code == 0, f"the start after kill {kills} ended with {code}"
        assert before <= after, f"after kill {kills}: {before - after} are lost"
        shutil.rmtree(data)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    name, folder, step = sys.argv[1:]
    print("kills:", main(SCENARIOS[name], Path(folder) / "data", int(step)))
