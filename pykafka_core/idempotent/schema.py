"""The ledger's tables: one definition of names, columns and DDL for every database.

=================  ===============================================================================
pykafka_ledger     one row: the version of these tables
pykafka_groups     a group's integer key, which the other tables use, and its number of ids
pykafka_marks      the next offset to process of each partition
pykafka_batches    the last committed batch of each query
pykafka_ids        message ids; ``seq`` is in the range of the claim that recorded the id
pykafka_claims     one row per claim: its time and its range of ``seq``, inclusive; for retention
=================  ===============================================================================
"""

from collections.abc import Mapping
from typing import Final

VERSION: Final = 1

# Placeholders: {integer}: 64 bits; {bytes}; {serial}: a 64-bit key that the database generates;
# {counter}: the same, but a value may be given; {seq}: the table's own row order if the database
# has one, which is free, else a plain integer.
_COLUMNS: Final = {
    "pykafka_ledger": {"version": "{integer} NOT NULL"},
    "pykafka_groups": {
        "group_key": "{serial} PRIMARY KEY",
        "name": "text NOT NULL UNIQUE",
        "ids_count": "{integer} NOT NULL",
    },
    "pykafka_marks": {
        "group_key": "{integer} NOT NULL",
        "topic_id": "{bytes} NOT NULL",
        "topic": "text NOT NULL",
        "partition": "{integer} NOT NULL",
        "next_offset": "{integer} NOT NULL",
    },
    "pykafka_batches": {
        "group_key": "{integer} NOT NULL",
        "query_id": "text NOT NULL",
        "batch_id": "{integer} NOT NULL",
    },
    "pykafka_ids": {
        "seq": "{seq}",
        "group_key": "{integer} NOT NULL",
        "id": "{bytes} NOT NULL",
    },
    "pykafka_claims": {
        "group_key": "{integer} NOT NULL",
        "first_seq": "{counter} NOT NULL",
        "last_seq": "{integer} NOT NULL",
        "ids_count": "{integer} NOT NULL",
        "claimed_at_ms": "{integer} NOT NULL",
    },
}
_KEYS: Final = {
    "pykafka_marks": "PRIMARY KEY (group_key, topic_id, topic, partition)",
    "pykafka_batches": "PRIMARY KEY (group_key, query_id)",
    "pykafka_ids": "UNIQUE (group_key, id)",
    "pykafka_claims": "PRIMARY KEY (group_key, first_seq)",
}

NAMES: Final = tuple(_COLUMNS)


def columns_of(table: str) -> list[str]:
    """Return the columns in order."""
    return list(_COLUMNS[table])


def create_statements(types: Mapping[str, str]) -> list[str]:
    """Return the statements that create all tables, with the placeholders of one database."""
    return [_create(table).format_map(types) for table in NAMES]


def _create(table: str) -> str:
    parts = [f"{name} {kind}" for name, kind in _COLUMNS[table].items()]
    if table in _KEYS:
        parts.append(_KEYS[table])
    return f"CREATE TABLE {table} ({', '.join(parts)})"
