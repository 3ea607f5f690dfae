"""Transactions of the PostgreSQL ledger, for a whole group or for some of its partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Self

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.ledger import PartitionKey, Retention
from pykafka_core.idempotent.postgres import ids as postgres_ids
from pykafka_core.idempotent.postgres_driver import driver_errors, own_cursor, query_rows
from pykafka_core.idempotent.sql import Inserted, SqlTransaction, marks_rolled_back
from pykafka_core.idempotent.statements.checks import quoted

NUMBER: Final = "pg_current_xact_id()::text::bigint"
"""Expression for the number of the database transaction."""

# For one transaction. Commits must be durable; names in SQL_ASCII would be compared as other names.
_DURABLE: Final = "set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), true)"
_TEXT: Final = "set_config('client_encoding', replace(current_setting('client_encoding'), 'SQL_ASCII', 'UTF8'), true)"


@dataclass(frozen=True, kw_only=True)
class Session:
    """Settings that are applied at the start of each transaction.

    Attributes:
        schema: Schema of the ledger's tables; statements name it, because an effect may change the
            search path.
        search_path: The search path of the new connection.
        timeout_ms: How long to wait for a lock.
    """

    schema: str
    search_path: str
    timeout_ms: int

    @property
    def quoted(self) -> str:
        """The schema, quoted for statements with parameters."""
        return quoted(self.schema).replace("%", "%%")

    @classmethod
    def opened(cls, connection: Any, timeout_ms: int) -> Self:
        """Return the session of a new connection and apply its settings to the open transaction."""
        connection.execute(
            f"SELECT set_config('lock_timeout', %s, true), {_TEXT}", [f"{timeout_ms}"]
        )
        query = "SELECT current_schema(), current_setting('search_path')"
        [(schema, search_path)] = query_rows(connection, query)
        return cls(schema=schema or "", search_path=search_path, timeout_ms=timeout_ms)

    def begin(self, connection: Any) -> int:
        """Apply the settings; return the transaction's number."""
        query = (
            f"SELECT {NUMBER}, set_config('lock_timeout', %s, true), set_config('search_path', %s, true), "
            f"{_DURABLE}, {_TEXT}"
        )
        number: int = query_rows(connection, query, (str(self.timeout_ms), self.search_path))[0][0]
        return number


class PostgresTransaction(SqlTransaction):
    """A transaction with its own cursors, independent of settings that the effect changes."""

    _IS_SAME = f"{NUMBER} = ?"

    def __init__(
        self,
        psycopg: ModuleType,
        connection: Any,
        name: str,
        session: Session,
        group: str,
        retention: Retention,
        now_ms: int,
    ) -> None:
        self._psycopg, self._name, self._session = psycopg, name, session
        with driver_errors(psycopg, name):
            self._number = session.begin(connection)
        super().__init__(connection, group, retention, now_ms)

    def settle(self) -> None:
        """As the last step, check that this transaction is the open one, and make it durable."""
        super().settle()
        if self._rows(f"SELECT {NUMBER}, {_DURABLE}")[0][0] != self._number:
            raise self._ended()

    def _is_in_transaction(self) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return bool(self._connection.info.transaction_status != idle)

    def _ended(self) -> UsageError:
        [(fate,)] = self._rows("SELECT pg_xact_status(?::text::xid8)", [self._number])
        left = (
            "it was committed: the writes of the effect until then are kept, and so are the claimed ids, whose rows "
            "are not processed again. Its later writes may be repeated"
            if fate == "committed"
            else "it was rolled back, and the marks are as before. Later writes of the effect, outside of it, may be "
            "repeated"
        )
        return UsageError(
            f"the effect ended the ledger's transaction: {left}. An effect writes, the ledger commits; let errors pass "
            "out of it, or use connection.transaction() for savepoints"
        )

    def _sql(self, statement: str) -> str:
        return statement.replace("?", "%s").replace("main.", f"{self._session.quoted}.")

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with driver_errors(self._psycopg, self._name):
            return query_rows(self._connection, self._sql(statement), values)

    def _run(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        with driver_errors(self._psycopg, self._name), own_cursor(self._connection) as cursor:
            cursor.executemany(self._sql(statement), rows)
            count: int = cursor.rowcount
            return count

    _GROUP_LOCK = "pg_advisory_xact_lock"
    """Take an advisory lock: row locks and updates create row versions and can deadlock."""

    def _select_group(self, group: str) -> list[tuple[Any, ...]]:
        number = "hashtextextended('pykafka ' || ?::text || ' ' || ?::text, 0)"
        self._rows(f"SELECT {self._GROUP_LOCK}({number})", (self._session.schema, group))
        # A separate statement, which sees commits that happened while it waited for the lock.
        return self._rows(
            "SELECT group_key, ids_count FROM main.pykafka_groups WHERE name = ?", (group,)
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
        self, ids: Any, insert: Callable[[postgres_ids.Target, Sequence[int], Any], bytearray]
    ) -> Inserted:
        counter = (
            "SELECT nextval(pg_get_serial_sequence(?, 'first_seq')) FROM generate_series(1, ?)"
        )
        count = postgres_ids.blocks_needed(len(ids))
        claims = f"{quoted(self._session.schema)}.pykafka_claims"
        blocks = [number for (number,) in self._rows(counter, [claims, count])]
        with (
            driver_errors(self._psycopg, self._name),
            own_cursor(self._connection, binary=True) as cursor,
        ):
            target = postgres_ids.Target(cursor, self._session.quoted, self._group_key)
            mask = insert(target, blocks, ids)
        return Inserted(mask, postgres_ids.claims_of(blocks, mask))


class PartitionsTransaction(PostgresTransaction):
    """A transaction of some of a group's partitions.

    Others of the group may be open concurrently, but none of the whole group. Each partition is
    locked by the row of its mark, and the group by a shared lock. Two transactions that claim the
    same id wait for each other at the unique index: `claim` inserts in the order of the ids, and
    only once, so that there is no deadlock. The group's row, which counts the ids, is updated last.
    """

    _GROUP_LOCK = "pg_advisory_xact_lock_shared"

    def __init__(
        self,
        psycopg: ModuleType,
        connection: Any,
        name: str,
        session: Session,
        group: str,
        retention: Retention,
        now_ms: int,
        partitions: Iterable[PartitionKey],
    ) -> None:
        super().__init__(psycopg, connection, name, session, group, retention, now_ms)
        self._claimed: list[int] | None = None
        """The first ``seq`` of each claim."""
        self._marks = {key: self._lock_mark(key) for key in sorted(set(partitions))}

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Reject the call: batches belong to the whole group.

        Raises:
            UsageError: Always.
        """
        raise UsageError("batches are noted in a transaction of the whole group")

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions, which must be locked."""
        foreign = sorted(marks.keys() - self.marks().keys())
        if foreign:
            raise UsageError(f"the transaction is not of {foreign[0].topic}-{foreign[0].partition}")
        super().advance(marks)

    def settle(self) -> None:
        """Count the ids last: the transaction that holds the group's row waits for nothing else."""
        self._check_open()
        if self._claimed:
            # Claims of a rolled-back savepoint do not count.
            self._run(
                "UPDATE main.pykafka_groups g SET ids_count = g.ids_count + coalesce((SELECT c.ids_count FROM "
                "main.pykafka_claims c WHERE c.group_key = g.group_key AND c.first_seq = ?), 0) WHERE g.group_key = ?",
                [(first_seq, self._group_key) for first_seq in self._claimed],
            )
        super().settle()

    def _check_marks(self) -> None:
        query = (
            "SELECT next_offset FROM main.pykafka_marks "
            "WHERE group_key = ? AND topic_id = ? AND topic = ? AND partition = ?"
        )
        for key, offset in self._known_marks().items():
            if self._rows(query, (self._group_key, *key)) != [(offset,)]:
                raise marks_rolled_back()

    def _lock_mark(self, key: PartitionKey) -> int:
        rows = self._rows(
            "INSERT INTO main.pykafka_marks (group_key, topic_id, topic, partition, next_offset) "
            "VALUES (?, ?, ?, ?, 0) ON CONFLICT (group_key, topic_id, topic, partition) "
            "DO UPDATE SET next_offset = pykafka_marks.next_offset RETURNING next_offset",
            (self._group_key, *key),
        )
        offset: int = rows[0][0]
        return offset

    def _claim(self, ids: Any, insert: Callable[[Any], Inserted]) -> Inserted:
        if self._claimed is not None:
            raise UsageError("a transaction of partitions claims once, with all its ids")
        self._claimed = []
        inserted = super()._claim(ids, insert)
        self._claimed = [claim.first_seq for claim in inserted.claims if claim.ids_count]
        return inserted

    def _forget(self) -> None:
        """Do nothing: only transactions of the whole group delete ids."""

    def _count_ids(self, change: int) -> None:
        """Do nothing: ids are counted at the end of the transaction."""
