"""Kafka Connect with two workers copies a file to a topic to a file; one is lost, but no line.

The file connectors promise each line at least once.
"""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.clients.streams.programs import Worker, running
from tests.support.brokers import Serve
from tests.support.patience import eventually

pytestmark = pytest.mark.jvm

LINES = 2000
BATCH = str(4 * LINES)
"""All lines, some twice: FileStreamSource delays lines after a whole batch until the file grows."""


def create(worker: Worker, name: str, **settings: str) -> None:
    path, body = f"/connectors/{name}/config", {"tasks.max": "1", **settings}
    worker.ask_until(path, lambda response: response["name"] == name, body)


def task_worker(worker: Worker, name: str) -> str:
    """Return the address of the worker that runs the only task of a connector."""

    def is_running(status: dict[str, list[dict[str, str]]]) -> bool:
        return [task["state"] for task in status["tasks"]] == ["RUNNING"]

    status = worker.ask_until(f"/connectors/{name}/status", is_running)
    return str(status["tasks"][0]["worker_id"])


def runs_at(worker: Worker, name: str) -> bool:
    return task_worker(worker, name) == worker.address


def append(file: Path, first: int) -> None:
    with file.open("a") as out:
        out.writelines(f"line {number}\n" for number in range(first, first + LINES))


def lines(file: Path) -> Counter[str]:
    return Counter(file.read_text().splitlines() if file.exists() else [])


def test_connect_loses_no_line_when_a_worker_is_killed(serve: Serve, tmp_path: Path) -> None:
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    append(source, 0)
    quick = {"group.initial.rebalance.delay.ms": 0}
    with serve(tmp_path / "data", durability="os", config=quick) as broker:
        workers = [
            Worker(tmp_path / "connect", f"w{n}", broker.bootstrap_servers) for n in range(2)
        ]
        with running(*workers):
            file_connector = "org.apache.kafka.connect.file.FileStream"
            create(
                workers[0], "source", topic="copied", file=str(source),
                **{"connector.class": f"{file_connector}SourceConnector", "batch.size": BATCH},
            )  # fmt: skip
            create(
                workers[0], "sink", topics="copied", file=str(sink),
                **{"connector.class": f"{file_connector}SinkConnector"},
            )  # fmt: skip
            eventually(lambda: len(lines(sink)) == LINES, "the first lines")
            lost = task_worker(workers[0], "source")
            [gone] = [worker for worker in workers if worker.address == lost]
            [left] = [worker for worker in workers if worker is not gone]
            append(source, LINES)
            gone.kill()
            append(source, 2 * LINES)
            eventually(lambda: len(lines(sink)) == 3 * LINES, "all lines")
            for name in ("source", "sink"):
                eventually(partial(runs_at, left, name), f"{name} at the worker that is left")
    assert lines(sink).keys() == lines(source).keys()
