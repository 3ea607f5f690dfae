"""``groups``: list, describe and delete consumer groups, show their members and lag, and reset
their offsets.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pykafka_core.cli.errors import CliError
from pykafka_core.cli.options import Bootstrap, Json, Yes, not_empty
from pykafka_core.cli.output import confirm, print_json, print_table

from . import wire
from .clients import TIMEOUT_S, admin, kafka_errors, result
from .coordinators import GROUPS, check_all_respond
from .groups_admin import (
    Group,
    Lag,
    Member,
    Partition,
    check_exists,
    check_has_no_members,
    described,
    lags,
    listed,
    settled,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

app = typer.Typer(
    help="List, describe and delete consumer groups, and reset their offsets.",
    no_args_is_help=True,
)

GroupId = Annotated[str, typer.Argument(parser=not_empty, metavar="GROUP", help="Id of a group.")]
GroupIds = Annotated[
    list[str], typer.Argument(parser=not_empty, metavar="GROUPS...", help="Ids of groups.")
]
GroupIdsOrAll = Annotated[
    list[str] | None,
    typer.Argument(parser=not_empty, metavar="[GROUPS]...", help="Default: all groups."),
]


@app.command("list")
def list_groups(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """List groups with their states."""
    with admin(bootstrap, [], "cannot list groups") as (client, _):
        rows = listed(client)
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no groups")
    _check_complete(bootstrap)


@app.command()
def describe(
    groups: GroupIdsOrAll = None, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Show each group's state, assignor, coordinator, number of members and lag."""
    with _described(bootstrap, groups) as (client, cluster, found):
        rows = [_summary(group, lags(client, cluster, group)) for group in found]
        if as_json:
            print_json(rows)
        else:
            print_table(rows, empty="no groups")


@app.command()
def members(
    groups: GroupIdsOrAll = None, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Show each member, its host and its partitions."""
    with _described(bootstrap, groups) as (_, _, found):
        there = [(group, member) for group in found for member in group.members]
        if as_json:
            print_json([_member(*one, _by_topic) for one in there])
        else:
            print_table([_member(*one, _text) for one in there], empty="no members")


@app.command()
def lag(groups: GroupIdsOrAll = None, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show the lag of groups in each partition, and the member that consumes it."""
    with _described(bootstrap, groups) as (client, cluster, found):
        rows = [_row(group, one) for group in found for one in lags(client, cluster, group)]
        if as_json:
            print_json(rows)
        else:
            print_table(rows, empty="nothing is committed, and no member has a partition")


@app.command()
def why(
    group: GroupId,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="PYKAFKA_METRICS",
            help="The --metrics address of the broker's `serve`; default: 127.0.0.1:9404.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain why a group rebalances or is stuck: missing members, the last events, and its lag.

    For example: `pykafka-core groups why billing --metrics 127.0.0.1:9404`
    """
    from .groups_why import why as run

    run(group, metrics, as_json=as_json)


@app.command("reset-offsets")
def reset_offsets(
    group: GroupId,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC[:P,P]", help="A topic, or some of its partitions."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics with committed offsets of the group.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first record.")] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="The end, after the last record.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option(min=0, metavar="OFFSET", help="This offset.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="The first record from a time on: 2026-01-31T12:00 or @MILLISECONDS.",
        ),
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option(metavar="N", help="Forward by N records; backward if N is negative."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with lines of topic,partition,offset."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the new offsets, but do not commit them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Commit without asking.")] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Commit other offsets for a group that has no members.

    The new offsets are shown first. Offsets outside a partition's range are moved to its start or
    its end.
    """
    from .groups_reset import ResetOptions
    from .groups_reset import reset_offsets as run

    run(
        ResetOptions(
            group=group,
            bootstrap=bootstrap,
            topics=tuple(topic or ()),
            all_topics=all_topics,
            to_earliest=to_earliest,
            to_latest=to_latest,
            to_offset=to_offset,
            to_datetime=to_datetime,
            shift_by=shift_by,
            from_file=from_file,
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )
    )


@app.command()
def delete(
    groups: GroupIds, yes: Yes = False, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Delete groups without members, and all their committed offsets. Asks first at a terminal."""
    confirm(f"Delete {', '.join(groups)} and all their committed offsets?", yes=yes)
    done, failed = [], []
    with admin(bootstrap, groups, "cannot delete groups") as (client, cluster):
        for group in dict.fromkeys(groups):
            try:
                _delete(client, cluster, group)
                done.append(group)
            except CliError as error:
                failed.append(str(error))
    if as_json:
        print_json({"deleted": done})
    elif done:
        print(f"deleted {', '.join(done)}")
    if failed:
        raise CliError("\n  ".join(failed))


def _delete(client: "AdminClient", cluster: "ClusterMetadata", group: str) -> None:
    """Delete one group.

    Raises:
        CliError: The group does not exist, it has members, or the coordinator refused.
    """
    with kafka_errors(f"cannot delete {group}"):
        found = described(client, cluster, group)
        check_exists(found)
        check_has_no_members(found)
        ask = client.delete_consumer_groups
        settled(lambda: result(ask([group], request_timeout=TIMEOUT_S)[group]))


@contextmanager
def _described(
    bootstrap: str | None, groups: Sequence[str] | None
) -> "Iterator[tuple[AdminClient, ClusterMetadata, list[Group]]]":
    """Yield the requested groups, or all.

    A list of all groups is checked for completeness after the block.
    """
    what = f"cannot describe {', '.join(groups)}" if groups else "cannot describe groups"
    with admin(bootstrap, groups or (), what) as (client, cluster):
        names = list(groups or (row["group"] for row in listed(client)))
        found = [described(client, cluster, name) for name in dict.fromkeys(names)]
        if groups:
            for group in found:
                check_exists(group)
        yield client, cluster, found
    if not groups:
        _check_complete(bootstrap)


def _check_complete(bootstrap: str | None) -> None:
    """Raise if no coordinator answers for a partition, because the list lacks its groups."""
    what = "the list is incomplete"
    with wire.cluster(bootstrap, what) as found:
        check_all_respond(found, GROUPS, what)


def _summary(group: Group, lags_of_group: Sequence[Lag]) -> dict[str, object]:
    known = [one.lag for one in lags_of_group if one.lag is not None]
    return {
        "group": group.group,
        "state": group.state,
        "type": group.type,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "members": len(group.members),
        "lag": sum(known) if known else None,
    }


def _row(group: Group, one: Lag) -> dict[str, object]:
    return {
        "group": group.group,
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "current_offset": one.current_offset,
        "high_watermark": one.high_watermark,
        "lag": one.lag,
        "member_id": None if one.owner is None else one.owner.member_id,
        "client_id": None if one.owner is None else one.owner.client_id,
        "host": None if one.owner is None else one.owner.host,
    }


def _member(
    group: Group, member: Member, shown: Callable[[Sequence[Partition]], object]
) -> dict[str, object]:
    return {
        "group": group.group,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "assignment": shown(member.assignment),
    }


def _by_topic(assignment: Sequence[Partition]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for one in assignment:
        found[one.topic].append(one.partition)
    return found


def _text(assignment: Sequence[Partition]) -> str:
    """Return the assignment in the format of ``reset-offsets --topic``, topic by topic."""
    by_topic = _by_topic(assignment).items()
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic)
