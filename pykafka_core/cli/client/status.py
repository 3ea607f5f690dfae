"""``status``: one look at a cluster: its brokers, topics and groups, and whether anything is wrong with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_core.cli.errors import FAILED, CliError
from pykafka_core.cli.output import print_json, print_table

from .clients import admin, error_text
from .groups_admin import listed

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata

SHOWN_MAX = 20
"""So many partitions are named to people; JSON has all of them."""
_NOBODY = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A cluster as one broker describes it.

    Attributes:
        controller_id: None while there is none.
        brokers: ``HOST:PORT`` by id, of those that are alive.
        partitions_count: Of all topics, internal ones included.
        leaderless: ``TOPIC-PARTITION`` that nobody can read or write.
        under_replicated: Partitions that have a leader, and fewer replicas in sync than were assigned.
        groups: How many groups are in each state; None if they could not be listed.
        problems: What is wrong, a sentence each; a cluster without any is healthy.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: Mapping[int, str]
    topics_count: int
    partitions_count: int
    leaderless: Sequence[str]
    under_replicated: Sequence[str]
    groups: Mapping[str, int] | None
    problems: Sequence[str]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def status(bootstrap: str | None, *, as_json: bool) -> None:
    """Show the cluster.

    Raises:
        CliError: Nobody answers; or the cluster is not healthy, which is said after it was shown.
    """
    found = look(bootstrap)
    if as_json:
        print_json(_as_json(found))
    else:
        _show(found)
    if not found.healthy:
        raise CliError("not healthy: " + "\n  ".join(found.problems), exit_code=FAILED)


def look(bootstrap: str | None) -> Status:
    """Ask a broker.

    Raises:
        CliError: Nobody answers.
    """
    with admin(bootstrap, [], "cannot see the cluster") as (client, cluster):
        groups, groups_problem = _groups(client)
    return assess(cluster, groups, groups_problem)


def assess(
    cluster: "ClusterMetadata", groups: Mapping[str, int] | None, groups_problem: str | None
) -> Status:
    """Judge what a broker says; ``groups_problem`` is why groups could not be listed."""
    partitions = {
        f"{name}-{number}": partition
        for name, topic in sorted(cluster.topics.items())
        for number, partition in sorted(topic.partitions.items())
    }
    controller_id = cluster.controller_id if cluster.controller_id in cluster.brokers else None
    leaderless = [name for name, one in partitions.items() if one.leader == _NOBODY]
    short = [name for name, one in partitions.items() if _is_under_replicated(one)]
    problems = [
        "there is no controller: topics cannot be created or changed" * (controller_id is None),
        _counted(len(leaderless), "has no leader", "have no leader") * bool(leaderless),
        _counted(len(short), "is under-replicated", "are under-replicated") * bool(short),
        groups_problem or "",
    ]
    return Status(
        cluster_id=cluster.cluster_id,
        controller_id=controller_id,
        brokers={one.id: f"{one.host}:{one.port}" for one in cluster.brokers.values()},
        topics_count=len(cluster.topics),
        partitions_count=len(partitions),
        leaderless=leaderless,
        under_replicated=short,
        groups=groups,
        problems=[problem for problem in problems if problem],
    )


def _is_under_replicated(partition: "PartitionMetadata") -> bool:
    return partition.leader != _NOBODY and len(partition.isrs) < len(partition.replicas)


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {f'partition {one}' if count == 1 else f'partitions {several}'}"


def _groups(client: "AdminClient") -> tuple[Mapping[str, int] | None, str | None]:
    """How many groups are in each state, or why that is not known: the rest is worth showing without them."""
    from confluent_kafka import KafkaException

    try:
        return Counter(row["state"] for row in listed(client)), None
    except KafkaException as error:
        return None, f"groups cannot be listed: {error_text(error)}"
    except TimeoutError:
        return None, "groups cannot be listed: no answer in time"


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
        "leaderless": list(found.leaderless),
        "under_replicated": list(found.under_replicated),
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
        "leaderless": _named(found.leaderless),
        "under-replicated": _named(found.under_replicated),
        "groups": states or unknown,
        "this command": __version__,
    }
    print_table([{"what": name, "": value} for name, value in lines.items()], empty="")
    brokers = [
        {"broker": str(one), "address": address} for one, address in sorted(found.brokers.items())
    ]
    print_table(brokers, empty="no brokers")


def _named(partitions: Sequence[str]) -> str:
    more = len(partitions) - SHOWN_MAX
    return ", ".join(partitions[:SHOWN_MAX]) + f" and {more:,} more" * (more > 0) or "none"
