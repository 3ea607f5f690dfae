"""What keeps a node of several from ever joining, as its settings and its directory tell before it asks anybody.

Without these checks such a node would ask the others until the time for its start is over, which says nothing of why.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pykafka_core.broker.start.plan import Plan
from pykafka_core.errors import ClusterError
from pykafka_core.types import id_text

if TYPE_CHECKING:
    from pykafka_core.broker.storage.voters import VoterNode

_INTER_BROKER = "inter.broker.listener.name"
_CONTROLLERS = "controller.listener.names"
_VOTERS = "controller.quorum.voters"


def check_member(plan: Plan, voters: "tuple[VoterNode, ...]") -> None:
    """Refuse a node that cannot become one of its cluster.

    Args:
        plan: What the node is to be.
        voters: Of the metadata quorum, as the directory or the settings have them.

    Raises:
        ClusterError: With everything that is wrong, and what to do.
    """
    if problems := [*_listener_problems(plan), *_voter_problems(plan, voters)]:
        raise ClusterError(f"this node cannot join its cluster: {'; '.join(problems)}")


def _listener_problems(plan: Plan) -> Iterator[str]:
    start = plan.settings.start
    names = [listener.name for listener in start.listeners]
    listed = ", ".join(names) or "none"
    wanted = (plan.settings.broker_value(_INTER_BROKER) or "").strip().upper()
    if not names:
        yield "listeners has none for brokers and clients: add one, such as PLAINTEXT://HOST:9092"
    elif wanted and wanted not in names:
        yield f"{_INTER_BROKER} is {wanted}, and the listeners of brokers are {listed}: name one of them"
    if start.is_controller and not start.controller_listeners:
        given = ", ".join(start.controller_names) or "nothing"
        yield (
            f"process.roles has controller, {_CONTROLLERS} is {given}, and listeners has none of that name: add "
            "one at the host and port with which this node is among the voters, such as CONTROLLER://HOST:9093"
        )


def _voter_problems(plan: Plan, voters: "tuple[VoterNode, ...]") -> Iterator[str]:
    node_id, directory_id, _ = own = _own(plan)
    ids = [voter.key.node_id for voter in voters]
    listed = ", ".join(map(str, ids)) or "none"
    if not voters or len(set(ids)) < len(ids):
        yield f"the voters of the metadata quorum are {listed}: name each controller once in {_VOTERS}"
    elif not plan.settings.start.is_controller and node_id in ids:
        yield (
            f"process.roles is broker, and node {node_id} is a voter of the metadata quorum: "
            "set process.roles=broker,controller, or take another node.id and format its directory without voters"
        )
    elif plan.settings.start.is_controller and own[:2] not in [
        tuple(voter.key) for voter in voters
    ]:
        other = next(
            (voter.key.directory_id for voter in voters if voter.key.node_id == node_id), None
        )
        if other is None:
            yield (
                f"process.roles has controller, and node {node_id} is none of the voters, which are {listed}: set "
                "process.roles=broker, as voters cannot be added yet"
            )
        else:
            yield (
                f"voter {node_id} has the directory {id_text(other)}, and this is {id_text(directory_id)}: bring back "
                "the directory of that id; if it is lost, this node comes back as a broker only (process.roles=broker)"
            )


def _own(plan: Plan) -> tuple[int, bytes, str]:
    return plan.identity.node_id, plan.identity.directory_id, plan.identity.cluster_id
