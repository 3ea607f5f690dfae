"""``topics``: list, create, describe and delete topics; elect leaders and move replicas."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.options import Bootstrap, Json, Yes
from pykafka_core.cli.output import confirm, print_json, print_table

from .clients import TIMEOUT_S, admin, connect, kafka_errors, result
from .topics_elect import elect
from .topics_reassign import reassign

if TYPE_CHECKING:
    from concurrent.futures import Future

app = typer.Typer(
    help="List, create, describe, move and delete topics, and elect leaders.", no_args_is_help=True
)
app.command()(elect)
app.command()(reassign)

PARTITIONS_MAX = 100_000
"""Maximum for a topic that librdkafka creates."""
Names = Annotated[list[str], typer.Argument(metavar="NAMES...", help="Of topics.")]


@app.command("list")
def list_topics(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """List topics with their partitions."""
    topics = connect(bootstrap)[1].topics
    rows = [
        {
            "topic": name,
            "partitions": len(topics[name].partitions),
            "replicas": max((len(p.replicas) for p in topics[name].partitions.values()), default=0),
        }
        for name in sorted(topics)
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no topics")


@app.command()
def create(
    names: Names,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, max=PARTITIONS_MAX, help="Default: the broker's num.partitions."),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Default: the broker's default.replication.factor.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A topic setting.")
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Create topics."""
    from confluent_kafka.admin import NewTopic

    settings = dict(pair(text) for text in config or ())
    with admin(bootstrap, names, f"cannot create {', '.join(names)}") as (client, _):
        new = [
            NewTopic(
                name,
                num_partitions=partitions or -1,
                replication_factor=replication_factor or -1,
                config=settings,
            )
            for name in names
        ]
        _finish("create", client.create_topics(new, request_timeout=TIMEOUT_S), as_json=as_json)


@app.command()
def describe(names: Names, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Show each partition's leader, replicas and offsets."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    with admin(bootstrap, names, "cannot list offsets") as (client, cluster):
        topics = cluster.topics
        for name in names:
            if name not in topics:
                raise CliError(f"there is no topic {name}", "see `pykafka-core topics list`")
        partitions = [TopicPartition(n, p) for n in names for p in sorted(topics[n].partitions)]
        ends = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
            asked = dict.fromkeys(partitions, spec)
            futures = client.list_offsets(asked, request_timeout=TIMEOUT_S)
            ends.append({(t.topic, t.partition): result(f).offset for t, f in futures.items()})
    rows = []
    for one in partitions:
        found = topics[one.topic].partitions[one.partition]
        rows.append(
            {
                "topic": one.topic,
                "partition": one.partition,
                "leader": found.leader,
                "replicas": list(found.replicas),
                "isr": list(found.isrs),
                "log_start_offset": ends[0][one.topic, one.partition],
                "high_watermark": ends[1][one.topic, one.partition],
            }
        )
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no partitions")


@app.command()
def delete(
    names: Names, yes: Yes = False, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Delete topics and all their records. Asks first at a terminal."""
    confirm(f"Delete {', '.join(names)} and all their records?", yes=yes)
    with admin(bootstrap, names, f"cannot delete {', '.join(names)}") as (client, _):
        _finish("delete", client.delete_topics(names, request_timeout=TIMEOUT_S), as_json=as_json)


def pair(text: str) -> tuple[str, str]:
    """Split NAME=VALUE.

    Raises:
        CliError: There is no ``=`` or no name, or the text is not UTF-8.
    """
    name, equals, value = utf8(text).partition("=")
    if not equals or not name:
        raise CliError(f"{text!r} is not NAME=VALUE", exit_code=USAGE)
    return name, value


def _finish(verb: str, futures: "Mapping[str, Future[None]]", *, as_json: bool) -> None:
    """Print the topics that succeeded, then raise the errors of the others."""
    done, failed = [], []
    for name, future in futures.items():
        try:
            with kafka_errors(f"cannot {verb} {name}"):
                result(future)
            done.append(name)
        except CliError as error:
            failed.append(str(error))
    if as_json:
        print_json({f"{verb}d": done})
    elif done:
        print(f"{verb}d {', '.join(done)}")
    if failed:
        raise CliError("\n  ".join(failed))
