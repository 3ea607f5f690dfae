"""``transactions``: lists and describes transactional ids, and aborts a transaction that hangs."""

from typing import Annotated

import typer

from pykafka_core.cli.client.coordinators import TRANSACTIONS, check_all_respond
from pykafka_core.cli.client.wire import cluster
from pykafka_core.cli.options import Bootstrap, Json, not_empty
from pykafka_core.cli.output import print_json, print_table

from .abort import abort
from .ids import described, listed

app = typer.Typer(
    help="List and describe transactional ids, and abort hanging transactions.",
    no_args_is_help=True,
)
app.command()(abort)

TransactionalIds = Annotated[
    list[str], typer.Argument(parser=not_empty, metavar="IDS...", help="Transactional ids.")
]


@app.command("list")
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE", help="Only this state: Ongoing, PrepareCommit, CompleteCommit..."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """List transactional ids with their producers and states."""
    with cluster(bootstrap, "cannot list transactions") as found:
        rows = [one._asdict() for one in sorted(listed(found, states=state or ()))]
        if as_json:
            print_json(rows)
        else:
            print_table(rows, empty="no transactions")
        check_all_respond(found, TRANSACTIONS, "the list is incomplete")


@app.command()
def describe(
    transactional_ids: TransactionalIds, bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Show each id's producer and state, and the age and partitions of its transaction."""
    with cluster(bootstrap, "cannot describe transactions") as found:
        rows = [described(found, name)._asdict() for name in transactional_ids]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no transactions")
