"""Compare this broker with Apache Kafka and librdkafka's mock: `python -m bench.peers --help`.

All brokers run at the same time, because idle ones cost almost nothing. Each workload runs on each
broker in turn, round after round, so that drift of the machine affects all equally. Medians are
printed, and the ratios of this broker to the others.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.peers import groups, transactions, work
from bench.peers.brokers import (
    ApacheKafka,
    Mock,
    Ours,
    Peer,
    compile_package,
    cpu_seconds,
    resident_bytes,
)

MB = 1 << 20
Work = Callable[[str, str], work.Figures]


def fetching(size: int) -> Work:
    """Fill a topic with 64 MB, which is not timed, then fetch it."""

    def run(bootstrap: str, topic: str) -> work.Figures:
        work.raw_produce(bootstrap, topic, MB, 64 * MB)
        return work.raw_fetch(bootstrap, topic, size, 2048 * MB)

    return run


def consuming(bootstrap: str, topic: str) -> work.Figures:
    """Fill a topic with 500,000 records of 100 bytes, then consume it."""
    work.confluent_produce(bootstrap, topic, 100, 500_000)
    return work.confluent_consume(bootstrap, topic, 500_000)


def java_producing(codec: str) -> Work:
    """Produce 2,000,000 records of 100 bytes to six partitions, in batches of up to 16 KiB."""
    return lambda bootstrap, topic: work.java_produce(
        bootstrap, topic, 100, 2_000_000, codec, partitions=6
    )


def java_consuming(bootstrap: str, topic: str) -> work.Figures:
    """Fill a topic with 2,000,000 records of 100 bytes, then consume it in a group."""
    work.java_produce(bootstrap, topic, 100, 2_000_000)
    return work.java_consume(bootstrap, topic, 2_000_000)


WORK: dict[str, tuple[Work, int]] = {
    "confluent produce 100 B": (
        lambda b, t: work.confluent_produce(b, t, 100, 1_000_000),
        1_000_000,
    ),
    "confluent produce 1 KB": (lambda b, t: work.confluent_produce(b, t, 1000, 300_000), 300_000),
    "java produce 100 B": (lambda b, t: work.java_produce(b, t, 100, 2_000_000), 2_000_000),
    "java produce 1 KB": (lambda b, t: work.java_produce(b, t, 1000, 400_000), 400_000),
    "java produce 100 B, 6 partitions": (java_producing("none"), 2_000_000),
    "java produce 100 B, 6 partitions, lz4": (java_producing("lz4"), 2_000_000),
    "raw produce 64 KiB": (lambda b, t: work.raw_produce(b, t, 65536, 512 * MB), 0),
    "raw produce 1 MB": (lambda b, t: work.raw_produce(b, t, MB, 512 * MB), 0),
    "one-record requests": (lambda b, t: work.one_record_requests(b, t, 50_000), 50_000),
    "raw fetch 1 MB": (fetching(MB), 0),
    "raw fetch 8 MB": (fetching(8 * MB), 0),
    "confluent consume": (consuming, 500_000),
    "java consume": (java_consuming, 2_000_000),
    "transactions": (lambda b, t: transactions.by_librdkafka(b, t, 1000), 0),
    "transactions by requests, version 1": (lambda b, t: transactions.by_requests(b, t, 1, 500), 0),
    "transactions by requests, version 2": (lambda b, t: transactions.by_requests(b, t, 2, 500), 0),
    "joining a group": (lambda b, t: groups.first_records(b, t, 10), 0),
    "ten members join a group": (lambda b, t: groups.stable(b, t, 10, 5), 0),
    "latency": (lambda b, t: work.latency(b, t, 2000), 0),
    "1,000 topics": (lambda b, t: work.many_topics(b, t, 1000), 0),
}
# It does not support CreateTopics, and keeps 5 MB of a partition.
NOT_FOR_THE_MOCK = {
    "1,000 topics",
    "latency",
    "java produce 100 B",
    "java produce 1 KB",
    "java produce 100 B, 6 partitions",
    "java produce 100 B, 6 partitions, lz4",
    "raw fetch 1 MB",
    "raw fetch 8 MB",
    "confluent consume",
    "java consume",
    "transactions",
    "transactions by requests, version 1",
    "transactions by requests, version 2",
    "joining a group",
    "ten members join a group",
}

AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
PEERS: dict[str, Callable[[Path], Peer]] = {
    "ours": lambda folder: Ours(folder, config=AT_ONCE),
    "kafka": lambda folder: ApacheKafka(folder, AT_ONCE),
    "mock": Mock,
    "fsync": lambda folder: Ours(folder, "fsync", config=AT_ONCE),
}
"""The first is compared with the others; Kafka's durability is `os`, so the last is comparable."""

Results = dict[str, dict[str, list[float]]]  # "work: figure" → peer → a value each round


def measure(peers: list[Peer], names: list[str], rounds: int) -> Results:
    """Run each work on each peer in turn."""
    results: Results = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for name in names:
            run, records = WORK[name]
            for peer in peers:
                if isinstance(peer, Mock) and name in NOT_FOR_THE_MOCK:
                    continue
                topic = f"{name.replace(' ', '-').replace(',', '')}-{number}-{time.time_ns()}"
                before = cpu_seconds(peer.pid)
                figures = run(peer.bootstrap, topic)
                spent = cpu_seconds(peer.pid) - before
                if records:
                    figures["broker CPU s per million records"] = spent * 1_000_000 / records
                for figure, value in figures.items():
                    results[f"{name}: {figure}"][peer.name].append(value)
            print(f"round {number + 1}/{rounds}: {name}", file=sys.stderr, flush=True)
    return results


def show(results: Results, peers: list[Peer]) -> None:
    """Print medians by peer, and the ratios of the first to the others."""
    names, ours = [peer.name for peer in peers], peers[0].name
    print(f"{'':58}" + "".join(f"{name:>20}" for name in names) + "   ours / others")
    for work_name, by_peer in results.items():
        middle = {name: statistics.median(by_peer[name]) for name in names if by_peer.get(name)}
        cells = "".join(f"{middle[n]:20.6g}" if n in middle else f"{'':20}" for n in names)
        ratios = [
            f"{middle[ours] / middle[n]:.2f}" for n in names[1:] if middle.get(n) and ours in middle
        ]
        print(f"{work_name:58}{cells}   {' '.join(ratios)}")


def main() -> None:
    """Run, print, and if requested save the raw figures with the commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="works whose name contains this")
    parser.add_argument("--without", nargs="+", default=[], choices=PEERS, help="leave these out")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    compile_package()
    names = [name for name in WORK if options.only in name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        peers: list[Peer] = []
        with ExitStack() as running:
            for name, make in PEERS.items():
                if name not in options.without:
                    peers.append(make(folder))
                    running.callback(peers[-1].stop)
            results = measure(peers, names, options.rounds)
            for peer in peers:
                results["start s"][peer.name] = [peer.start_seconds]
                results["resident MB at the end"][peer.name] = [resident_bytes(peer.pid) / MB]
        limits = work.machine(folder)
    show(results, peers)
    print("machine: " + ", ".join(f"{name} {value:.3g}" for name, value in limits.items()))
    if options.json:
        work.keep(options.json, results, limits)


if __name__ == "__main__":
    main()
