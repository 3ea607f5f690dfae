"""Histories of copied and compacted partitions on a cluster of our nodes and Apache Kafka's.

``python -m tests.cluster.copies.run --histories 2000 --moves 20 --seed 7``. Each partition of a
round is a history: records, tombstones and deleted records between reassignments, elections, wiped
disks, stops and kills. After each round all partitions take records, are read from the log start
offset, and are compared on the disks of all replicas. Each move puts the partitions of the internal
topics on other replicas and restarts all nodes. The files of a run with an anomaly are kept.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from tests.cluster.beside.mixed import LAYOUTS, Mixed, mixed
from tests.cluster.beside.stage import AmissError
from tests.cluster.copies.events import EVENTS, stop_all, wait_until_in_sync, wait_until_stored
from tests.cluster.copies.histories import (
    History,
    compacted_copies,
    create,
    delete,
    delete_records,
    misread,
    misstored,
    write,
)
from tests.cluster.copies.internal import OFFSETS, TRANSACTIONS, Coordinators, internal_partitions
from tests.faults.cluster.administration import reassign_each
from tests.faults.cluster.clusters import NODES, NotBackError
from tests.faults.history import Anomaly

SETTINGS = {
    "log.cleaner.backoff.ms": 50,
    "log.initial.task.delay.ms": 0,
    "log.flush.start.offset.checkpoint.interval.ms": 100,
}
MOVED_TOPIC, MOVED_PARTITIONS = "moved", 6
SHOWN = 5


def rounds(nodes: Mixed, options: argparse.Namespace) -> Iterator[Anomaly]:
    """Run rounds, each with a history per partition, until one of them finds an anomaly."""
    for number, begun in enumerate(range(0, options.histories, options.partitions)):
        started = time.monotonic()
        choice = Random(f"{options.seed} {number}")
        count = min(options.partitions, options.histories - begun)
        made = create(nodes.bootstrap, f"copies-{number}", count, choice)
        found = _histories(nodes, made, options.steps, choice)
        print(
            f"  round {number}: {count} histories, {time.monotonic() - started:.0f} s", flush=True
        )
        if found:
            yield from found
            return
        delete(nodes.bootstrap, made[0].topic)


def _histories(
    nodes: Mixed, histories: Sequence[History], steps: int, choice: Random
) -> list[Anomaly]:
    wait_until_in_sync(nodes, histories)
    for _ in range(steps):
        if refused := write(nodes.bootstrap, histories):
            return refused
        delete_records(nodes.bootstrap, histories)
        wait_until_stored(nodes, histories)
        name = choice.choice(sorted(EVENTS))
        print(f"    {name}", flush=True)
        EVENTS[name](nodes, histories, choice)
        wait_until_in_sync(nodes, histories)
        if wrong := misread(nodes.bootstrap, histories):
            return [one._replace(detail=f"after {name}: {one.detail}") for one in wrong]
    if refused := write(nodes.bootstrap, histories):
        return refused
    wait_until_in_sync(nodes, histories)
    return misread(nodes.bootstrap, histories) or _stopped(nodes, histories)


def _stopped(nodes: Mixed, histories: Sequence[History]) -> list[Anomaly]:
    """Stop all nodes, compare their disks, and start them again."""
    stop_all(nodes)
    data = {node: nodes.data(node) for node in NODES}
    wrong = misstored(data, histories)
    copies = sum(len(one.replicas) for one in histories)
    print(f"    {compacted_copies(data, histories)} of {copies} replicas have gaps", flush=True)
    nodes.start(*NODES)
    wait_until_in_sync(nodes, histories)
    return wrong or misread(nodes.bootstrap, histories)


def moves(nodes: Mixed, seed: int, count: int) -> Iterator[Anomaly]:
    """Move the internal topics several times, each time with a restart of all nodes."""
    choice = Random(f"{seed} moves")
    create(nodes.bootstrap, MOVED_TOPIC, MOVED_PARTITIONS, choice)
    coordinators = Coordinators(nodes.bootstrap, MOVED_TOPIC, MOVED_PARTITIONS)
    yield from coordinators.work(choice, commits=1)
    coordinators.compact()
    topics = [internal_partitions(choice, topic) for topic in (OFFSETS, TRANSACTIONS)]
    for number in range(count):
        started = time.monotonic()
        found = coordinators.work(choice) or _move(nodes, topics) or coordinators.lost()
        print(f"  move {number}: {time.monotonic() - started:.0f} s", flush=True)
        if found:
            yield from found
            return
    yield from coordinators.work(choice)


def _move(nodes: Mixed, topics: Sequence[Sequence[History]]) -> list[Anomaly]:
    for partitions in topics:
        for one in partitions:
            one.replicas = one.some_replicas()
        reassign_each(nodes, {one.name: one.replicas for one in partitions})
    for partitions in topics:
        wait_until_in_sync(nodes, partitions)
    stop_all(nodes)
    nodes.start(*NODES)
    for partitions in topics:
        wait_until_in_sync(nodes, partitions)
    return []


def run(options: argparse.Namespace, folder: Path) -> list[Anomaly]:
    """Run all rounds and moves on one cluster; return all anomalies."""
    with mixed(options.layout, folder, settings=SETTINGS) as nodes:
        try:
            nodes.start_all()
            found = list(rounds(nodes, options))
            return found or list(moves(nodes, options.seed, options.moves))
        except AmissError as error:
            return [error.anomaly]
        except NotBackError as error:
            return [Anomaly("node did not come back", str(error))]


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the arguments of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layout", default="brokers", choices=sorted(LAYOUTS))
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=100, help="histories of a round")
    parser.add_argument("--steps", type=int, default=6, help="events of each history")
    parser.add_argument("--moves", type=int, default=20, help="of the internal topics")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main() -> None:
    chosen = options()
    folder = Path(tempfile.mkdtemp(prefix=f"copies-{chosen.seed}-"))
    print(chosen, folder, flush=True)
    found = run(chosen, folder)
    for anomaly in found[:SHOWN]:
        print(f"{anomaly.kind}: {anomaly.detail}", flush=True)
    print(f"{len(found)} anomalies", flush=True)
    if found:
        print(f"the files and logs of the nodes: {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
