"""A ledger in a Delta Lake table: one log commit has rows and marks. Needs deltalake (``delta``).

Theory of operation. For each *application id*, Delta's log stores the last committed version. Each
mark uses one: the id is the text of group, topic id, topic and partition, the version is the next
offset. There are no locks. A transaction reads one version of the table and commits against it::

    begin       open the table; the marks are those of its version v
    effect      collects rows; nothing is written yet
    commit      one commit with the files of the rows and the marks. If other commits followed v,
                deltalake reads them: if one names an application id of ours, our commit fails.
                Otherwise our commit is put after them

So of two transactions that process the same offsets, one commits, and the other raises
`LedgerError`; it has written nothing that a reader can see. A commit names all marks that its
transaction read, including unchanged ones, because only named ids are compared.

Some commits make ours fail without having moved a mark: rows were deleted, or the table was
altered. The marks are then read again. If they are unchanged, the commit is retried against the
version that they were read from.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
)
from pykafka_core.idempotent.delta.log import looked_up, mark_id, newest_commit, of_group
from pykafka_core.idempotent.delta.rows import check_partitioning, fitted, storable
from pykafka_core.idempotent.delta.transaction import IDS_REFUSED, DeltaTransaction
from pykafka_core.idempotent.ledger import PartitionKey
from pykafka_core.idempotent.single_thread import OneAtATime
from pykafka_core.idempotent.sql import check_name

if TYPE_CHECKING:
    import pyarrow as pa

FOLLOWING_TRIES: Final = 1_000
"""deltalake's attempts to commit after others; a failed one means that another writer committed."""

REFUSED_TRIES: Final = 10
"""Attempts after conflicts that moved no mark. Each attempt writes the files of the rows again."""

RETENTION: Final = "delta.setTransactionRetentionDuration"
_ALMOST_A_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)|~")
_SECRET: Final = re.compile(r"secret|password|token|key|credential|sas|signature", re.IGNORECASE)

Reader = Callable[[Any], dict[str, int]]
"""Returns the application versions that a transaction depends on; None means no table yet."""


class DeltaLedger(OneAtATime):
    """A ledger in the Delta table that the effect appends to. It has marks and batches, but no ids.

    In contrast to ledgers in databases, its transactions do not wait for each other: of two that
    process the same partition, the later one raises an error at its commit. Appended rows and
    advanced marks are one commit; a transaction with neither writes nothing. A ledger can be
    pickled. It runs one transaction at a time; other threads wait.

    A table that does not exist is created by the first rows, with their schema. Create it yourself
    to partition it or to set its properties, and if marks are committed before rows, as with
    effects on Spark's executors.

    Args:
        table_uri: A path, or a URL supported by deltalake: ``s3://bucket/table``, ``abfss://…``,
            ``gs://…``.
        storage_options: As for ``deltalake.DeltaTable``. Secrets in it are left out of errors and
            repr, but are pickled.

    Raises:
        ConfigurationError: An argument is invalid, or an option lets commits overwrite each other.
        ImportError: deltalake or pyarrow is not installed.
    """

    ids_refused: Final = IDS_REFUSED
    """Why ids cannot be claimed; callers that need ids can check it early."""

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        _check_arguments(table_uri, storage_options)
        super().__init__()
        self._deltalake = _deltalake()
        self._uri, self._options = _absolute(os.fspath(table_uri)), dict(storage_options or {})
        self._name = f"Delta table {_public(self._uri)}"

    @contextmanager
    def transaction(self, group: str) -> Iterator[DeltaTransaction]:
        """Open a transaction of all of a group's partitions; it commits at the end of the block.

        Raises:
            LedgerError: A mark of the group moved during the block. Nothing was committed: read the
                marks again.
            LedgerUnavailableError: The storage is not available. If that was during the commit, the
                marks of the next transaction show whether it took place.
            LedgerSchemaError: The rows do not fit, there is neither a table nor a row, or the table
                is configured to expire marks.
            UsageError: A nested transaction; or rows were appended, but no mark moved.
        """
        check_name("group", group)

        def read(table: Any) -> dict[str, int]:
            return {} if table is None else of_group(table, group)

        with self._committing(group, read, whole_group=True) as transaction:
            yield transaction

    @contextmanager
    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> Iterator[DeltaTransaction]:
        """Open a transaction of some of a group's partitions. Differences to `transaction`:

        Transactions of other partitions can commit concurrently. It reads and advances only the
        marks of these partitions.
        """
        check_name("group", group)
        apps = [mark_id(group, key) for key in sorted(set(partitions))]

        def read(table: Any) -> dict[str, int]:
            return dict.fromkeys(apps, 0) if table is None else looked_up(table, apps)

        with self._committing(group, read, whole_group=False) as transaction:
            yield transaction

    def __repr__(self) -> str:
        return f"DeltaLedger({self._name})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments, including secrets in options."""
        return _ledger, (self._uri, self._options)

    @contextmanager
    def _committing(
        self, group: str, read: Reader, *, whole_group: bool
    ) -> Generator[DeltaTransaction]:
        with self._alone():
            with self._errors():
                table = self._opened()
                versions = read(table)
                schema = None if table is None else _arrow_schema(table)
                newest = None if table is None else newest_commit(table)
            transaction = DeltaTransaction(group, versions, schema, whole_group=whole_group)
            try:
                yield transaction
                settled = transaction.settled()
            finally:
                transaction.finish()
            if settled is not None:
                rows, moved = settled

                def unmoved() -> Any:
                    table = self._opened()
                    if read(table) != versions:
                        raise LedgerError(
                            f"{self._name}: another transaction moved a mark of this one, and nothing of this one "
                            "was committed: read the marks again"
                        )
                    return table

                with self._errors():
                    if table is not None and newest_commit(table) != newest:
                        raise LedgerError(self._replaced())
                    self._commit(table, unmoved, rows, moved)

    def _opened(self) -> Any:
        """Return the table in its current version; None if it does not exist."""
        kind = self._deltalake.DeltaTable
        if not kind.is_deltatable(self._uri, self._options):
            return None
        table = kind(self._uri, storage_options=self._options)
        if RETENTION in table.metadata().configuration:
            raise LedgerSchemaError(
                f"{self._name}: its property {RETENTION} makes it forget marks, and records would be processed again; "
                "unset it"
            )
        return table

    def _commit(
        self,
        table: Any,
        unmoved: Callable[[], Any],
        rows: "pa.Table | None",
        versions: Mapping[str, int],
    ) -> None:
        """Commit after ``table``, or after a later version while ``unmoved`` returns one."""
        from deltalake.exceptions import CommitFailedError

        if table is None:
            self._create(rows)
            table = unmoved()
        for _ in range(REFUSED_TRIES):
            try:
                return self._write(table, rows, versions)
            except CommitFailedError as error:
                later = unmoved()
                if later is None or later.version() == table.version():
                    raise  # no other writer committed, so this commit itself is invalid
                if later.metadata().id != table.metadata().id:
                    raise LedgerError(self._replaced()) from None
                table, why = later, error
        raise LedgerUnavailableError(
            f"{self._name}: other writers deleted rows of it or altered it during each of {REFUSED_TRIES} tries: {why}"
        )

    def _replaced(self) -> str:
        return (
            f"{self._name}: it was removed or replaced by another table, and nothing of this transaction "
            "was committed: read the marks again"
        )

    def _create(self, rows: "pa.Table | None") -> None:
        """Create an empty table that fits these rows, unless another process creates one."""
        if rows is None:
            raise LedgerSchemaError(
                f"{self._name}: there is no table yet and no row to derive its columns from, so the marks cannot be "
                "kept. Create it: deltalake.DeltaTable.create(uri, schema)"
            )
        # By default deltalake retries after a concurrent creation, and replaces its schema.
        once = self._deltalake.CommitProperties(max_commit_retries=0)
        schema = storable(rows.schema)
        fitted(rows, _arrow_schema_of(self._deltalake.Schema.from_arrow(schema)))
        try:
            self._deltalake.DeltaTable.create(
                self._uri,
                schema,
                mode="error",
                storage_options=self._options,
                commit_properties=once,
            )
        except Exception:
            if self._opened() is None:
                raise

    def _write(self, table: Any, rows: "pa.Table | None", versions: Mapping[str, int]) -> None:
        transactions = [self._deltalake.Transaction(app, at) for app, at in versions.items()]
        properties = self._deltalake.CommitProperties(
            max_commit_retries=FOLLOWING_TRIES, app_transactions=transactions
        )
        if rows is None:
            schema, columns = table.schema(), table.metadata().partition_columns
            table.create_write_transaction(
                [], "append", schema, columns, commit_properties=properties
            )
        else:
            fitting = fitted(rows, _arrow_schema(table))
            check_partitioning(fitting, table.metadata().partition_columns)
            self._deltalake.write_deltalake(
                table,
                fitting,
                mode="append",
                commit_properties=properties,
            )

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Convert deltalake's errors, without their cause, which may contain secrets of options."""
        from deltalake.exceptions import DeltaError, DeltaProtocolError, SchemaMismatchError

        try:
            yield
        except (DeltaProtocolError, SchemaMismatchError) as error:
            raise LedgerSchemaError(self._text(error)) from None
        except OSError as error:
            raise LedgerUnavailableError(self._text(error)) from None
        except DeltaError as error:
            raise LedgerError(self._text(error)) from None
        except Exception as error:
            # deltalake also raises these types; other types are bugs, or our own errors.
            if type(error) is not Exception and not isinstance(error, ValueError | RuntimeError):
                raise
            raise LedgerError(self._text(error)) from None

    def _text(self, error: Exception) -> str:
        """Return the error's text without backtrace and secrets."""
        text = str(error).partition("\n   0: ")[0].replace(self._uri, _public(self._uri))
        for option, value in self._options.items():
            if value and _SECRET.search(option):
                text = text.replace(value, "***")
        return f"{self._name}: {type(error).__name__}: {text}"


def _ledger(uri: str, options: Mapping[str, str]) -> DeltaLedger:
    return DeltaLedger(uri, storage_options=options)


def _arrow_schema(table: Any) -> "pa.Schema":
    return _arrow_schema_of(table.schema())


def _arrow_schema_of(schema: Any) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(schema.to_arrow())


def _check_arguments(table_uri: object, options: object) -> None:
    if not isinstance(table_uri, str | os.PathLike) or not os.fspath(table_uri):
        raise ConfigurationError([f"table_uri must be a path or a URL, not {table_uri!r}"])
    if _ALMOST_A_URL.match(os.fspath(table_uri)):
        raise ConfigurationError(
            [
                f"table_uri {table_uri!r} would be a folder of this name in the working folder: a URL has two slashes "
                "after its scheme, a home folder is written out, and a path of this form begins with ./"
            ]
        )
    if not isinstance(options, Mapping | None) or any(
        not isinstance(part, str) for item in (options or {}).items() for part in item
    ):
        raise ConfigurationError(["storage_options must map text to text"])
    settings = {**os.environ, **(options or {})}
    problems = [
        f"{name}: commits could overwrite each other, and with them marks; leave it out"
        for name, value in settings.items()
        if ("allow_unsafe_rename" in name.lower() and value.lower() in ("true", "1", "yes", "on"))
        or (name.lower().endswith("conditional_put") and value.lower() == "disabled")
    ]
    if problems:
        raise ConfigurationError(problems)


def _absolute(uri: str) -> str:
    """Return an absolute path: executors may have another working directory."""
    return uri if "://" in uri else os.path.abspath(uri)


def _public(uri: str) -> str:
    """Return the URI without user, password, and query, which may contain a signature."""
    return re.sub(r"//[^/@:]*:[^/@]*@", "//", uri.partition("?")[0]) if "://" in uri else uri


def _deltalake() -> Any:
    try:
        import deltalake
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "DeltaLedger needs deltalake and pyarrow: pip install 'pykafka_core[delta]'"
        ) from error
    return deltalake
