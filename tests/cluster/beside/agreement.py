"""Checks that both kinds of nodes agree, after all writes: on disk, in responses, in Kafka's tools.

All nodes must have the same: record batches of all partitions, byte for byte; the leader epochs of
their records; the state of producers; and the metadata log, where they have the same offsets, with
the same output of Kafka's metadata shell. Kafka's tools print the same for each node, and no
replica lags.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pykafka_core.protocol import messages as m
from tests.cluster.beside.mixed import Mixed
from tests.cluster.beside.stage import AmissError, Stage
from tests.faults.cluster.checker import ClusterHistory, divergent_replicas, split
from tests.faults.cluster.clusters import METADATA_LOG, NODES, PARTITION
from tests.faults.history import Anomaly
from tests.faults.raw import Keys
from tests.support.java import java
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

DUMP = "kafka.tools.DumpLogSegments"
TOOLS = "org.apache.kafka.tools"
LEADER = re.compile(
    r"^(ClusterId|LeaderId|LeaderEpoch|CurrentVoters|CurrentObservers):\s*(.*)$", re.M
)
ATTRIBUTES_END, CONTROL = 23, 0x20
"""End of a batch's attributes, and their bit for control batches."""
SHELL_PATHS = ("/image/topics/byName", "/image/cluster", "/image/features")
Check = Callable[[Mixed], Sequence[Anomaly]]


def disagreements(stage: Stage, *, asks_tools: bool) -> Iterator[Anomaly]:
    """Yield all differences between nodes, and all problems that a tool finds.

    Args:
        asks_tools: Whether to run Kafka's tools, each of which is a Java process, and to stop nodes
            at the end.
    """
    nodes = stage.nodes
    try:
        stage.whole()
    except AmissError as error:
        yield error.anomaly
        return
    checks: list[Check] = [
        divergent_logs,
        divergent_epochs,
        divergent_producers,
        divergent_metadata,
    ]
    for check in [*checks, quorums, topics, log_dirs, metadata] if asks_tools else checks:
        yield from settled(lambda check=check: check(nodes))  # type: ignore[misc]
    if asks_tools:
        yield from unsound_files(nodes)


def settled(check: Callable[[], Sequence[Anomaly]]) -> Sequence[Anomaly]:
    """Return the remaining anomalies after followers had time to fetch the last records."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := check()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def divergent_logs(nodes: Mixed) -> list[Anomaly]:
    """Compare the batches of all partitions, including those of coordinators."""
    return list(divergent_replicas(ClusterHistory(replicas=nodes.replicas())))


def divergent_epochs(nodes: Mixed) -> list[Anomaly]:
    """Compare the epochs of records according to ``leader-epoch-checkpoint``."""
    found = []
    for name in partition_names(nodes):
        each = {node: epochs(nodes.data(node) / name) for node in NODES}
        found += _unequal(f"leader epochs of {name}", each)
    return found


def partition_names(nodes: Mixed) -> list[str]:
    """Return the partition directories, without the quorum's."""
    every = {folder.name for node in NODES for folder in nodes.data(node).iterdir()}
    return sorted(name for name in every if PARTITION.fullmatch(name) and name != METADATA_LOG)


def epochs(folder: Path) -> list[tuple[int, int]]:
    """Return each epoch that has records, with its first offset.

    A leader writes its epoch when it starts to lead, and a follower when it gets a record of the
    epoch; so epochs without records are left out.
    """
    file = folder / "leader-epoch-checkpoint"
    lines = file.read_text().split("\n")[2:] if file.exists() else []
    noted = [(int(line.split()[0]), int(line.split()[1])) for line in lines if line]
    ends = [*(start for _, start in noted[1:]), _log_end(folder)]
    return [one for one, end in zip(noted, ends, strict=False) if one[1] < end]


def _log_end(folder: Path) -> int:
    batches = [batch for file in sorted(folder.glob("*.log")) for batch in split(file.read_bytes())]
    return _next_offset(batches[-1]) if batches else 0


def _next_offset(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big") + int.from_bytes(batch[23:27], "big") + 1


def divergent_producers(nodes: Mixed) -> list[Anomaly]:
    """Compare each replica's producers according to DescribeProducers."""
    found = []
    for name in partition_names(nodes):
        each = {node: producers(nodes.address(node), name) for node in NODES}
        found += _unequal(f"producers of {name}", each)
    return found


def producers(address: str, partition: str) -> list[tuple[int, ...]]:
    """Return by id: epoch, last sequence and timestamp, coordinator epoch, open transaction."""
    topic, _, index = partition.rpartition("-")
    of = m.DescribeProducersRequest
    request = of(topics=[of.TopicRequest(name=topic, partition_indexes=[int(index)])])
    with Connection(address) as connection:
        response = connection.ask(Keys.DESCRIBE_PRODUCERS, 0, request)
    row = response.topics[0].partitions[0]
    assert row.error_code == 0, row
    return sorted(
        (
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            one.current_txn_start_offset,
        )
        for one in row.active_producers
    )


def divergent_metadata(nodes: Mixed) -> list[Anomaly]:
    """Compare batches of the metadata log: at equal offsets, nodes must have equal bytes."""
    logs = {node: metadata_batches(nodes.data(node)) for node in nodes.layout.nodes}
    found = []
    for one, other in pairwise(logs):
        common = sorted(set(logs[one]) & set(logs[other]))
        if not common:
            found.append(
                Anomaly("divergent metadata", f"nodes {one} and {other}: nothing in common")
            )
        differing = [at for at in common if logs[one][at] != logs[other][at]]
        found += [
            Anomaly("divergent metadata", f"nodes {one} and {other} at {at}") for at in differing
        ]
    return found


def metadata_batches(data: Path) -> dict[int, bytes]:
    """Return the batches by base offset."""
    files = sorted((data / METADATA_LOG).glob("*.log"))
    batches = (batch for file in files for batch in split(file.read_bytes()))
    return {int.from_bytes(batch[:8], "big"): batch for batch in batches}


def quorums(nodes: Mixed) -> list[Anomaly]:
    """``kafka-metadata-quorum`` prints the same for each node, and no replica lags."""
    said = {}
    for node in brokers_of_each(nodes):
        printed = tool("MetadataQuorumCommand", nodes, node, "describe", "--status")
        said[node] = LEADER.findall(printed)
    found = _unequal("kafka-metadata-quorum", said)
    printed = tool("MetadataQuorumCommand", nodes, 1, "describe", "--replication")
    head, *rows = [line.split() for line in printed.splitlines() if line.strip()]
    lags = {row[0]: int(row[head.index("Lag")]) for row in rows}
    known = {int(node) for node in lags}
    if known != set(nodes.layout.nodes) or max(lags.values()) > 1:
        found.append(Anomaly("kafka-metadata-quorum", f"lags {lags}"))
    return found


def topics(nodes: Mixed) -> list[Anomaly]:
    """``kafka-topics --describe`` is the same for each kind, except settings, which may differ."""
    said = {
        node: sorted(
            line.partition("Configs:")[0]
            for line in tool("TopicCommand", nodes, node, "--describe").splitlines()
        )
        for node in brokers_of_each(nodes)
    }
    return _unequal("kafka-topics --describe", said)


def log_dirs(nodes: Mixed) -> list[Anomaly]:
    """``kafka-log-dirs --describe``: sizes are equal on all brokers, and no replica lags."""
    printed = tool("LogDirsCommand", nodes, 1, "--describe")
    response = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    sizes: dict[str, dict[int, Any]] = {}
    for broker in response["brokers"]:
        for folder in broker["logDirs"]:
            for row in folder["partitions"]:
                seen = (row["size"], row["offsetLag"], row["isFuture"], folder["error"])
                sizes.setdefault(row["partition"], {})[broker["broker"]] = seen
    found = [one for name, each in sizes.items() for one in _unequal(f"log dirs of {name}", each)]
    if set(sizes) != set(partition_names(nodes)):
        found.append(Anomaly("log dirs", f"{sorted(sizes)}"))
    return found


def metadata(nodes: Mixed) -> list[Anomaly]:
    """``MetadataShell`` prints the same for the metadata log of each kind."""
    found = []
    for path in SHELL_PATHS:
        said = {node: shell(nodes.data(node), path).splitlines() for node in one_of_each(nodes)}
        found += _unequal(f"MetadataShell {path}", said)
    return found


def shell(data: Path, path: str) -> str:
    """Return the output of Kafka's metadata shell for a path, from a copy of the metadata log."""
    batches = up_to_metadata(list(metadata_batches(data).items()))
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"{batches[0][0]:020}.log"
        copy.write_bytes(b"".join(batch for _, batch in batches))
        return java("org.apache.kafka.shell.MetadataShell", "--snapshot", str(copy), "tree", path)


def up_to_metadata(batches: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Remove the quorum's own batches at the end; after two of them the shell waits forever.

    They hold no metadata. Without writes, Kafka's controller adds such a record twice a second, and
    ours none.
    """
    last = max(place for place, (_, batch) in enumerate(batches) if not _is_control(batch))
    return batches[: last + 1]


def _is_control(batch: bytes) -> bool:
    return bool(batch[ATTRIBUTES_END - 1] & CONTROL)


def unsound_files(nodes: Mixed) -> Iterator[Anomaly]:
    """Run ``DumpLogSegments`` on the files of a stopped broker of each kind."""
    for node in sorted(brokers_of_each(nodes), key=lambda node: node in nodes.layout.voters):
        nodes.stop(node)
        logs = [
            str(file)
            for name in partition_names(nodes)
            for file in sorted((nodes.data(node) / name).glob("*.log"))
        ]
        printed = java(DUMP, "--deep-iteration", "--files", ",".join(logs))
        if "isvalid: false" in printed or "isvalid: true" not in printed:
            yield Anomaly("DumpLogSegments", f"node {node}: {printed[-500:]}")


def one_of_each(nodes: Mixed) -> tuple[int, int]:
    """Return a node of ours, and one of Apache Kafka's."""
    return min(nodes.layout.ours), max(set(NODES) - nodes.layout.ours)


def brokers_of_each(nodes: Mixed) -> list[int]:
    """Return a node of each kind that clients can query, so not one that is only a controller."""
    return [node for node in one_of_each(nodes) if node in NODES]


def tool(name: str, nodes: Mixed, node: int, *arguments: str) -> str:
    """Return the output of one of Kafka's tools that connects to one node."""
    return java(f"{TOOLS}.{name}", "--bootstrap-server", nodes.address(node), *arguments)


def _unequal(what: str, each: dict[int, Any]) -> list[Anomaly]:
    """Return an anomaly for each node whose value differs from the first one's."""
    (first, expected), *others = each.items()
    return [
        Anomaly(
            "disagreement",
            f"{what}: node {first} and node {node} say {_difference(expected, said)}",
        )
        for node, said in others
        if said != expected
    ]


def _difference(one: Any, other: Any) -> str:
    """Return the first difference of two lists, or both values if they are not lists."""
    if isinstance(one, list) and isinstance(other, list):
        parted = next(pair for pair in zip_longest(one, other) if pair[0] != pair[1])
        return "{!r} and {!r}".format(*parted)
    return f"{one!r} and {other!r}"
