"""Idempotent consumption: each record has its effect once, despite crashes, redelivery and retries.

`Ledger` defines the guarantees (ledger.py opens with the theory of operation). `SQLiteLedger`,
`PostgresLedger` and `DeltaLedger` store it in the database or table that the effects write to.
"""

from pykafka_core.idempotent.consumer import Batch, IdempotentConsumer
from pykafka_core.idempotent.delta.ledger import DeltaLedger
from pykafka_core.idempotent.ids import ID_SIZE_MAX, IdSource, header_id, message_id
from pykafka_core.idempotent.ledger import (
    Ledger,
    PartitionKey,
    Retention,
    StatementLedger,
    Transaction,
)
from pykafka_core.idempotent.postgres.ledger import PostgresLedger
from pykafka_core.idempotent.sqlite import SQLiteLedger

__all__ = [
    "ID_SIZE_MAX",
    "Batch",
    "DeltaLedger",
    "IdSource",
    "IdempotentConsumer",
    "Ledger",
    "PartitionKey",
    "PostgresLedger",
    "Retention",
    "SQLiteLedger",
    "StatementLedger",
    "Transaction",
    "header_id",
    "message_id",
]
