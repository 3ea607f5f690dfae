"""Probe this broker and Apache Kafka under the same loads: ``python -m bench.fairness --help``.

Both brokers run at the same time. Each scenario runs on both in turn, round after round, after one
round of warm-up. The medians of the rounds' p50 and p99, the maximum of all rounds, and the ratio
of the p99 are printed. A probe is repeated if the host of a virtual machine took too much CPU time
from it.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from bench.client import Connection, check_produced, produce
from bench.data import batch
from bench.peers.brokers import ApacheKafka, Ours, Peer, cpu_seconds

from . import probes
from .disk import Disk
from .groups import PART_TOPICS, part_topic
from .loads import alter_missing
from .scenarios import SCENARIOS, Scenario

OURS, BASE, KAFKA = "ours", "base", "kafka"
BASE_FOLDER = "PYKAFKA_BASE"
"""The environment variable with a folder that has another ``pykafka_core``, to compare with."""
MAKERS: dict[str, Callable[[Path, Disk], Peer]] = {
    OURS: lambda folder, disk: Ours(folder, environment=disk.environment),
    BASE: lambda folder, disk: Ours(folder / BASE, environment={**disk.environment, **of_base()}),
    KAFKA: lambda folder, disk: ApacheKafka(folder, environment=disk.environment),
}
EXIT = "100 closed connections, then SIGTERM"
PATIENCE_S = 300
STALL_PATIENCE_S = 60
WIDE_TOPICS, WIDE_PARTITIONS = 9, 1000
STOLEN_PERCENT_MAX, ATTEMPTS = 5, 10
"""The host of a virtual machine may take CPU time from it; such a probe does not show the behaviour
of the brokers and is repeated."""

Result = dict[str, Any]
"""One probe of one scenario on one broker in one round."""


def of_base() -> Mapping[str, str]:
    """Return the variables with which a broker imports the other package."""
    return {"PYTHONPATH": os.environ[BASE_FOLDER], "PYTHONSAFEPATH": "1"}


class Stand(NamedTuple):
    """A broker and its disk."""

    name: str
    peer: Peer
    disk: Disk
    admin: AdminClient

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic whose files are deleted together with it."""
        new = NewTopic(topic, partitions, 1, config={"file.delete.delay.ms": "0"})
        self.admin.create_topics([new], operation_timeout=60)[topic].result(60)

    def create_open(self, topic: str, partitions: int) -> None:
        """Create a topic, and write a record to each partition; Apache Kafka rejects the first
        ones.
        """
        self.create(topic, partitions)
        with Connection(self.peer.bootstrap) as connection:
            for partition in range(partitions):
                write_one(connection, topic, partition)

    def create_many(self, topics: list[str]) -> None:
        """Create topics with one partition each."""
        new = [NewTopic(topic, 1, 1) for topic in topics]
        for created in self.admin.create_topics(new, operation_timeout=PATIENCE_S).values():
            created.result(PATIENCE_S)

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until the broker is idle."""
        deleted = self.admin.delete_topics([topic], request_timeout=PATIENCE_S)
        deleted[topic].result(PATIENCE_S)
        deadline, spent = time.monotonic() + PATIENCE_S, -1.0
        while time.monotonic() < deadline and cpu_seconds(self.peer.pid) - spent > 0.02:
            spent = cpu_seconds(self.peer.pid)
            time.sleep(0.2)


def write_one(connection: Connection, topic: str, partition: int) -> None:
    """Write a record. Apache Kafka may take minutes to open a partition after 9,000 others."""
    one = produce(topic, partition, batch(100, 100)[0])
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            check_produced(connection.exchange(one))
            return
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def running(name: str, folder: Path) -> Iterator[Stand]:
    """Start a broker with the probes' topic."""
    disk = Disk(folder / f"{name}-disk")
    peer = MAKERS[name](folder, disk)
    quiet = {"bootstrap.servers": peer.bootstrap, "log_level": 0}
    try:
        stand = Stand(name, peer, disk, AdminClient(quiet))
        stand.create_open(probes.TOPIC, 1)
        yield stand
    finally:
        peer.stop()


@contextmanager
def loaded(stand: Stand, scenario: Scenario, topic: str) -> Iterator[dict[str, int]]:
    """Run the load in a separate process; the dictionary has its totals after the block."""
    done: dict[str, int] = {}
    command = [sys.executable, "-m", "bench.fairness.loads", stand.peer.bootstrap]
    process = subprocess.Popen(
        [*command, scenario.load, str(scenario.connections), topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "sending\n"
        yield done
        said, _ = process.communicate()
        done.update(json.loads(said))
    finally:
        process.kill()
        process.communicate()


def wait_stalled(stand: Stand) -> None:
    """Return once one of the load's writes stalls; raise an error if none does."""
    deadline = time.monotonic() + STALL_PATIENCE_S
    while not stand.disk.stalled():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no write of {stand.name} stalled: is its disk the preloaded one?")
        time.sleep(0.001)


def scheduled_ns(pid: int) -> tuple[int, int]:
    """Return how long the threads of a process ran, and how long they waited for a core (Linux)."""
    ran = waited = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread may have ended
            fields = path.read_text().split()
            ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return ran, waited


def stolen_seconds() -> float:
    """Return the CPU time that the host has taken from this virtual machine, in seconds of one core
    (Linux).
    """
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def measure_undisturbed(stand: Stand, scenario: Scenario, seconds: float) -> list[Result]:
    """Call `measure`; repeat it while the host takes too much CPU time."""
    for _ in range(ATTEMPTS):
        measured = measure(stand, scenario, seconds)
        stolen = measured[0]["stolen_percent"]
        if stolen <= STOLEN_PERCENT_MAX:
            break
        progress(f"{stand.name}: the host took {stolen:.0f} % of the cores")
    return measured


def measure(stand: Stand, scenario: Scenario, seconds: float) -> list[Result]:
    """Return the results of the probes under the load, which has its own topic."""
    topic = f"load-{time.time_ns()}"
    stand.create_open(topic, scenario.connections)
    before, load = scheduled_ns(stand.peer.pid), os.getloadavg()[0]
    with ExitStack() as stack:
        asked = stack.enter_context(probes.opened(stand.peer.bootstrap, scenario.probes))
        stack.enter_context(
            stand.disk.slow(scenario.disk_ms) if scenario.disk_ms else nullcontext()
        )
        if scenario.stall_ms:
            stand.disk.stall(f"{topic}-0/{0:020}.log", scenario.stall_ms)
        done = stack.enter_context(loaded(stand, scenario, topic)) if scenario.load else {}
        if scenario.stall_ms:
            wait_stalled(stand)
        begun, stolen = time.monotonic(), stolen_seconds()
        responses = probes.ask_all(asked, seconds)
        stolen = (stolen_seconds() - stolen) / (time.monotonic() - begun) / (os.cpu_count() or 1)
    ran, waited = (
        now - then for now, then in zip(scheduled_ns(stand.peer.pid), before, strict=True)
    )
    stand.delete(topic)
    about = {
        "load_average": load,
        "stolen_percent": 100 * stolen,
        "without_core_percent": 100 * waited / max(1, ran + waited),
        "cpu_seconds": ran / 1e9,
        "load": done,
    }
    return [
        {"scenario": scenario.name, "probe": probe, "peer": stand.name} | response | about
        for probe, response in responses.items()
    ]


def prepare(stands: list[Stand], scenario: Scenario) -> None:
    """Create the topics that only this scenario and later ones need."""
    for stand in stands:
        if scenario.wide:
            for number in range(WIDE_TOPICS):
                stand.create(f"wide-{number}", WIDE_PARTITIONS)
            progress(f"{stand.name}: {WIDE_TOPICS * WIDE_PARTITIONS} partitions created")
        if scenario.parts:
            stand.create_many([part_topic(number) for number in range(PART_TOPICS)])


def exit_seconds(name: str, folder: Path) -> float:
    """Return the time from SIGTERM to the end of a broker with requests of 100 closed
    connections.
    """
    request = alter_missing(10_000)
    peer = MAKERS[name](folder, Disk(folder / "disk"))
    host, _, port = peer.bootstrap.rpartition(":")
    with ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(socket.create_connection((host, int(port))))
            client.settimeout(0.1)
            with suppress(TimeoutError):  # only as much as fits into the buffers is sent
                client.sendall(request * 5)
    begun = time.monotonic()
    peer.stop()
    return time.monotonic() - begun


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def in_turn(names: list[str], number: int) -> list[str]:
    """Return the brokers in the order of a round; the first one alternates."""
    return names if number % 2 else names[::-1]


def measure_all(
    folder: Path, names: list[str], scenarios: list[Scenario], rounds: int, seconds: float
) -> Iterator[list[Result]]:
    """Run each scenario on each broker in turn; round 0 is for warm-up."""
    with ExitStack() as stack:
        stands = {name: stack.enter_context(running(name, folder)) for name in names}
        for scenario in scenarios:
            asked = [name for name in names if name != KAFKA or not scenario.ours_alone]
            prepare([stands[name] for name in asked], scenario)
            results: list[Result] = []
            for number in range(rounds + 1):
                for name in in_turn(asked, number):
                    measured = measure_undisturbed(stands[name], scenario, seconds)
                    results += [row | {"round": number} for row in measured if number]
            yield results


def measure_exits(folder: Path, names: list[str], rounds: int) -> list[Result]:
    """Return the times to exit; each round starts new brokers."""
    results = []
    for number in range(1, rounds + 1):
        for name in in_turn(names, number):
            ms = exit_seconds(name, folder / f"exit-{name}-{number}") * 1e3
            row = {"scenario": EXIT, "probe": "exit", "peer": name, "round": number}
            results.append(row | {"p50_ms": ms, "p99_ms": ms, "max_ms": ms})
    return results


def show_heads(names: list[str]) -> None:
    """Print the headings of the columns."""
    heads = "".join(f"{f'{name}: p50, p99, max ms':>30}{'load kB/s':>11}" for name in names)
    print(f"{'':68}{heads}   p99 ours / last", flush=True)


def kilobytes_per_second(row: Result) -> float:
    """Return the rate of the load; 0 without a load."""
    done = row.get("load")
    return done["bytes"] / done["seconds"] / 1e3 if done else 0.0


def show(results: list[Result]) -> None:
    """Print a line for each probe of one scenario."""
    names = [name for name in MAKERS if any(row["peer"] == name for row in results)]
    for probe in dict.fromkeys(row["probe"] for row in results):
        rows = [row for row in results if row["probe"] == probe]
        by_peer = {name: [row for row in rows if row["peer"] == name] for name in names}
        p99 = {name: statistics.median(row["p99_ms"] for row in of) for name, of in by_peer.items()}
        cells = "".join(
            f"{statistics.median(row['p50_ms'] for row in of):10.2f}{p99[name]:10.2f}"
            f"{max(row['max_ms'] for row in of):10.1f}"
            f"{statistics.median(kilobytes_per_second(row) for row in of):11.1f}"
            for name, of in by_peer.items()
        )
        ratio = f"{p99[OURS] / p99[names[-1]]:9.2f}" if len(names) > 1 else ""
        print(f"{rows[0]['scenario']:50}{probe:18}{cells}{ratio}", flush=True)


def main() -> None:
    """Run, print, and save the raw figures with the commit if requested."""
    parser = argparse.ArgumentParser("python -m bench.fairness", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of a probe in a round")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="scenarios whose name contains one of these"
    )
    parser.add_argument("--without", nargs="+", default=[], choices=[KAFKA], help="leave it out")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = [name for name in MAKERS if name not in options.without]
    if BASE_FOLDER not in os.environ:
        names.remove(BASE)

    def is_chosen(scenario: str) -> bool:
        return any(part in scenario for part in options.only)

    scenarios = [scenario for scenario in SCENARIOS if is_chosen(scenario.name)]
    results: list[Result] = []
    show_heads(names)
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        if options.json:
            stack.callback(keep, options.json, results)
        folder = Path(made)
        if scenarios:
            for rows in measure_all(folder, names, scenarios, options.rounds, options.seconds):
                show(rows)
                results += rows
        if is_chosen(EXIT):
            rows = measure_exits(folder, names, options.rounds)
            show(rows)
            results += rows


def keep(path: Path, results: list[Result]) -> None:
    """Write the raw figures with the commit, even if the run was interrupted."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    raw = {"commit": commit.stdout.strip(), "command": sys.argv, "results": results}
    path.write_text(json.dumps(raw, indent=1))


if __name__ == "__main__":
    main()
