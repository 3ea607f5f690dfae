"""``status``: a summary of a cluster: brokers, topics, groups, and its health."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykafka_core.cli.errors import FAILED, CliError
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    error_of,
)
from pykafka_core.metadata.health import MEASURES, Health, State, named, problems
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import (
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataResponse,
)

from . import wire
from .clients import TIMEOUT_S
from .describe_quorum import Described, ask_quorum
from .health import Observed, observe

LIST_GROUPS, LIST_GROUPS_VERSION = 16, 4
_CANNOT = "cannot see the cluster"
_CONSUMERS = frozenset({"consumer", ""})
"""Protocol types of consumer groups, including those that only commit offsets."""
_LOADING = frozenset({CoordinatorLoadInProgressError.code, CoordinatorNotAvailableError.code})
_RETRY_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A cluster as one broker describes it.

    Attributes:
        controller_id: The leader of the metadata quorum; None if no controller answers. In Metadata
            responses, any broker may be the controller, as in Kafka.
        brokers: ``HOST:PORT`` of the live brokers, by id.
        partitions_count: The number for all topics, including internal ones.
        health: The health of partitions, and of each node's logs and directories.
        groups: The number of groups in each state; None if they could not be listed.
        problems: The problems, one sentence each; a cluster without any is healthy.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: Mapping[int, str]
    topics_count: int
    partitions_count: int
    health: Health
    groups: Mapping[str, int] | None
    problems: Sequence[str]

    @property
    def healthy(self) -> bool:
        """Return whether there are no problems."""
        return not self.problems


def status(bootstrap: str | None, *, as_json: bool) -> None:
    """Show the cluster.

    Raises:
        CliError: No broker answers; or the cluster is not healthy, which is reported after it was
            shown.
    """
    found = look(bootstrap)
    if as_json:
        print_json(_as_json(found))
    else:
        _show(found)
    if not found.healthy:
        raise CliError("not healthy: " + "\n  ".join(found.problems), exit_code=FAILED)


def look(bootstrap: str | None) -> Status:
    """Ask a broker, and the others through it.

    Raises:
        CliError: No broker answers.
    """
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        groups, groups_problem = _groups(cluster)
        observed = observe(cluster)
        quorum = ask_quorum(cluster, observed.health)
    return assess(cluster.metadata, quorum, observed, groups, groups_problem)


def assess(
    metadata: MetadataResponse,
    quorum: Described,
    observed: Observed,
    groups: Mapping[str, int] | None,
    groups_problem: str | None,
) -> Status:
    """Derive the status; ``groups_problem`` is why groups could not be listed."""
    found = [
        quorum.problem,
        *problems(observed.health),
        *observed.unknown,
        groups_problem or "",
    ]
    return Status(
        cluster_id=metadata.cluster_id,
        controller_id=None if quorum.partition is None else quorum.partition.leader_id,
        brokers={one.node_id: f"{one.host}:{one.port}" for one in metadata.brokers},
        topics_count=len(metadata.topics),
        partitions_count=sum(len(topic.partitions) for topic in metadata.topics),
        health=observed.health,
        groups=groups,
        problems=[problem for problem in found if problem],
    )


def _groups(cluster: wire.Cluster) -> tuple[Mapping[str, int] | None, str | None]:
    """Return the number of groups in each state, or a problem: the rest is useful without them."""
    states: Counter[str] = Counter()
    try:
        for node_id in sorted(cluster.nodes):
            listed = _listed(cluster.node(node_id))
            states.update(one.group_state for one in listed if one.protocol_type in _CONSUMERS)
    except (CliError, OSError, ProtocolError) as error:
        return None, f"groups cannot be listed: {error}"
    return states, None


def _listed(broker: wire.Connection) -> Sequence[ListGroupsResponse.ListedGroup]:
    """Return the groups that a broker coordinates; waits until it has loaded them."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        response = broker.ask_newest(
            LIST_GROUPS, LIST_GROUPS_VERSION, ListGroupsRequest(), ListGroupsResponse
        )
        if response.error_code == 0:
            return response.groups
        if response.error_code not in _LOADING or time.monotonic() > deadline:
            raise CliError(error_of(response.error_code).text)
        time.sleep(_RETRY_S)


def _as_json(found: Status) -> dict[str, object]:
    from pykafka_core import __version__

    return {
        "healthy": found.healthy,
        "problems": list(found.problems),
        "cluster_id": found.cluster_id,
        "controller_id": found.controller_id,
        "brokers": [{"id": one, "address": at} for one, at in sorted(found.brokers.items())],
        "topics": found.topics_count,
        "partitions": found.partitions_count,
        "leaderless": found.health[State.OFFLINE],  # its name before there were other states
        **{str(state): names for state, names in found.health.items()},
        "groups": None if found.groups is None else dict(sorted(found.groups.items())),
        "command_version": __version__,
    }


def _show(found: Status) -> None:
    from pykafka_core import __version__

    states = ", ".join(
        f"{count:,} {state}" for state, count in sorted((found.groups or {}).items())
    )
    unknown = "unknown" if found.groups is None else "none"
    lines = {
        "cluster": found.cluster_id or "without an id",
        "state": "healthy" if found.healthy else "NOT HEALTHY",
        "controller": "none" if found.controller_id is None else found.controller_id,
        "topics": f"{found.topics_count:,} with {found.partitions_count:,} partitions",
        **{MEASURES[state].label: named(names) for state, names in found.health.items()},
        "groups": states or unknown,
        "this command": __version__,
    }
    print_table([{"what": name, "": value} for name, value in lines.items()], empty="")
    brokers = [
        {"broker": str(one), "address": address} for one, address in sorted(found.brokers.items())
    ]
    print_table(brokers, empty="no brokers")
