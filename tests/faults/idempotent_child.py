"""An idempotent consumer to be killed: `python -m tests.faults.idempotent_child JSON`.

It prints ``batch N`` after each batch, and exits with 0 when the marks reach the number of records.
"""

import json
import sys
from typing import Any

from confluent_kafka import TopicPartition

from pykafka_core.errors import ConsumerError, LedgerUnavailableError
from pykafka_core.idempotent import IdempotentConsumer, Ledger, header_id
from tests.idempotent.databases import Database, database_at
from tests.idempotent.kafka import admin_of, consumer_of
from tests.support.patience import exactly
from tests.support.processes.crash import Crash, CrashingLedger

GROUP = "torture"


class Rewound:
    """A client that always starts at offset 0, like one whose offsets were lost."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def assign(self, places: list[TopicPartition]) -> None:
        self._consumer.assign([TopicPartition(p.topic, p.partition, 0) for p in places])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


def main(bootstrap: str, database: str, records: int, rewound: bool, crash: dict[str, Any]) -> None:
    place = database_at(database)
    death = Crash(**crash) if crash else None
    ledger: Ledger = place.ledger()
    if death is not None:
        ledger = CrashingLedger(ledger, death)
    kafka = consumer_of(bootstrap)
    consumer = IdempotentConsumer(
        Rewound(kafka) if rewound else kafka,
        ledger,
        GROUP,
        topics=["load"],
        admin=admin_of(bootstrap),
        effect=_effect_of(place) if death is None else death.effect(_effect_of(place)),
        ids=header_id("id"),
        batch_records_max=20,
        request_timeout_s=exactly(2, "a slower request fails, and the loop repeats it"),
    )
    number, done = 0, 0
    while done < records:
        try:
            batch = consumer.process_batch(0.2)
            if batch.polled:
                number += 1
                print("batch", number, flush=True)
                continue
            with ledger.transaction(GROUP) as transaction:
                done = sum(transaction.marks().values())
        except (ConsumerError, LedgerUnavailableError):
            continue  # A service would continue, too.
    kafka.close()
    ledger.close()


def _effect_of(place: Database) -> Any:
    """Return an effect that counts, so that every repetition makes the count wrong."""
    insert = f"INSERT INTO effects VALUES ({place.placeholder})"

    def effect(connection: Any, records: list[Any]) -> None:
        for record in records:
            connection.execute(insert, (record.value().decode(),))
        connection.execute(f"UPDATE totals SET effects = effects + {len(records)}")

    return effect


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
