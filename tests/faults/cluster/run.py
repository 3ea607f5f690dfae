"""Run a plan of faults against a cluster under load, and check the resulting history.

``python -m tests.faults.cluster.run --on ours --seed 7 --steps 3``; a failing run prints this
command again. With ``--minutes``, seeds run one after the other. ``--keep`` keeps the nodes'
directories and logs. Disk faults need root.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaException

from tests.faults.cluster.checker import ClusterHistory, divergent_replicas
from tests.faults.cluster.clusters import KINDS, NODES, Cluster, Need, NotBackError, cluster
from tests.faults.cluster.disks import in_own_namespace
from tests.faults.cluster.scenarios import FAULTS, Step, carry_out, plan, wait_until_whole
from tests.faults.cluster.workloads.append_list import AppendList
from tests.faults.cluster.workloads.groups import Groups
from tests.faults.cluster.workloads.java_clients import JavaCopier, JavaList
from tests.faults.cluster.workloads.queue import Queue
from tests.faults.cluster.workloads.transactions import Transactions
from tests.faults.cluster.workloads.workload import Workload
from tests.faults.history import Anomaly
from tests.support.patience import PATIENCE_S

WORKLOADS: dict[str, type[Workload]] = {
    "list": AppendList,
    "queue": Queue,
    "transactions": Transactions,
    "groups": Groups,
    "java-list": JavaList,
    "java-copier": JavaCopier,
}
OF_LIBRDKAFKA = ("list", "queue", "transactions", "groups")
"""Default workloads; a JVM in addition would dominate the load."""
GOES_ON = 5
"""Records that a working workload must write, and read."""
SHOWN = 3


class Task(NamedTuple):
    """The parameters of one run.

    Attributes:
        on: Kind of cluster.
        faults: Names to choose from; all if empty.
        workloads: Names; `OF_LIBRDKAFKA` if empty.
    """

    on: str
    seed: int
    steps: int = 3
    faults: Sequence[str] = ()
    workloads: Sequence[str] = ()
    in_pairs: bool = False

    def command(self) -> str:
        words = f"python -m tests.faults.cluster.run --on {self.on} --seed {self.seed} --steps {self.steps}"
        for name, given in (("faults", self.faults), ("workloads", self.workloads)):
            words += f" --{name} {','.join(given)}" if given else ""
        return words + (" --pairs" if self.in_pairs else "")


def run(task: Task, folder: Path) -> list[Anomaly]:
    """Start a cluster and execute the plan under load; return all anomalies."""
    steps = plan(task.seed, task.steps, task.faults, in_pairs=task.in_pairs)
    needs = {need for step in steps for need in step.needs}
    with cluster(task.on, folder, needs) as nodes:
        nodes.start(*NODES)
        workloads = [WORKLOADS[name](nodes, task.seed) for name in task.workloads or OF_LIBRDKAFKA]
        found = _begun(nodes, workloads)
        found = found or _disturb(nodes, workloads, steps, Random(f"{task.seed} nodes"))
        for workload in workloads:
            workload.stop()
        found = found or _settled(nodes)
        found += [anomaly for workload in workloads for anomaly in _judged(workload)]
        if found:
            nodes.keep_disks()
        return found


def _begun(nodes: Cluster, workloads: Sequence[Workload]) -> list[Anomaly]:
    """Start clients once every node has their topics; a leader without them refuses requests."""
    for workload in workloads:
        workload.create()
    found = _whole(nodes, workloads)
    for workload in workloads:
        workload.start()
    return found


def _disturb(
    nodes: Cluster, workloads: Sequence[Workload], steps: Sequence[Step], choice: Random
) -> list[Anomaly]:
    """Execute the steps one by one; stop after the first without recovery."""
    topics = [workload.topic for workload in workloads]
    found = _going_on(workloads)
    for step in steps:
        if found:
            break
        begun = time.monotonic()
        try:
            met = carry_out(nodes, step, topics[0], choice)
        except NotBackError as error:
            return [Anomaly("node did not come back", f"{step}: {error}")]
        healed = time.monotonic()
        found = _whole(nodes, workloads)
        whole = time.monotonic()
        found = found or _going_on(workloads)
        found = [one._replace(detail=f"after {step} ({met}): {one.detail}") for one in found]
        took = (healed - begun, whole - healed, time.monotonic() - whole)
        print(
            f"  {step}: {met}; {took[0]:.1f} s, in sync in {took[1]:.1f} s, clients in {took[2]:.1f} s;"
            f" {_counts(workloads)}",
            flush=True,
        )
    return found


def _counts(workloads: Sequence[Workload]) -> str:
    return ", ".join(f"{one.topic} {one.progress}/{one.seen_count}" for one in workloads)


def _whole(nodes: Cluster, workloads: Sequence[Workload]) -> list[Anomaly]:
    """Check that all replicas are in sync, according to every node."""
    amiss = wait_until_whole(nodes, [workload.topic for workload in workloads], PATIENCE_S)
    return [Anomaly("not whole again", amiss)] if amiss else []


def _going_on(workloads: Sequence[Workload]) -> list[Anomaly]:
    """Check that every workload writes and reads."""
    before = [(workload.progress, workload.seen_count) for workload in workloads]
    deadline = time.monotonic() + PATIENCE_S
    for workload, (written, read) in zip(workloads, before, strict=True):
        while workload.progress < written + GOES_ON or workload.seen_count < read + GOES_ON:
            if time.monotonic() > deadline:
                detail = f"{workload.topic}: {workload.progress - written} writes, {workload.seen_count - read} reads"
                return [Anomaly("no progress", detail)]
            time.sleep(0.02)
    return []


def _settled(nodes: Cluster) -> list[Anomaly]:
    """Check that replicas become equal, also those of coordinators, once clients are idle."""
    found = wait_until_whole(nodes, None, PATIENCE_S)
    if found:
        return [Anomaly("not whole again", found)]
    deadline = time.monotonic() + PATIENCE_S
    while (differing := _differing(nodes)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return differing


def _differing(nodes: Cluster) -> list[Anomaly]:
    return list(divergent_replicas(ClusterHistory(replicas=nodes.replicas())))


def _judged(workload: Workload) -> list[Anomaly]:
    try:
        return workload.judge()
    except KafkaException as error:
        return [*workload.anomalies, Anomaly("not readable", f"{workload.topic}: {error!r}")]


def report(task: Task, found: Sequence[Anomaly]) -> str:
    """Return the anomalies by kind, the first ones in full, and the command to repeat the plan."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for anomaly in found:
        kinds[anomaly.kind].append(anomaly.detail)
    lines = [f"{len(details)} x {kind}" for kind, details in kinds.items()]
    lines += [f"  {kind}: {detail}" for kind in kinds for detail in kinds[kind][:SHOWN]]
    return "\n".join([*lines, task.command()])


def main() -> None:
    options = _options()
    # Handled like Ctrl-C: nodes end with the run.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if any(FAULTS[name].needs is Need.DISKS for name in _listed(options.faults) or FAULTS):
        in_own_namespace()
    deadline = time.monotonic() + 60 * options.minutes
    failed, seed = 0, options.seed
    while seed == options.seed or time.monotonic() < deadline:
        task = Task(
            options.on,
            seed,
            options.steps,
            _listed(options.faults),
            _listed(options.workloads),
            options.pairs,
        )
        failed += _in_child(task, options.keep)
        seed += 1
    print(f"{seed - options.seed} runs, {failed} with anomalies")
    sys.exit(1 if failed else 0)


def _in_child(task: Task, keep: bool) -> bool:
    """Run in a child, whose end frees the memory of millions of reads; return whether it failed."""
    child = get_context("fork").Process(target=_run_and_report, args=(task, keep))
    child.start()
    try:
        child.join()
    finally:
        child.terminate()
        child.join()
    return child.exitcode != 0


def _run_and_report(task: Task, keep: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{task.on}-{task.seed}-"))
    print(task.command(), folder, flush=True)
    found = run(task, folder)
    if found:
        print(report(task, found), flush=True)
    if not found or not keep:
        shutil.rmtree(folder)
    sys.exit(1 if found else 0)


def _listed(option: str) -> Sequence[str]:
    return option.split(",") if option else ()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=list(KINDS), default="ours")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--steps", type=int, default=3, help="of each seed's plan")
    parser.add_argument("--faults", default="", help=f"some of {','.join(FAULTS)}")
    parser.add_argument("--workloads", default="", help=f"some of {','.join(WORKLOADS)}")
    parser.add_argument("--pairs", action="store_true", help="two faults at a time")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on with further seeds")
    parser.add_argument("--keep", action="store_true", help="leave what a failing run wrote")
    return parser.parse_args()


if __name__ == "__main__":
    main()
