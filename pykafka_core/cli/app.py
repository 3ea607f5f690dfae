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
from .flights import FLIGHTS_COUNT
from .options import Bootstrap, Json, directory, not_empty

INT32_MAX = 2**31 - 1
app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
_SERVER = "A broker and its files"
CLIENT = "Clients of a running broker, which need pykafka-core\\[cli]"

cluster_app = typer.Typer(no_args_is_help=True, help="Several nodes as one cluster.")
app.add_typer(cluster_app, name="cluster", rich_help_panel=_SERVER)
quorum_app = typer.Typer(no_args_is_help=True, help="The controllers that vote.")
app.add_typer(quorum_app, name="quorum", rich_help_panel=_SERVER)
features_app = typer.Typer(no_args_is_help=True, help="Features of the cluster, and their levels.")
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
    """Kafka in a Python wheel: serve a broker, and look at one.

    Begin with `pykafka-core serve`, then `pykafka-core topics create NAME` in another terminal.
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
        typer.Option(help="What an acknowledgement promises; default: fsync."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="server.properties or TOML.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="One more setting, also if a client altered it."
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(help="Lines of this level and above go to stderr."),
    ] = "warning",
    metrics: Annotated[
        str | None,
        typer.Option(
            parser=not_empty,
            metavar="HOST:PORT",
            help="Serve /metrics, /healthz, /readyz and /groups/GROUP over HTTP; default: not at all.",
        ),
    ] = None,
    stop_timeout: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Time for a clean stop; after it the process ends and the next start recovers.",
        ),
    ] = 25,
) -> None:
    """Run one broker until SIGTERM or Ctrl-C.

    Prints `ready HOST:PORT data=DIR cluster=ID` when clients may connect. For example:
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
    """Show brokers, topics and groups, and what is wrong with them; exit code 1 if anything is.

    For example in a health check: `pykafka-core status --json -b 127.0.0.1:9092`
    """
    from .client.status import status as run

    run(bootstrap, as_json=as_json)


@app.command(rich_help_panel=CLIENT)
def produce(
    topic: str,
    files: Annotated[
        list[Path] | None, typer.Argument(help="One record per line; none or - is stdin.")
    ] = None,
    bootstrap: Bootstrap = None,
    key_separator: Annotated[
        str | None,
        typer.Option(parser=not_empty, metavar="TEXT", help="Splits each line into key and value."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, max=INT32_MAX, help="Default: by key.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="On every record.")
    ] = None,
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], typer.Option(help="Codec of batches.")
    ] = "none",
    acks: Annotated[Literal["0", "1", "all"], typer.Option(help="Who must confirm.")] = "all",
    as_json: Json = False,
) -> None:
    """Send lines of files or of stdin as records."""
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
            parser=not_empty, metavar="GROUP", help="Share partitions with its members, and commit."
        ),
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(min=0, help="Default: all.")] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="beginning, end, an offset, or a time (2026-01-31T12:00 or @MILLISECONDS).",
        ),
    ] = "beginning",
    count: Annotated[int | None, typer.Option("--max", min=1, help="Stop after so many.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more instead of stopping at the end.")
    ] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print keys, then a tab.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Print headers, then a tab.")] = False,
    as_json: Json = False,
) -> None:
    """Print the records of a topic.

    With --group from where the group is, and --from is where a group begins that has committed nothing.
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
        bool, typer.Option("--deep-iteration", help="Each record's offset, time and sizes too.")
    ] = False,
    contents: Annotated[
        bool, typer.Option("--print-data-log", help="Each record's key and value too.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Print faults only; exit code 1 if there are any.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print what a log's files hold, and check CRCs and indexes.

    Lines are those of Kafka's DumpLogSegments; faults begin with the file's name.
    """
    from .files.dump_log import dump_log as run

    run(paths, records=deep, contents=contents, verify=verify, as_json=as_json)


@app.command(rich_help_panel=_SERVER)
def repair(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A data directory, or a partition's in one.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Cut without asking.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the records after gaps.")] = False,
    as_json: Json = False,
) -> None:
    """Cut logs that are damaged, with all that follows the damage.

    A broker serves a damaged log up to its first bad batch and refuses writes; nothing is lost until you decide.
    The cut is shown first. No broker may have the directory open.
    """
    from .files.repair import repair as run

    run(directory, yes=yes, keep=keep, as_json=as_json)


@app.command("format", rich_help_panel=_SERVER)
def format_node(
    data: Annotated[Path, typer.Option(metavar="PATH", help="The node's data directory.")],
    node_id: Annotated[
        int, typer.Option(min=0, max=INT32_MAX, metavar="N", help="As node.id of its settings.")
    ],
    cluster_id: Annotated[
        str, typer.Option("--cluster-id", "-t", metavar="ID", help="The same on every node.")
    ],
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            metavar="ID@HOST:PORT:DIRECTORY_ID,...",
            help="First voters of the metadata quorum, the same on every controller; not for a broker only.",
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool,
        typer.Option(
            "--no-initial-controllers",
            help="For a broker only, a controller that is to be added to those of a cluster, or a static voter.",
        ),
    ] = False,
    standalone: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="For a new cluster of one, which can grow: where its listener of controllers is.",
        ),
    ] = None,
) -> None:
    """Make a data directory for a node of a cluster, as kafka-storage format does.

    A single broker needs none of it. Ids for clusters and directories are those of `pykafka-core random-uuid`.
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
    """Print a new id for a cluster or a directory, as kafka-storage random-uuid does."""
    from .files.format import random_uuid as run

    run()


@cluster_app.command("up")
def cluster_up(
    count: Annotated[int, typer.Argument(metavar="N", help="How many nodes, 1 to 7.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where their data are.")],
    port: Annotated[int, typer.Option(help="Of the first broker; the others follow.")] = 9092,
) -> None:
    """Run N brokers as one cluster on this machine, a process each, until Ctrl-C.

    Prints `ready HOST:PORT,...` when clients may connect. New topics have three replicas, and acks=all waits for two.
    The same command brings back what an earlier one left.
    """
    from .cluster.up import up

    up(count, directory, port)


@cluster_app.command("status")
def cluster_status(
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again every second, until Ctrl-C.")
    ] = False,
) -> None:
    """Show nodes, controllers and partitions that lack replicas; exit code 1 if anything is wrong.

    A voter's lag is in metadata records, its silence the time since it last fetched them. For example:
    `pykafka-core cluster status --watch -b 127.0.0.1:9092,127.0.0.1:9093`
    """
    from .cluster.status import status as run

    run(bootstrap, as_json=as_json, watch=watch)


DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be asked, and ask nothing.")
]


@quorum_app.command("describe")
def quorum_describe(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show voters and observers of the metadata quorum, and how far each is, as kafka-metadata-quorum does."""
    from .cluster.quorum import describe as run

    run(bootstrap, as_json=as_json)


@quorum_app.command("add")
def quorum_add(
    voter: Annotated[str, typer.Argument(metavar="ID@HOST:PORT[:DIRECTORY_ID]")],
    listener: Annotated[
        str, typer.Option(metavar="NAME", help="Of the listener of controllers at HOST:PORT.")
    ] = "CONTROLLER",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Have a controller that follows the metadata quorum vote in it.

    It has to run and to have caught up: `quorum describe` shows it as an observer. The directory id, that of
    its meta.properties, is looked up there. For example: `pykafka-core quorum add 4@d:9093 -b a:9092`
    """
    from .cluster.quorum import add as run

    run(bootstrap, voter, listener=listener, as_json=as_json, dry_run=dry_run)


@quorum_app.command("remove")
def quorum_remove(
    voter: Annotated[str, typer.Argument(metavar="ID[:DIRECTORY_ID]")],
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Have the metadata quorum go on without a voter, which may be gone; if it runs, it is an observer then.

    For example: `pykafka-core quorum remove 3 --dry-run`
    """
    from .cluster.quorum import remove as run

    run(bootstrap, voter, as_json=as_json, dry_run=dry_run)


Levels = Annotated[
    list[str], typer.Argument(metavar="NAME=LEVEL...", help="Of features that `describe` shows.")
]
Judged = Annotated[
    bool, typer.Option("--dry-run", help="Have the controller judge it, and change nothing.")
]


@features_app.command("describe")
def features_describe(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show what a broker supports and what is finalized, as kafka-features does."""
    from .cluster.features import describe as run

    run(bootstrap, as_json=as_json)


@features_app.command("upgrade")
def features_upgrade(
    levels: Levels,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: Judged = False,
) -> None:
    """Finalize higher levels, all of them or none.

    For example: `pykafka-core features upgrade transaction.version=2 --dry-run`
    """
    from .cluster.features import Way
    from .cluster.features import change as run

    run(bootstrap, levels, Way.UPGRADE, as_json=as_json, dry_run=dry_run)


@features_app.command("downgrade")
def features_downgrade(
    levels: Levels,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Also where metadata may be lost by it.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
    dry_run: Judged = False,
) -> None:
    """Finalize lower levels, all of them or none; level 0 is off."""
    from .cluster.features import Way
    from .cluster.features import change as run

    way = Way.UNSAFE_DOWNGRADE if unsafe else Way.DOWNGRADE
    run(bootstrap, levels, way, as_json=as_json, dry_run=dry_run)


app.command(rich_help_panel=_SERVER)(doctor)


@app.command(rich_help_panel="See it work")
def demo(
    data: Annotated[
        Path | None, typer.Option(help="Keep the broker's data here; default: a temporary place.")
    ] = None,
    flights: Annotated[
        int, typer.Option(min=1, max=FLIGHTS_COUNT, help="How many, from the first on.")
    ] = FLIGHTS_COUNT,
    spark: Annotated[
        bool, typer.Option(help="Also count them with Spark; needs Java and pykafka_core\\[spark].")
    ] = True,
    plots: Annotated[Path, typer.Option(help="Where Spark's part puts its plots.")] = Path(
        "pykafka-core-demo"
    ),
) -> None:
    """Send 336,776 flights through a broker and read them back; then count them with Spark."""
    from .demo import demo as run

    run(data, flights, spark, plots)
