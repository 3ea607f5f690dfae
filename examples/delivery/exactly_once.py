"""Exactly once: the effect and the position are one commit. A crash leaves both or neither.

Run: python exactly_once.py HOST:PORT DIRECTORY [SECONDS]. It reads the topic "payments", inserts
each record into the table payments of DIRECTORY/payments.db, and ends SECONDS (5) after the last
one.
"""

import sqlite3
import sys
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from pykafka_core.idempotent import IdempotentConsumer, SQLiteLedger, header_id


def main(bootstrap: str, directory: Path, idle_s: float = 5) -> None:
    """Consume until nothing comes any more."""
    database = directory / "payments.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS payments (value TEXT)")
    connection.close()
    settings = {"bootstrap.servers": bootstrap, "group.id": "-", "enable.auto.commit": False}
    with SQLiteLedger(database) as ledger:
        consumer = IdempotentConsumer(
            Consumer(settings),
            ledger,
            "payments",
            topics=["payments"],
            admin=AdminClient({"bootstrap.servers": bootstrap}),
            effect=insert,
            ids=header_id("message-id"),  # Producers that send again on their own are caught, too.
            batch_records_max=2,
        )
        while consumer.process_batch(idle_s).polled:
            pass


def insert(connection: sqlite3.Connection, records: list) -> None:
    """The effect, in the ledger's transaction: it does not commit."""
    rows = [(record.value().decode(),) for record in records]
    connection.executemany("INSERT INTO payments VALUES (?)", rows)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(float, sys.argv[3:]))
