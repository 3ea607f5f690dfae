"""A database in memory with effects and a ledger, which can be restored to an earlier state."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pyarrow as pa

from pykafka_core.errors import UsageError
from pykafka_core.idempotent import PartitionKey, SQLiteLedger
from pykafka_core.idempotent.sql import SqlTransaction
from pykafka_core.idempotent.sqlite import SQLiteTransaction
from tests.spark.sink.histories.cluster import Record


class PartitionsTransaction(SQLiteTransaction):
    """Like PostgreSQL's: it has and moves only the marks of its partitions."""

    def own(self, partitions: Iterable[PartitionKey]) -> "PartitionsTransaction":
        known = self.marks()
        self._marks = {key: known.get(key, 0) for key in partitions}
        return self

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        if foreign := marks.keys() - self.marks().keys():
            raise UsageError(f"the transaction is not of {foreign}")
        super().advance(marks)

    def _check_marks(self) -> None:
        """Do nothing: other marks are missing here, and there are no savepoints."""


class Memory(sqlite3.Connection):
    """A database in memory that outlives the ledger's connections, which reconnect after errors."""

    def close(self) -> None:
        """Do nothing; `end` closes it."""

    def end(self) -> None:
        super().close()


class PartitionsLedger(SQLiteLedger):
    """SQLite as a server with a lock per partition: tasks of the model never run concurrently."""

    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> AbstractContextManager[SqlTransaction]:
        def begin(connection: sqlite3.Connection, group: str) -> SqlTransaction:
            transaction = PartitionsTransaction(
                connection, self._name, group, self._retention, self._clock()
            )
            return transaction.own(partitions)

        return self._transaction(group, begin)


class Backup(NamedTuple):
    content: bytes
    left_out: frozenset[tuple[str, Record]]


class Database:
    """Effects and progress of all groups."""

    def __init__(self) -> None:
        self.connection = Memory(":memory:", check_same_thread=False)
        self.connection.execute(
            "CREATE TABLE effects (reader TEXT, topic_id BLOB, partition INT, at INT, id BLOB)"
        )
        self._open()
        with self.ledger.transaction("g"):
            """Create the tables."""
        self.left_out: set[tuple[str, Record]] = set()
        """Records that each group was allowed to skip."""

    def _open(self) -> None:
        connection = self.connection
        self.ledger = PartitionsLedger(lambda: connection)

    def back_up(self) -> Backup:
        return Backup(self.connection.serialize(), frozenset(self.left_out))

    def put_back(self, backup: Backup) -> None:
        """Restore a backup; every later transaction finds its marks."""
        self.close()
        self.connection = Memory(":memory:", check_same_thread=False)
        self.connection.deserialize(backup.content)
        self._open()
        self.left_out = set(backup.left_out)

    def close(self) -> None:
        self.ledger.close()
        self.connection.end()

    def marks(self, group: str) -> dict[PartitionKey, int]:
        rows = self.connection.execute(
            "SELECT topic_id, topic, partition, next_offset FROM pykafka_marks "
            "JOIN pykafka_groups USING (group_key) WHERE name = ?",
            [group],
        )
        return {PartitionKey(bytes(uid), topic, number): at for uid, topic, number, at in rows}

    def effects(self, group: str) -> Counter[Record]:
        """Return how often each record had its effect."""
        query = "SELECT topic_id, partition, at FROM effects WHERE reader = ?"
        return Counter(self.connection.execute(query, [group]))

    def effects_by_id(self, group: str) -> Counter[bytes]:
        """Return how often each message had its effect."""
        query = "SELECT id FROM effects WHERE reader = ?"
        return Counter(value for (value,) in self.connection.execute(query, [group]))


def effect_of(group: str, then: Callable[[], None]) -> Callable[[Any, pa.Table], None]:
    """Return an effect that stores the records of its calls.

    Args:
        then: Called after the write; may raise.
    """

    def effect(connection: Any, table: pa.Table) -> None:
        columns = (table[name].to_pylist() for name in ("topic_id", "partition", "offset", "id"))
        rows = [(group, *row) for row in zip(*columns, strict=True)]
        connection.executemany("INSERT INTO effects VALUES (?, ?, ?, ?, ?)", rows)
        then()

    return effect


class CurrentLedger:
    """The current ledger, as a server's address. Closing it closes only the caller's connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transaction(self, group: str) -> AbstractContextManager[SqlTransaction]:
        return self._database.ledger.transaction(group)

    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> AbstractContextManager[SqlTransaction]:
        return self._database.ledger.partitions_transaction(group, partitions)

    def close(self) -> None: ...
