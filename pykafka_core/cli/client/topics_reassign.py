"""``topics reassign``: moves replicas to other nodes, and shows the progress (KIP-455)."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.options import Bootstrap, Json
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.errors import error_of
from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

from . import wire
from .reassignment import Move, PartitionOf, plan
from .throttle import RATE_MAX, copied, lift, remove, sources
from .throttle import throttle as throttle_copies

ALTER, ALTER_VERSION = 45, 0
LOOK_S = 0.1
_CANNOT = "cannot reassign partitions"

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAMES]...", help="Names of topics; default: all.")
]


Nodes = Annotated[
    str | None,
    typer.Option("--to", metavar="IDS", help="Nodes that may have replicas, such as 1,2,3."),
]
Factor = Annotated[
    int | None, typer.Option(min=1, help="Replicas of each partition; default: unchanged.")
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="JSON in the format of kafka-reassign-partitions."),
]
Throttle = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=RATE_MAX,
        metavar="BYTES",
        help="Copy at most this many bytes per second, to and from each node.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Show the moves of NAMES in progress; if there are none, remove their throttle.",
    ),
]
Cancel = Annotated[
    bool,
    typer.Option(
        "--cancel", help="Cancel the moves in progress; replicas return to their former nodes."
    ),
]


def reassign(
    names: Names = None,
    to: Nodes = None,
    replication_factor: Factor = None,
    plan_file: PlanFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes, but do not make them.")
    ] = False,
    cancel: Cancel = False,
    progress: Annotated[
        bool, typer.Option("--list", help="Only show the moves in progress.")
    ] = False,
    throttle: Throttle = None,
    verify: Verify = False,
    preserve_throttles: Annotated[
        bool,
        typer.Option("--preserve-throttles", help="With --cancel: keep the throttle."),
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until all moves are complete.")] = True,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Move partitions to other nodes, or change how many replicas they have.

    As many replicas as possible stay where they are. Ctrl-C ends the wait, but not the move: see
    --cancel. For example, to empty node 3: `pykafka-core topics reassign --to 1,2,4 --dry-run`,
    then the same without --dry-run.

    The throttle is removed when the wait for the move ends, and by --cancel. After Ctrl-C or
    --no-wait it remains until --verify finds no move in progress. Its removal also removes the
    rates that are set for single brokers.
    """
    moves = to is not None or replication_factor is not None
    _check_action([moves, plan_file is not None, cancel, progress, verify])
    if throttle is not None and (cancel or progress or verify):
        raise CliError(
            "--throttle is only for moves",
            "use it with --to, --replication-factor or --plan",
            exit_code=USAGE,
        )
    if verify and not names:
        raise CliError("--verify needs topics", "name the topics to verify", exit_code=USAGE)
    if preserve_throttles and not cancel:
        raise CliError("--preserve-throttles is only for --cancel", "leave it out", exit_code=USAGE)
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        if progress or verify:
            _show(cluster, names, verify=verify, as_json=as_json)
        elif cancel:
            _cancel(cluster, names, preserve_throttles=preserve_throttles, as_json=as_json)
        else:
            planned = (
                _of_file(cluster, plan_file)
                if plan_file is not None
                else _planned(cluster, names, to, replication_factor)
            )
            how = _How(dry_run=dry_run, wait=wait, as_json=as_json, throttle=throttle)
            _move(cluster, planned, how)


def _check_action(selected: Sequence[bool]) -> None:
    if sum(selected) != 1:
        advice = "use one of --to or --replication-factor, --plan, --cancel, --verify and --list"
        raise CliError("the options do not select one action", advice, exit_code=USAGE)


def _show(
    cluster: wire.Cluster, names: Sequence[str] | None, *, verify: bool, as_json: bool
) -> None:
    moving = _in_progress(cluster, names)
    if verify and not moving:
        lift(cluster, cluster.partitions(names))
    _show_progress(moving, as_json=as_json)


def _cancel(
    cluster: wire.Cluster,
    names: Sequence[str] | None,
    *,
    preserve_throttles: bool,
    as_json: bool,
) -> None:
    moving = _in_progress(cluster, names)
    _alter(cluster, dict.fromkeys(moving))
    if not preserve_throttles:
        lift(cluster, [*(at.topic for at in moving), *(names or ())])
    _said("cancelled", list(moving), as_json=as_json)


class _How(NamedTuple):
    """The options of a move."""

    dry_run: bool
    wait: bool
    as_json: bool
    throttle: int | None


def _move(cluster: wire.Cluster, moves: Sequence[Move], how: _How) -> None:
    rows = [
        {
            "topic": move.at.topic,
            "partition": move.at.partition,
            "now": list(move.now),
            "then": list(move.then),
            "copies": move.copies,
        }
        for move in moves
    ]
    if not how.as_json:
        print_table(rows, empty="nothing has to move")
    if moves and not how.dry_run:
        with _throttled(cluster, moves, how):
            _alter(cluster, {move.at: move.then for move in moves})
            if how.wait:
                _wait(cluster, [move.at for move in moves], quiet=how.as_json)
    if how.as_json:
        print_json({"moves": rows, "dry_run": how.dry_run})


@contextmanager
def _throttled(cluster: wire.Cluster, moves: Sequence[Move], how: _How) -> Iterator[None]:
    """Throttle the copies within the block, if requested.

    The throttle stays if moves continue after the block.
    """
    if how.throttle is None:
        yield
        return
    topics = sorted({move.at.topic for move in moves})
    try:
        throttle_copies(cluster, copied(moves, _in_progress(cluster, topics)), how.throttle)
        yield
    except CliError:
        if _in_progress(cluster, None):
            _say_it_stays(topics)
        else:
            remove(cluster, topics)
        raise
    except BaseException:
        _say_it_stays(topics)
        raise
    if how.wait:
        remove(cluster, topics)
    else:
        _say_it_stays(topics)


def _say_it_stays(topics: Sequence[str]) -> None:
    """Print the commands that remove the throttle to stderr, because stdout may have JSON."""
    names = " ".join(topics)
    print(
        "the throttle remains. When the moves are complete, remove it with:\n"
        f"  pykafka-core topics reassign --verify {names}\n"
        "To cancel the moves and remove the throttle now:\n"
        f"  pykafka-core topics reassign --cancel {names}",
        file=sys.stderr,
    )


def _planned(
    cluster: wire.Cluster, names: Sequence[str] | None, to: str | None, factor: int | None
) -> list[Move]:
    """Plan moves.

    Partitions in a reassignment are planned from their previous replicas; those that would stay
    there return to them.
    """
    nodes = sorted(cluster.nodes) if to is None else _ids(to)
    if unknown := set(nodes) - set(cluster.nodes):
        raise CliError(
            f"there is no broker {min(unknown)}", "see `cluster status`", exit_code=USAGE
        )
    replicas = {PartitionOf(*at): now for at, now in cluster.replicas(names or None).items()}
    ongoing = _in_progress(cluster, names)
    before = {at: sources(one) for at, one in ongoing.items() if at in replicas}
    try:
        moves = plan({**replicas, **before}, nodes, factor)
    except ValueError as error:
        raise CliError(str(error), "name more nodes with --to", exit_code=USAGE) from error
    moved = {move.at for move in moves}
    back = [Move(at, ongoing[at].replicas, then) for at, then in before.items() if at not in moved]
    return sorted([*moves, *back])


def _ids(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise CliError(
            f"--to {text!r} is not a list of node ids", "write it as 1,2,3", exit_code=USAGE
        ) from None


def _of_file(cluster: wire.Cluster, file: Path) -> list[Move]:
    """Return the moves of a plan file that are not made yet."""
    try:
        wanted = {
            PartitionOf(str(one["topic"]), int(one["partition"])): [int(n) for n in one["replicas"]]
            for one in json.loads(file.read_bytes())["partitions"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        advice = (
            'write it as {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
        )
        raise CliError(f"{file} is not a plan: {error}", advice, exit_code=USAGE) from error
    now = cluster.replicas(sorted({at.topic for at in wanted}))
    if unknown := [at for at in wanted if (at.topic, at.partition) not in now]:
        text = f"there is no partition {unknown[0].topic}-{unknown[0].partition}"
        raise CliError(text, "see `topics list`", exit_code=USAGE)
    moves = [
        Move(at, now[at.topic, at.partition], tuple(then)) for at, then in sorted(wanted.items())
    ]
    return [move for move in moves if move.now != move.then]


def _alter(cluster: wire.Cluster, wanted: Mapping[PartitionOf, Sequence[int] | None]) -> None:
    """Start reassignments; None cancels one.

    An error of one partition does not affect the others.
    """
    of = AlterPartitionReassignmentsRequest
    topics: dict[str, list[AlterPartitionReassignmentsRequest.ReassignablePartition]] = {}
    for at, replicas in wanted.items():
        partition = of.ReassignablePartition(
            partition_index=at.partition, replicas=None if replicas is None else list(replicas)
        )
        topics.setdefault(at.topic, []).append(partition)
    if not topics:
        return
    request = of(
        timeout_ms=wire.CONTROLLER_TIMEOUT_MS,
        topics=[of.ReassignableTopic(name=name, partitions=p) for name, p in topics.items()],
    )
    response = cluster.any().ask_newest(
        ALTER, ALTER_VERSION, request, AlterPartitionReassignmentsResponse
    )
    wire.check(response.error_code, _CANNOT)
    failed = [
        f"{topic.name}-{one.partition_index}: {one.error_message or error_of(one.error_code).text}"
        for topic in response.responses
        for one in topic.partitions
        if one.error_code
    ]
    wire.check_all(failed, _CANNOT)


def _in_progress(
    cluster: wire.Cluster, names: Sequence[str] | None
) -> dict[PartitionOf, wire.Ongoing]:
    return {
        PartitionOf(*at): one
        for at, one in cluster.reassignments().items()
        if not names or at[0] in names
    }


def _show_progress(
    moving: Mapping[PartitionOf, wire.Ongoing],
    *,
    as_json: bool,
) -> None:
    rows = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "replicas": list(one.replicas),
            "adding": list(one.adding_replicas),
            "removing": list(one.removing_replicas),
        }
        for at, one in moving.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="nothing is in progress")


def _wait(cluster: wire.Cluster, partitions: Sequence[PartitionOf], *, quiet: bool) -> None:
    """Wait until all are done; Ctrl-C ends only the wait."""
    from rich.progress import Progress

    names = sorted({at.topic for at in partitions})
    with Progress(disable=quiet, transient=True) as bar:
        task = bar.add_task("partitions", total=len(partitions))
        while left := set(partitions) & set(_in_progress(cluster, names)):
            bar.update(task, completed=len(partitions) - len(left))
            time.sleep(LOOK_S)
    if not quiet:
        print(f"moved {len(partitions):,} {'partition' if len(partitions) == 1 else 'partitions'}")


def _said(verb: str, partitions: Sequence[PartitionOf], *, as_json: bool) -> None:
    named = [f"{at.topic}-{at.partition}" for at in partitions]
    if as_json:
        print_json({verb: named})
    else:
        print(f"{verb} {', '.join(named)}" if named else "nothing is in progress")
