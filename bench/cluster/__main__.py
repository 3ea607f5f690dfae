"""Compare three nodes of ours with three of Apache Kafka: `python -m bench.cluster --help`.

Clusters run at the same time. Each work runs on each cluster in turn, round after round, so that
drift of the machine affects all equally. Medians are printed, and the ratios of ours to theirs. All
nodes, their clients and the other clusters share the machine's cores.
"""

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.cluster import failover, speed
from bench.cluster.clusters import Kafka, Nodes, Ours
from bench.peers import work
from bench.peers.brokers import compile_package

WORK: dict[str, Callable[[Nodes], work.Figures]] = {
    "confluent produce 100 B": lambda nodes: speed.produce(nodes, 100, 1_000_000),
    "confluent produce 1 KB": lambda nodes: speed.produce(nodes, 1000, 300_000),
    "acks=all latency": speed.latency,
    "catch up": speed.catch_up,
    "SIGTERM of a leader": failover.stop_leader,
    "SIGKILL of a leader": failover.kill_leader,
    "SIGKILL of the controller": failover.kill_controller,
    "SIGKILL of a leader that is the controller": failover.kill_both,
    "SIGSTOP of a leader": failover.pause_leader,
    "SIGKILL with 5,000 partitions": failover.kill_leader_of_many,
}
COLD = {"confluent produce 100 B", "confluent produce 1 KB"}
"""Also run once before the rounds: a JVM is faster once it has compiled the code."""
CLUSTERS: dict[str, Callable[[Path], Nodes]] = {
    "ours": lambda folder: Ours(folder, "os"),
    "kafka": Kafka,
    "fsync": lambda folder: Ours(folder, "fsync"),
}
"""The first is compared with the others; Kafka's durability is `os`, so the last is comparable."""

Results = dict[str, dict[str, list[float]]]  # "work: figure" → cluster → a value each round


def measure(clusters: list[Nodes], names: list[str], rounds: int) -> Results:
    """Run each work on each cluster in turn."""
    results: Results = defaultdict(lambda: defaultdict(list))

    def add(name: str, nodes: Nodes, figures: work.Figures) -> None:
        for figure, value in figures.items():
            results[f"{name}: {figure}"][nodes.name].append(value)
        print(f"{name}, {nodes.name}: {figures}", file=sys.stderr, flush=True)

    for nodes in clusters:
        add("from nothing", nodes, failover.from_nothing(nodes))
    for name in (name for name in names if name in COLD):
        for nodes in clusters:
            add(f"{name}, just started", nodes, WORK[name](nodes))
    for _ in range(rounds):
        for name in names:
            for nodes in clusters:
                add(name, nodes, WORK[name](nodes))
    for nodes in clusters:
        add("resident at the end", nodes, {"MB": nodes.resident_bytes() / speed.MB})
    return results


def show(results: Results, clusters: list[Nodes]) -> None:
    """Print medians by cluster, and the ratios of ours to the others."""
    names = [nodes.name for nodes in clusters]
    print(f"{'':84}" + "".join(f"{name:>20}" for name in names) + "   ours / others")
    for work_name, by_cluster in results.items():
        first, *others = (statistics.median(by_cluster[name]) for name in names)
        cells = "".join(f"{value:20.6g}" for value in (first, *others))
        print(f"{work_name:84}{cells}   {' '.join(f'{first / other:.2f}' for other in others)}")


def main() -> None:
    """Run, print, and if requested save the raw figures with the commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="works whose name contains this")
    parser.add_argument("--without", nargs="+", default=[], choices=CLUSTERS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    compile_package()
    names = [name for name in WORK if options.only in name]
    with tempfile.TemporaryDirectory() as made, ExitStack() as running:
        clusters: list[Nodes] = []
        for name, make in CLUSTERS.items():
            if name not in options.without:
                clusters.append(make(Path(made)))
                running.callback(clusters[-1].close)
        results = measure(clusters, names, options.rounds)
        limits = work.machine(Path(made))
    show(results, clusters)
    print("machine: " + ", ".join(f"{name} {value:.3g}" for name, value in limits.items()))
    if options.json:
        work.keep(options.json, results, limits)


if __name__ == "__main__":
    main()
