"""The report of a failed test: the broker's topics, groups with members and lag, and errors of
clients.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pykafka_core.cli.client.clients import error_text
from pykafka_core.cli.client.groups_admin import (
    Group,
    Partition,
    described,
    lags,
    listed,
    offsets,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

RESPONSE_S = 5.0
SHOWN_MAX = 20
"""Maximum number of topics, groups, members and partitions in the report; most tests have few."""


def report(bootstrap_servers: str, errors: Iterable[str]) -> str:
    """Return the report as text. It also describes a broker that does not respond."""
    lines = [f"broker {bootstrap_servers}"]
    try:
        lines.extend(_state(bootstrap_servers))
    except Exception as error:  # the test's own failure must still be shown
        lines.append(f"  no more is known: {error_text(error)}")
    lines.extend(f"last error of {one}" for one in errors)
    return "\n".join(lines)


def _state(bootstrap_servers: str) -> Iterator[str]:
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    cluster = client.list_topics(timeout=RESPONSE_S)
    yield from _topics(client, cluster)
    groups = listed(client)
    if not groups:
        yield "no groups"
    for row in groups[:SHOWN_MAX]:
        yield from _group(client, cluster, described(client, cluster, row["group"]))


def _topics(client: "AdminClient", cluster: "ClusterMetadata") -> Iterator[str]:
    from confluent_kafka.admin import OffsetSpec

    names = [name for name in sorted(cluster.topics) if not name.startswith("__")][:SHOWN_MAX]
    there = [Partition(name, p) for name in names for p in cluster.topics[name].partitions]
    ends = offsets(client, there, OffsetSpec.latest())
    for name in names:
        shown = [f"{one.partition}: {end}" for one, end in ends.items() if one.topic == name]
        yield f"topic {name}: high watermarks {', '.join(shown[:SHOWN_MAX])}"


def _group(client: "AdminClient", cluster: "ClusterMetadata", group: Group) -> Iterator[str]:
    yield f"group {group.group}: {group.state}, {len(group.members)} members"
    for member in group.members[:SHOWN_MAX]:
        has = ", ".join(f"{one.topic}-{one.partition}" for one in member.assignment[:SHOWN_MAX])
        yield f"  {member} ({member.member_id}) has {has or 'no partition'}"
    for one in lags(client, cluster, group)[:SHOWN_MAX]:
        where = f"{one.partition.topic}-{one.partition.partition}"
        current = "nothing" if one.current_offset is None else one.current_offset
        yield f"  {where}: committed {current} of {one.high_watermark}, lag {one.lag}"
