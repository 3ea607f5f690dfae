"""The table of docs/guides/clients.md; `make clients` calls this module after its tests pass."""

from tests.clients.groups.clients import CLIENTS, ROOT, STRATEGIES, Client
from tests.clients.groups.scenarios import FOR_ALL, IF_OFFERED

PAGE = ROOT / "docs" / "guides" / "clients.md"
BEGIN, END = "<!-- written by `make clients` -->\n", "<!-- up to here -->\n"
WORKS, NOT_OFFERED = "works", "not offered by the client"


def table() -> str:
    """Return a row for each client, with a column for each scenario and strategy."""
    head = ("client", *FOR_ALL, *IF_OFFERED, *(f"rebalance: {name}" for name in STRATEGIES))
    rows = [head, ("---",) * len(head), *map(_row, CLIENTS)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(client: Client) -> tuple[str, ...]:
    offered = [name in client.offers for name in IF_OFFERED]
    offered += [name in client.strategies for name in STRATEGIES]
    return client.name, *(WORKS for _ in FOR_ALL), *map(_cell, offered)


def _cell(is_offered: bool) -> str:
    return WORKS if is_offered else NOT_OFFERED


def written() -> str:
    """Return the table that the page has now."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def write() -> None:
    """Replace the table in the page, between its two markers."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(before + begin + table() + end + after)


if __name__ == "__main__":
    write()
