"""Transactions of the ledger in PostgreSQL: of a whole group, and of some of its partitions."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pykafka_core.errors import LedgerError, LedgerUnavailableError, UsageError
from pykafka_core.idempotent import postgres_ids
from pykafka_core.idempotent.ledger import PartitionKey, Retention
from pykafka_core.idempotent.sql import Inserted, SqlTransaction


class PostgresTransaction(SqlTransaction):
    """Statements go through cursors of their own, whatever the effect sets on the connection."""

    def __init__(
        self,
        psycopg: ModuleType,
        connection: Any,
        name: str,
        group: str,
        retention: Retention,
        now_ms: int,
    ) -> None:
        self._psycopg, self._name = psycopg, name
        super().__init__(connection, group, retention, now_ms)

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with driver_errors(self._psycopg, self._name):
            return query_rows(self._connection, statement.replace("?", "%s"), values)

    def _run(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with driver_errors(self._psycopg, self._name), self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)

    _GROUP_LOCK = "pg_advisory_xact_lock"
    """By number, not by row: a lock of a row that is shared and updated is a chain of versions, which can deadlock."""

    def _select_group(self, group: str) -> list[tuple[Any, ...]]:
        number = "hashtextextended('pykafka ' || current_schema() || ' ' || ?, 0)"
        self._rows(f"SELECT {self._GROUP_LOCK}({number})", (group,))
        # A statement of its own, to see what was committed while the lock was waited for.
        return self._rows(
            "SELECT group_key, ids_count FROM pykafka_groups WHERE name = ?", (group,)
        )

    def _insert_ids(self, ids: list[bytes]) -> Inserted:
        inserted = self._insert(ids, postgres_ids.insert_list)
        return inserted._replace(mask=list(map(bool, inserted.mask)))

    def _insert_arrow_ids(self, ids: Any) -> Inserted:
        import numpy as np
        import pyarrow as pa

        inserted = self._insert(ids, postgres_ids.insert_arrow)
        return inserted._replace(mask=pa.array(np.frombuffer(inserted.mask, "?")))

    def _insert(
        self, ids: Any, insert: Callable[[Any, int, Sequence[int], Any], bytearray]
    ) -> Inserted:
        counter = "SELECT nextval(pg_get_serial_sequence('pykafka_claims', 'first_seq')) FROM generate_series(1, ?)"
        count = postgres_ids.blocks_needed(len(ids))
        blocks = [number for (number,) in self._rows(counter, [count])]
        with driver_errors(self._psycopg, self._name), self._own_cursor() as cursor:
            mask = insert(cursor, self._group_key, blocks, ids)
        return Inserted(mask, postgres_ids.claims_of(blocks, mask))

    def _own_cursor(self) -> Any:
        from psycopg.rows import tuple_row

        return self._connection.cursor(row_factory=tuple_row, binary=True)


class PartitionsTransaction(PostgresTransaction):
    """Of some of a group's partitions: beside it others of the group may be open, but none of the whole group.

    Each of its partitions is locked by the row of its mark, and the group by a lock that such transactions share. Two
    that claim one id wait for each other at the unique index: `claim` inserts in the order of the ids, and only once,
    so that they never wait in a circle. The group's row, which counts the ids, is changed last.
    """

    _GROUP_LOCK = "pg_advisory_xact_lock_shared"

    def __init__(
        self,
        psycopg: ModuleType,
        connection: Any,
        name: str,
        group: str,
        retention: Retention,
        now_ms: int,
        partitions: Iterable[PartitionKey],
    ) -> None:
        super().__init__(psycopg, connection, name, group, retention, now_ms)
        self._claimed: int | None = None
        self._marks = {key: self._lock_mark(key) for key in sorted(set(partitions))}

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Batches are the whole group's.

        Raises:
            UsageError: Always.
        """
        raise UsageError("batches are noted in a transaction of the whole group")

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions, all of which are locked."""
        foreign = sorted(marks.keys() - self.marks().keys())
        if foreign:
            raise UsageError(f"the transaction is not of {foreign[0].topic}-{foreign[0].partition}")
        super().advance(marks)

    def settle(self) -> None:
        """Count the ids: who holds the group's row waits for nothing any more."""
        super().settle()
        if self._claimed:
            self._run(
                "UPDATE pykafka_groups SET ids_count = ids_count + ? WHERE group_key = ?",
                [(self._claimed, self._group_key)],
            )

    def _lock_mark(self, key: PartitionKey) -> int:
        rows = self._rows(
            "INSERT INTO pykafka_marks (group_key, topic_id, topic, partition, next_offset) "
            "VALUES (?, ?, ?, ?, 0) ON CONFLICT (group_key, topic_id, topic, partition) "
            "DO UPDATE SET next_offset = pykafka_marks.next_offset RETURNING next_offset",
            (self._group_key, *key),
        )
        offset: int = rows[0][0]
        return offset

    def _claim(self, ids: Any, insert: Callable[[Any], Inserted]) -> Inserted:
        if self._claimed is not None:
            raise UsageError("a transaction of partitions claims once, with all its ids")
        self._claimed = 0
        return super()._claim(ids, insert)

    def _forget(self) -> None:
        """Left to transactions of the whole group."""

    def _count_ids(self, change: int) -> None:
        self._claimed = change


@contextmanager
def driver_errors(psycopg: ModuleType, name: str) -> Generator[None]:
    """The driver's errors as the ledger's."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise LedgerUnavailableError(f"{name}: {error}") from error
    except psycopg.Error as error:
        raise LedgerError(f"{name}: {error}") from error


def query_rows(
    connection: Any, statement: str, values: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """As tuples, whatever the connection makes of rows."""
    from psycopg.rows import tuple_row

    with connection.cursor(row_factory=tuple_row) as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(statement, values or None).fetchall()
        return rows
