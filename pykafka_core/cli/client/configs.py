"""``configs``: describe and alter the settings of topics and brokers."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.options import Bootstrap, Json
from pykafka_core.cli.output import print_json, print_table

from .clients import TIMEOUT_S, admin, result
from .topics import pair

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata, ConfigResource

app = typer.Typer(help="Describe and alter settings.", no_args_is_help=True)

Kind = Annotated[Literal["topic", "broker"], typer.Argument(help="topic or broker.")]


@app.command()
def describe(
    kind: Kind,
    name: Annotated[str, typer.Argument(help="Topic name or broker id.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Also show the defaults of settings that are not set.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show settings with their sources."""
    from confluent_kafka.admin import ConfigSource

    with admin(bootstrap, [name], f"cannot describe {kind} {name}") as (client, cluster):
        resource = _resource(kind, name, cluster)
        futures = client.describe_configs([resource], request_timeout=TIMEOUT_S)
        entries: dict[str, Any] = result(futures[resource])
    rows = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": ConfigSource(entry.source).name,
            "read_only": bool(entry.is_read_only),
        }
        for entry in sorted(entries.values(), key=lambda entry: str(entry.name))
        if everything or entry.source != ConfigSource.DEFAULT_CONFIG.value
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="nothing is set; --all shows defaults")


@app.command()
def alter(
    kind: Kind,
    name: Annotated[str, typer.Argument(help="Topic name or broker id.")],
    to_set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting and its new value."),
    ] = None,
    delete: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A setting to delete.")
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Set settings, or delete them to restore their defaults."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    changes = dict(pair(text) for text in to_set or ())
    if not changes and not delete:
        advice = "use --set NAME=VALUE or --delete NAME"
        raise CliError("nothing to alter", advice, exit_code=USAGE)
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in changes.items()
    ]
    entries += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
        for key in delete or ()
    ]
    with admin(bootstrap, [name], f"cannot alter {kind} {name}") as (client, cluster):
        resource = _resource(kind, name, cluster)
        for entry in entries:
            resource.add_incremental_config(entry)
        futures = client.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)
        result(futures[resource])
    if as_json:
        print_json({"altered": name, "set": changes, "deleted": list(delete or ())})
    else:
        print(f"altered {kind} {name}")


def _resource(kind: str, name: str, cluster: "ClusterMetadata") -> "ConfigResource":
    """Return a resource; fails for an unknown broker, which the client would wait for."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    if kind == "broker" and name not in (known := sorted(map(str, cluster.brokers))):
        raise CliError(f"there is no broker {name}", f"brokers are: {', '.join(known)}")
    types = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}
    return ConfigResource(types[kind], name)
