"""The typer application: commands, their options and help; other modules implement them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from pykafka_core.types import Durability

from . import perf as perf_command
from .client import configs as configs_command
from .client import groups as groups_command
from .client import topics as topics_command
from .client import transactions as transactions_command
from .doctor import doctor
from .options import Acks, Bootstrap, Json, directory, not_empty

INT32_MAX = 2**31 - 1
app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
_SERVER = "A broker and its files"
CLIENT = "Clients of a running broker (commands that need pykafka-core\\[cli] name it)"

cluster_app = typer.Typer(no_args_is_help=True, help="Run and inspect a cluster of several nodes.")
app.add_typer(cluster_app, name="cluster", rich_help_panel=_SERVER)
quorum_app = typer.Typer(
    no_args_is_help=True, help="Describe and change the voters of the metadata quorum."
)
app.add_typer(quorum_app, name="quorum", rich_help_panel=_SERVER)
features_app = typer.Typer(
    no_args_is_help=True, help="Describe and change the levels of the cluster's features."
)
app.add_typer(features_app, name="features", rich_help_panel=_SERVER)
app.add_typer(topics_command.app, name="topics", rich_help_panel=CLIENT)
app.add_typer(configs_command.app, name="configs", rich_help_panel=CLIENT)
app.add_typer(groups_command.app, name="groups", rich_help_panel=CLIENT)
app.add_typer(transactions_command.app, name="transactions", rich_help_panel=CLIENT)
app.add_typer(perf_command.app, name="perf", rich_help_panel=CLIENT)


def _print_version(asked: bool) -> None:
    if asked:
        from pykafka_core import __version__

        print(f"pykafka-core {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Kafka in a Python wheel: run brokers, and inspect them.

    Start with `pykafka-core serve`, then `pykafka-core topics create NAME` in another terminal.
    """


@app.command(rich_help_panel=_SERVER)
def serve(
    data: Annotated[
        Path | None,
        typer.Option(
            parser=directory,
            metavar="PATH",
            help="Data directory; default: log.dirs of --config, or ./data.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(parser=not_empty, metavar="HOST:PORT", help="Default: 127.0.0.1:9092."),
    ] = None,
    durability: Annotated[
        Durability | None,
        typer.Option(help="How safe a record is once it is acknowledged; default: fsync."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings: server.properties or TOML.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting; overrides --config and values that clients altered.",
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(help="Log lines of this level and above go to stderr."),
    ] = "warning",
    metrics: Annotated[
        str | None,
        typer.Option(
            parser=not_empty,
            metavar="HOST:PORT",
            help="Serve /metrics, /healthz, /readyz and /groups/GROUP over HTTP; default: off.",
        ),
    ] = None,
    stop_timeout: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Time limit of a clean stop; after it the process ends, and the next start recovers.",
        ),
    ] = 25,
) -> None:
    """Run one broker until SIGTERM or Ctrl-C.

    Prints `ready HOST:PORT data=DIR cluster=ID` when clients can connect. For example:
    `pykafka-core serve --data ./data --log-level info --metrics 127.0.0.1:9404`
    """
    from .serve import ServeOptions
    from .serve import serve as run

    run(
        ServeOptions(
            data=data,
            listen=listen,
            durability=durability,
            config=config,
            settings=tuple(settings or ()),
            log_level=log_level,
            metrics=metrics,
            stop_timeout_s=stop_timeout,
        )
    )


@app.command(rich_help_panel=CLIENT)
def status(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show brokers, topics and groups, and their problems; exit code 1 if there are any.

    For example, in a health check: `pykafka-core status --json -b 127.0.0.1:9092`
    """
    from .client.status import status as run

    run(bootstrap, as_json=as_json)


@app.command(rich_help_panel=CLIENT)
def produce(
    topic: str,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one record per line. Without files, or for -: stdin."),
    ] = None,
    bootstrap: Bootstrap = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            parser=not_empty, metavar="TEXT", help="Separates key and value in each line."
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            min=0, max=INT32_MAX, help="Partition of all records; default: chosen by key."
        ),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header of every record.")
    ] = None,
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(help="Compression of batches."),
    ] = "none",
    acks: Acks = "all",
    as_json: Json = False,
) -> None:
    """Send each line of files or of stdin as a record."""
    from .client.produce import ProduceOptions
    from .client.produce import produce as run

    run(
        ProduceOptions(
            topic=topic,
            files=tuple(files or ()),
            bootstrap=bootstrap,
            key_separator=key_separator,
            partition=partition,
            headers=tuple(header or ()),
            compression=compression,
            acks=acks,
            as_json=as_json,
        )
    )


@app.command(rich_help_panel=CLIENT)
def consume(
    topic: str,
    bootstrap: Bootstrap = None,
    group: Annotated[
        str | None,
        typer.Option(
            parser=not_empty,
            metavar="GROUP",
            help="Consume as a member of this group, and commit offsets.",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option(min=0, help="Default: all partitions.")
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Start at beginning, end, an offset, or a time (2026-01-31T12:00 or @MILLISECONDS).",
        ),
    ] = "beginning",
    count: Annotated[
        int | None, typer.Option("--max", min=1, help="Stop after this many records.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="At the end, wait for new records instead of stopping."
        ),
    ] = False,
    keys: Annotated[
        bool, typer.Option("--keys", help="Print the key and a tab before each value.")
    ] = False,
    headers: Annotated[
        bool, typer.Option("--headers", help="Print the headers and a tab before each record.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the records of a topic.

    With --group, reading starts at the committed offsets of the group; --from applies to partitions
    without one.
    """
    from .consume.consume import ConsumeOptions
    from .consume.consume import consume as run_alone
    from .consume.consume_group import consume_in_group

    run = run_alone if group is None else consume_in_group
    run(
        ConsumeOptions(
            topic=topic,
            group=group,
            bootstrap=bootstrap,
            partitions=tuple(partition or ()),
            start=start,
            count=count,
            follow=follow,
            keys=keys,
            headers=headers,
            as_json=as_json,
        )
    )


@app.command("dump-log", rich_help_panel=_SERVER)
def dump_log(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Files (.log .index .timeindex …) or partition directories."),
    ],
    deep: Annotated[
        bool,
        typer.Option("--deep-iteration", help="Also print each record's offset, time and sizes."),
    ] = False,
    contents: Annotated[
        bool, typer.Option("--print-data-log", help="Also print each record's key and value.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Print faults only; exit code 1 if there are any.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the contents of log files, and check CRCs and indexes.

    Lines have the format of Kafka's DumpLogSegments. A line with a fault starts with the name of
    the file.
    """
    from .files.dump_log import dump_log as run

    run(paths, records=deep, contents=contents, verify=verify, as_json=as_json)


@app.command(rich_help_panel=_SERVER)
def repair(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A data directory, or the directory of a partition in it."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Cut without asking.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the records after missing offsets.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Cut damaged logs: remove the first bad batch and all records after it.

    Until then a broker serves such a log up to its first bad batch, and rejects writes to it.
    The cut is shown first. Stop the broker of the directory before.
    """
    from .files.repair import repair as run

    run(directory, yes=yes, keep=keep, as_json=as_json)


@app.command("format", rich_help_panel=_SERVER)
def format_node(
    data: Annotated[Path, typer.Option(metavar="PATH", help="The node's data directory.")],
    node_id: Annotated[
        int, typer.Option(min=0, max=INT32_MAX, metavar="N", help="The node's node.id.")
    ],
    cluster_id: Annotated[
        str,
        typer.Option(
            "--cluster-id", "-t", metavar="ID", help="Id of the cluster; the same on every node."
        ),
    ],
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            metavar="ID@HOST:PORT:DIRECTORY_ID,...",
            help="The first voters of the metadata quorum; the same on every controller.",
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool,
        typer.Option(
            "--no-initial-controllers",
            help="For a node that is only a broker, a controller that joins a running quorum, or a static voter.",
        ),
    ] = False,
    standalone: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="For the first controller of a new cluster that can grow: address of its controller listener.",
        ),
    ] = None,
) -> None:
    """Format the data directory of a node of a cluster, like kafka-storage format.

    A single broker formats its own directory. `pykafka-core random-uuid` prints new ids of clusters
    and directories.
    """
    from .files.format import format_node as run

    given = initial_controllers, standalone, no_initial_controllers
    if sum(map(bool, given)) > 1:
        raise typer.BadParameter(
            "give one of --initial-controllers, --no-initial-controllers and --standalone"
        )
    run(
        data,
        node_id=node_id,
        cluster_id=cluster_id,
        controllers=initial_controllers,
        standalone=standalone,
    )


@app.command("random-uuid", rich_help_panel=_SERVER)
def random_uuid() -> None:
    """Print a new id for a cluster or a directory, like kafka-storage random-uuid."""
    from .files.format import random_uuid as run

    run()


@cluster_app.command("up")
def cluster_up(
    count: Annotated[int, typer.Argument(metavar="N", help="Number of nodes, 1 to 7.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of their data.")],
    port: Annotated[
        int, typer.Option(help="Port of the first broker; the others use the ports after it.")
    ] = 9092,
) -> None:
    """Run a cluster of N brokers on this machine, each in its own process, until Ctrl-C.

    Prints `ready HOST:PORT,...` when clients can connect. New topics have three replicas, and
    acks=all waits for two. The same command restarts the cluster with its data.
    """
    from .cluster.up import up

    up(count, directory, port)


@cluster_app.command("status")
def cluster_status(
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Repeat every second, until Ctrl-C.")
    ] = False,
) -> None:
    """Show nodes, controllers and partitions that lack replicas; exit code 1 if anything is wrong.

    A voter's lag is a number of metadata records; its silence is the time since its last fetch. For
    example: `pykafka-core cluster status --watch -b 127.0.0.1:9092,127.0.0.1:9093`
    """
    from .cluster.status import status as run

    run(bootstrap, as_json=as_json, watch=watch)


DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check and show the change, but do not make it.")
]


@quorum_app.command("describe")
def quorum_describe(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show the voters and observers of the quorum and their lag, like kafka-metadata-quorum."""
    from .cluster.quorum import describe as run

    run(bootstrap, as_json=as_json)


@quorum_app.command("add")
def quorum_add(
    voter: Annotated[
        str,
        typer.Argument(
            metavar="ID@HOST:PORT[:DIRECTORY_ID]",
            help="Controller to add; DIRECTORY_ID is in its meta.properties.",
        ),
    ],
    listener: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the controller listener at HOST:PORT.")
    ] = "CONTROLLER",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Add a controller to the voters of the metadata quorum.

    The controller must be running and caught up: `quorum describe` shows it as an observer whose
    lag is 0. Without DIRECTORY_ID, its id is taken from there. For example:
    `pykafka-core quorum add 4@d:9093 -b a:9092`
    """
    from .cluster.quorum import add as run

    run(bootstrap, voter, listener=listener, as_json=as_json, dry_run=dry_run)


@quorum_app.command("remove")
def quorum_remove(
    voter: Annotated[str, typer.Argument(metavar="ID[:DIRECTORY_ID]", help="Voter to remove.")],
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a controller from the voters of the metadata quorum.

    It may be down. If it is running, it becomes an observer. For example:
    `pykafka-core quorum remove 3 --dry-run`
    """
    from .cluster.quorum import remove as run

    run(bootstrap, voter, as_json=as_json, dry_run=dry_run)


Levels = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=LEVEL...", help="Features, as `describe` shows them, and their new levels."
    ),
]
Judged = Annotated[
    bool, typer.Option("--dry-run", help="The controller checks the change, but does not make it.")
]


@features_app.command("describe")
def features_describe(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show the supported and the finalized levels of features, like kafka-features."""
    from .cluster.features import describe as run

    run(bootstrap, as_json=as_json)


@features_app.command("upgrade")
def features_upgrade(
    levels: Levels,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: Judged = False,
) -> None:
    """Finalize higher levels of features; all of them change or none.

    For example: `pykafka-core features upgrade transaction.version=2 --dry-run`
    """
    from .cluster.features import Way
    from .cluster.features import change as run

    run(bootstrap, levels, Way.UPGRADE, as_json=as_json, dry_run=dry_run)


@features_app.command("downgrade")
def features_downgrade(
    levels: Levels,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow downgrades that may lose metadata.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: Judged = False,
) -> None:
    """Finalize lower levels of features; all of them change or none. Level 0 disables a feature."""
    from .cluster.features import Way
    from .cluster.features import change as run

    way = Way.UNSAFE_DOWNGRADE if unsafe else Way.DOWNGRADE
    run(bootstrap, levels, way, as_json=as_json, dry_run=dry_run)


app.command(rich_help_panel=_SERVER)(doctor)
