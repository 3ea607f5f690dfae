"""Run a scenario on a cluster of our nodes and Apache Kafka's, under load, and check the result.

``python -m tests.cluster.beside.run --scenario voter --seed 7``; a failing run prints this command
again. Without ``--scenario``, all scenarios run one after the other. ``--keep`` keeps the nodes'
directories and logs of a failed run.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaException

from tests.cluster.beside.agreement import disagreements
from tests.cluster.beside.mixed import mixed
from tests.cluster.beside.scenarios import SCENARIOS, Step
from tests.cluster.beside.stage import AmissError, Stage
from tests.faults.cluster.clusters import NotBackError
from tests.faults.cluster.workloads.append_list import AppendList
from tests.faults.cluster.workloads.queue import Queue
from tests.faults.cluster.workloads.transactions import Transactions
from tests.faults.cluster.workloads.workload import Workload
from tests.faults.history import Anomaly


class Numbered(AppendList):
    """One producer and its reader; a reader that starts again repeatedly would slow the nodes."""

    def clients(self) -> Sequence[Callable[[Random], None]]:
        first, _, follower, _ = super().clients()
        return [first, follower]


WORKLOADS: Mapping[str, Sequence[type[Workload]]] = defaultdict(
    lambda: (Numbered, Queue, Transactions), sample=(Numbered, Transactions)
)
"""The workloads of each scenario. A group that has to read to the end takes longer."""
SHOWN = 5


class Task(NamedTuple):
    """The parameters of one run.

    Attributes:
        steps: The number of first steps to run; all if not given.
    """

    scenario: str
    seed: int
    steps: int | None = None

    def command(self) -> str:
        words = f"python -m tests.cluster.beside.run --scenario {self.scenario} --seed {self.seed}"
        return words if self.steps is None else f"{words} --steps {self.steps}"


def run(task: Task, folder: Path) -> list[Anomaly]:
    """Start a cluster and execute the scenario's steps under load; return all anomalies."""
    scenario = SCENARIOS[task.scenario]
    with mixed(scenario.layout, folder, scenario.network) as nodes:
        choice = Random(f"{task.seed} {task.scenario}")
        workloads = [kind(nodes, task.seed) for kind in WORKLOADS[task.scenario]]
        stage = Stage(nodes, workloads, choice)
        found = _taken(stage, list(islice(scenario.steps(nodes, choice), task.steps)))
        for workload in workloads:
            workload.stop()
        found += [anomaly for workload in workloads for anomaly in _judged(workload)]
        return found or list(disagreements(stage, asks_tools=scenario.asks_tools))


def _taken(stage: Stage, steps: Sequence[Step]) -> list[Anomaly]:
    """Execute the steps one by one, up to the first after which the cluster does not recover."""
    name = "the start"
    try:
        stage.nodes.start_all()
        for workload in stage.workloads:
            workload.create()
        stage.whole()
        for workload in stage.workloads:
            workload.start()
        stage.going_on()
        for step in steps:
            name, begun = step.name, time.monotonic()
            step.act(stage)
            stage.whole()
            stage.going_on()
            print(f"  {name}: {time.monotonic() - begun:.1f} s; {_counts(stage)}", flush=True)
    except AmissError as error:
        return [error.anomaly._replace(detail=f"{name}: {error.anomaly.detail}")]
    except NotBackError as error:
        return [Anomaly("node did not come back", f"{name}: {error}")]
    return []


def _counts(stage: Stage) -> str:
    return ", ".join(f"{one.topic} {one.progress}/{one.seen_count}" for one in stage.workloads)


def _judged(workload: Workload) -> list[Anomaly]:
    try:
        return workload.judge()
    except KafkaException as error:
        return [*workload.anomalies, Anomaly("not readable", f"{workload.topic}: {error!r}")]


def report(task: Task, found: Sequence[Anomaly]) -> str:
    """Return the first anomalies and the command that repeats the run."""
    lines = [f"{anomaly.kind}: {anomaly.detail}" for anomaly in found[:SHOWN]]
    return "\n".join([f"{len(found)} anomalies", *lines, task.command()])


def main() -> None:
    options = _options()
    failed = 0
    for name in options.scenario.split(",") if options.scenario else SCENARIOS:
        task = Task(name, options.seed, options.steps)
        folder = Path(tempfile.mkdtemp(prefix=f"beside-{name}-{options.seed}-"))
        print(task.command(), folder, flush=True)
        begun = time.monotonic()
        found = run(task, folder)
        if found:
            failed += 1
            print(report(task, found), flush=True)
        else:
            print(f"  nothing amiss in {time.monotonic() - begun:.0f} s", flush=True)
        if not found or not options.keep:
            shutil.rmtree(folder)
    sys.exit(1 if failed else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="", help=f"some of {','.join(SCENARIOS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="the first so many of each scenario")
    parser.add_argument("--keep", action="store_true", help="leave what a failing run wrote")
    return parser.parse_args()


if __name__ == "__main__":
    main()
