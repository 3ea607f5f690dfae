"""Every client reads the records of every other client, in every codec, on the embedded broker.

A topic holds the records of one client in one codec; all clients read it. One broker serves the
whole module, so each Java process is started once per writer, codec and reader.
"""

import time
from collections.abc import Iterator

import pytest

from tests.clients.adapters import CLIENTS, CODECS, PARTITIONS, Client, Java, Row
from tests.support.brokers import Serve

BY_NAME = [
    pytest.param(one, id=one.name, marks=[pytest.mark.jvm] if isinstance(one, Java) else [])
    for one in CLIENTS
]
COUNT = 60
BEGUN_MS = int(time.time() * 1000) - 3_600_000


def rows_of(client: Client, codec: str) -> list[Row]:
    """Return text keys and values, nulls, empty values, headers, and unordered timestamps."""
    nothing = (("nothing", None),) if client.null_headers else ()
    return [
        Row(
            partition=n % PARTITIONS,
            timestamp=BEGUN_MS + n * 10 - (n % 3) * 25,
            key=None if n % 7 == 0 else f"ключ-{n % 5}".encode(),
            value=None
            if n % 11 == 1 and n % 7
            else f"{client.name} {codec} {n} ".encode() * (n % 40),
            headers=(("source", client.name.encode()), *nothing) if n % 5 == 0 else (),
        )
        for n in range(COUNT)
    ]


def in_order(rows: list[Row]) -> list[list[Row]]:
    """Return rows by partition, each in the order read: Kafka guarantees no other order."""
    return [[row for row in rows if row.partition == p] for p in range(PARTITIONS)]


@pytest.fixture(scope="module")
def bootstrap(serve: Serve) -> Iterator[str]:
    with serve() as broker:
        for client in CLIENTS:
            for codec in CODECS:
                broker.create_topic(f"{client.name}-{codec}", partitions=PARTITIONS)
        yield broker.bootstrap_servers


@pytest.fixture(scope="module", params=BY_NAME)
def written(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """A client that has written its topic in every codec."""
    client: Client = request.param
    for codec in CODECS:
        client.write(bootstrap, f"{client.name}-{codec}", codec, rows_of(client, codec))
    return client


@pytest.mark.interval
@pytest.mark.parametrize("reader", BY_NAME)
def test_every_client_reads_records_of_every_client(
    written: Client, reader: Client, bootstrap: str
) -> None:
    # A Java reader costs a process of a second per topic. One codec each way is enough for it,
    # because the other readers decode the same bytes in all five.
    codecs = ("zstd",) if isinstance(reader, Java) and not isinstance(written, Java) else CODECS
    for codec in codecs:
        rows = reader.read(bootstrap, f"{written.name}-{codec}", COUNT)
        assert in_order(rows) == in_order(rows_of(written, codec)), codec
