"""``cluster status``: show nodes, the quorum and the health of partitions, once or repeatedly.

Metadata reports the live brokers, the leaders and the in-sync replicas. DescribeQuorum reports the
position of each voter. Brokers of Apache Kafka answer both in the same way. The nodes are all
brokers, voters and replicas; a node that only appears as a replica is down.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pykafka_core.cli.client import wire
from pykafka_core.cli.client.describe_quorum import SILENT_MS_MAX, Described, ask_quorum
from pykafka_core.cli.client.health import Observed, observe
from pykafka_core.cli.errors import FAILED, CliError
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.metadata.health import MEASURES, Health, named, problems
from pykafka_core.protocol.messages import DescribeQuorumResponse, MetadataResponse

if TYPE_CHECKING:
    from rich.console import RenderableType

WATCH_S = 1.0
_CANNOT = "cannot see the cluster"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One node.

    Attributes:
        address: ``HOST:PORT``; of its controller listener if it is only a controller. None for a
            broker that is not alive, and if brokers before Kafka 3.9 do not report a controller's.
        roles: ``broker`` and ``controller``; the leader of the quorum also has ``active``.
        leads: The number of partitions that it leads.
        replicas: The number of partitions of which it is a replica.
        out_of_sync: The number of these partitions in which it is not in sync.
        voter_lag: The number of metadata records that it has not synced yet; None if it is not a
            voter, or if the lag is unknown.
        voter_silent_ms: The time since its last Fetch of metadata; None if it is not a voter, or if
            the time is unknown.
    """

    node: int
    address: str | None
    rack: str | None
    roles: Sequence[str]
    leads: int
    replicas: int
    out_of_sync: int
    voter_lag: int | None
    voter_silent_ms: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterStatus:
    """The state of a cluster at one moment.

    Attributes:
        quorum_epoch: The leader epoch of the metadata quorum; None, as the offsets are, if no
            controller answers.
        health: The health of the partitions, and of the logs and directories of each node.
        problems: Every problem, as one sentence.
    """

    cluster_id: str | None
    controller: int | None
    quorum_epoch: int | None
    metadata_offset: int | None
    nodes: Sequence[Node]
    partitions: int
    health: Health
    problems: Sequence[str]


def status(bootstrap: str | None, *, as_json: bool, watch: bool) -> None:
    """Show the cluster once, or until Ctrl-C.

    Raises:
        CliError: No broker answers; or there is a problem, which the command has shown before. With
            ``watch`` the command continues in both cases.
    """
    if watch:
        _watch(bootstrap, as_json=as_json)
        return
    found = look(bootstrap)
    if as_json:
        print_json(_as_json(found))
    else:
        for title, rows in _tables(found):
            print_table(rows, title=title, empty="no nodes")
    if found.problems:
        raise CliError("not healthy: " + "\n  ".join(found.problems), exit_code=FAILED)


def look(bootstrap: str | None) -> ClusterStatus:
    """Return the state of the cluster, as a broker reports it.

    Raises:
        CliError: No broker answers.
    """
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        observed = observe(cluster)
        quorum = ask_quorum(cluster, observed.health)
    return assess(cluster.metadata, quorum, observed)


def assess(metadata: MetadataResponse, quorum: Described, observed: Observed) -> ClusterStatus:
    """Derive the state of the cluster from the responses."""
    described = quorum.partition
    nodes = _nodes(metadata, quorum)
    down = [str(node.node) for node in nodes if _is_down(node)]
    found = [
        quorum.problem,
        f"down: node {', '.join(down)}" if down else "",
        *problems(observed.health),
        *observed.unknown,
    ]
    return ClusterStatus(
        cluster_id=metadata.cluster_id,
        controller=None if described is None else described.leader_id,
        quorum_epoch=None if described is None else described.leader_epoch,
        metadata_offset=None if described is None else described.high_watermark,
        nodes=nodes,
        partitions=sum(len(topic.partitions) for topic in metadata.topics),
        health=observed.health,
        problems=[problem for problem in found if problem],
    )


def _is_down(node: Node) -> bool:
    """Return whether a broker is not alive, or a pure controller does not fetch metadata."""
    if "broker" in node.roles:
        return node.address is None
    return node.voter_silent_ms is not None and node.voter_silent_ms > SILENT_MS_MAX


def _address(node: Node) -> str:
    return node.address or ("DOWN" if _is_down(node) else "unknown")


def _nodes(metadata: MetadataResponse, described: Described) -> list[Node]:
    quorum = described.partition
    brokers = {broker.node_id: broker for broker in metadata.brokers}
    voters = {} if quorum is None else {one.replica_id: one for one in quorum.current_voters}
    all_partitions = [one for topic in metadata.topics for one in topic.partitions]
    replicas = {node for one in all_partitions for node in one.replica_nodes}
    last = max((voter.log_end_offset for voter in voters.values()), default=0)
    newest = max((voter.last_fetch_timestamp for voter in voters.values()), default=0)
    controllers = {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}"
        for node in described.nodes
        if node.listeners and node.node_id not in brokers and node.node_id not in replicas
    }
    nodes = []
    for node_id in sorted({*brokers, *voters, *replicas}):
        broker, voter = brokers.get(node_id), voters.get(node_id)
        own = [one for one in all_partitions if node_id in one.replica_nodes]
        roles = ["broker"] * (broker is not None or node_id in replicas)
        roles += ["controller"] * (voter is not None)
        roles += ["active"] * (quorum is not None and quorum.leader_id == node_id)
        knows = voter is not None and voter.log_end_offset >= 0
        nodes.append(
            Node(
                node=node_id,
                address=(
                    controllers.get(node_id) if broker is None else f"{broker.host}:{broker.port}"
                ),
                rack=None if broker is None else broker.rack,
                roles=roles,
                leads=sum(one.leader_id == node_id for one in own),
                replicas=len(own),
                out_of_sync=sum(node_id not in one.isr_nodes for one in own),
                voter_lag=last - voter.log_end_offset if voter is not None and knows else None,
                voter_silent_ms=None if voter is None else silent_ms(voter, newest),
            )
        )
    return nodes


def silent_ms(voter: DescribeQuorumResponse.ReplicaState, newest_ms: int) -> int | None:
    """Return the time between the newest Fetch of all voters and the last one of this voter.

    None if the leader has had no Fetch of this voter.
    """
    since = voter.last_fetch_timestamp
    return newest_ms - since if since >= 0 else None


def _as_json(found: ClusterStatus) -> dict[str, object]:
    said = asdict(found)
    health = said.pop("health")
    return {**said, **health}


def _tables(found: ClusterStatus) -> list[tuple[str, list[Mapping[str, object]]]]:
    quorum = "no controller answers"
    if found.controller is not None:
        quorum = (
            f"node {found.controller} leads in epoch {found.quorum_epoch}, committed up to "
            f"{found.metadata_offset:,}"
        )
    lines = {
        "cluster": found.cluster_id or "without an id",
        "state": "NOT HEALTHY" if found.problems else "healthy",
        "metadata quorum": quorum,
        "partitions": f"{found.partitions:,}",
        **{MEASURES[state].label: named(names) for state, names in found.health.items()},
    }
    rows = [{**asdict(node), "address": _address(node)} for node in found.nodes]
    if not any(node.rack for node in found.nodes):
        rows = [{name: value for name, value in row.items() if name != "rack"} for row in rows]
    return [("", [{"what": name, "": value} for name, value in lines.items()]), ("", [*rows])]


def _watch(bootstrap: str | None, *, as_json: bool) -> None:
    import time

    with suppress(KeyboardInterrupt):
        if as_json:
            while True:
                print_json(_as_json(look(bootstrap)))
                time.sleep(WATCH_S)
        from rich.live import Live

        with Live(_rendered(bootstrap), auto_refresh=False) as live:
            while True:
                time.sleep(WATCH_S)
                live.update(_rendered(bootstrap), refresh=True)


def _rendered(bootstrap: str | None) -> "RenderableType":
    """Return the tables, or the error text while no broker answers."""
    from rich.console import Group

    from pykafka_core.cli.output import table

    try:
        return Group(*(table(rows) for _, rows in _tables(look(bootstrap))))
    except CliError as error:
        return str(error)
