"""Startup checks of cluster nodes: problems in the settings or the directory that would prevent a
node from joining.

Without these checks such a node would retry until its startup timeout, without a reason in the
error.
"""

from collections.abc import Iterator

from pykafka_core.broker.start.startup_config import StartupConfig
from pykafka_core.errors import ClusterError
from pykafka_core.quorum.replica import VOTERS_MAX
from pykafka_core.quorum.values import VoterSet

_INTER_BROKER = "inter.broker.listener.name"
_CONTROLLERS = "controller.listener.names"
_VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"


def check_member(plan: StartupConfig) -> None:
    """Check that a node can join its cluster.

    Args:
        plan: The plan of the node.

    Raises:
        ClusterError: Lists all problems, with advice.
    """
    if problems := [*_listener_problems(plan), *_voter_problems(plan), *_partition_problems(plan)]:
        raise ClusterError(f"this node cannot join its cluster: {'; '.join(problems)}")


def _listener_problems(plan: StartupConfig) -> Iterator[str]:
    start = plan.settings.start
    names = [listener.name for listener in start.listeners]
    listed = ", ".join(names) or "none"
    wanted = (plan.settings.broker_value(_INTER_BROKER) or "").strip().upper()
    if start.is_broker and not names:
        yield "listeners contains no listener for brokers and clients: add one, such as PLAINTEXT://HOST:9092"
    elif start.is_broker and wanted and wanted not in names:
        yield f"{_INTER_BROKER} is {wanted}, and the listeners of brokers are {listed}: name one of them"
    if not start.is_controller and start.controller_listeners:
        given = ", ".join(listener.name for listener in start.controller_listeners)
        yield (
            f"process.roles is broker, and {given} in listeners is one of {_CONTROLLERS}: remove it from listeners, as "
            "this node is not a controller"
        )
    if start.is_controller and not start.controller_listeners:
        given = ", ".join(start.controller_names) or "nothing"
        yield (
            f"process.roles has controller, {_CONTROLLERS} is {given}, and listeners has none of that name: add "
            "one at the host and port with which this node is among the voters, such as CONTROLLER://HOST:9093"
        )


def _voter_problems(plan: StartupConfig) -> Iterator[str]:
    start, node_id = plan.settings.start, plan.identity.node_id
    ids = [voter.node_id for voter in start.voters]
    known = [voter.key.node_id for voter in plan.voters]
    if len(set(ids)) < len(ids):
        listed = ", ".join(map(str, ids))
        yield f"the voters of the metadata quorum are {listed}: name each controller once in {_VOTERS}"
    elif len(ids) > VOTERS_MAX:
        yield f"{_VOTERS} names {len(ids)} nodes: a quorum has at most {VOTERS_MAX} voters"
    elif start.is_controller and ids and node_id not in (*ids, *known):
        listed = ", ".join(map(str, ids))
        yield (
            f"node {node_id} is a controller, and the voters of the metadata quorum are {listed}: "
            f"name it in {_VOTERS} of every node, or set process.roles=broker"
        )
    elif not start.is_controller and node_id in ids:
        yield _is_voter(node_id)
    elif not (start.is_controller or ids or known or start.bootstrap_servers):
        yield f"nothing says where the controllers are: name some of them in {_BOOTSTRAP}"


def _partition_problems(plan: StartupConfig) -> Iterator[str]:
    """A node that is only a controller gets no topics: the core would treat all partitions as those
    of deleted topics.
    """
    if plan.settings.start.is_broker or plan.directory is None:
        return
    held = plan.directory.partitions()
    if held:
        yield (
            f"process.roles is controller, and {plan.directory.path} holds {len(held)} partitions of a broker, such as "
            f"{held[0]}: set process.roles=broker,controller and reassign them to other brokers first, or give this "
            "node another directory"
        )


def _is_voter(node_id: int) -> str:
    return (
        f"process.roles is broker, and node {node_id} is a voter of the metadata quorum: set "
        "process.roles=broker,controller, remove it from the voters first while it runs as a controller, or take "
        "another node.id and format its directory without voters"
    )


def check_broker_only(plan: StartupConfig, voters: VoterSet) -> None:
    """Check that a broker-only node is not a voter in its own log after the newest snapshot.

    Raises:
        ClusterError: The quorum would count on its vote, but it would not vote.
    """
    node_id = plan.identity.node_id
    if not plan.settings.start.is_controller and node_id in (key.node_id for key in voters.keys):
        raise ClusterError(f"this node cannot join its cluster: {_is_voter(node_id)}")
