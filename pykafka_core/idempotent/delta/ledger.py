"""A ledger in a Delta Lake table: rows and marks are one commit of its log. Needs deltalake (extra ``delta``).

Theory of operation. Delta's log keeps, for each *application id*, the last version that was committed under it. A mark
is one of them: the id is the text of group, topic id, topic and partition, the version is the next offset. Nothing is
locked. A transaction reads one version of the table, and its commit is tried against that version::

    begin       open the table; the marks are those of its version v
    effect      collects rows; nothing is written yet
    commit      one commit with the files of the rows and the marks. Where others committed since v, deltalake reads
                their commits: one that names an application id of ours refuses ours. Otherwise it follows them

So of two transactions that process the same offsets one commits, and the other raises `LedgerError` with nothing
written that a reader can see. A commit names all marks that its transaction read, also those that stay where they are:
only what is named is compared.

Some commits refuse ours without having moved a mark: rows were deleted, or the table was altered. Then the marks are
read again, and if they are those of the beginning, the commit is tried against the version that they were read from.
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
from pykafka_core.idempotent.alone import OneAtATime
from pykafka_core.idempotent.delta.log import looked_up, mark_id, newest_commit, of_group
from pykafka_core.idempotent.delta.rows import check_partitioning, fitted, storable
from pykafka_core.idempotent.delta.transaction import IDS_REFUSED, DeltaTransaction
from pykafka_core.idempotent.ledger import PartitionKey
from pykafka_core.idempotent.sql import check_name

if TYPE_CHECKING:
    import pyarrow as pa

FOLLOWING_TRIES: Final = 1_000
"""How often deltalake tries a commit behind others; each lost try means that another writer committed."""

REFUSED_TRIES: Final = 10
"""How often a commit is tried that others refused without moving a mark. Each try writes the rows' files again."""

RETENTION: Final = "delta.setTransactionRetentionDuration"
_ALMOST_A_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)|~")
_SECRET: Final = re.compile(r"secret|password|token|key|credential|sas|signature", re.IGNORECASE)

Reader = Callable[[Any], dict[str, int]]
"""The application versions that a transaction depends on, of a ``DeltaTable`` or of None, which is no table yet."""


class DeltaLedger(OneAtATime):
    """A ledger in a Delta table, the one that the effect appends to. It keeps marks and batches, and claims no ids.

    Unlike those in databases, its transactions do not wait for each other: of two of a partition, the later one raises
    at its commit. Rows that were appended and marks that moved are one commit; a transaction with neither writes
    nothing. It can be pickled. Within one ledger, one thread at a time has a transaction; others wait.

    A table that does not exist is created by the first rows, with their schema. Make it yourself to partition it or to
    set its properties, and where marks come before rows, as with effects on Spark's executors.

    Args:
        table_uri: A path, or a URL that deltalake knows: ``s3://bucket/table``, ``abfss://…``, ``gs://…``.
        storage_options: As for ``deltalake.DeltaTable``. Secrets in it stay out of errors and repr, and are pickled.

    Raises:
        ConfigurationError: Arguments that cannot be used; an option by which commits may overwrite each other.
        ImportError: deltalake or pyarrow is not installed.
    """

    ids_refused: Final = IDS_REFUSED
    """Why ids cannot be claimed, for those who would, to say so before they begin."""

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
            LedgerError: A mark of the group moved since the block began. Nothing was committed: read the marks again.
            LedgerUnavailableError: The storage does not answer. If that was during the commit, the next transaction's
                marks say whether it took place.
            LedgerSchemaError: Rows that do not fit, no table and no row, or a table that forgets its marks.
            UsageError: A transaction within a transaction; rows were appended and no mark moved.
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
        """Open a transaction of some of a group's partitions; as `transaction`, but for this:

        Those of other partitions commit beside it. It knows and moves the marks of its own partitions.
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
        """Pickled, it is what it was made with, the secrets of its options too."""
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
                            f"{self._name}: another transaction moved a mark of this one meanwhile, and nothing of "
                            "this one was committed: read the marks again"
                        )
                    return table

                with self._errors():
                    if table is not None and newest_commit(table) != newest:
                        raise LedgerError(self._replaced())
                    self._commit(table, unmoved, rows, moved)

    def _opened(self) -> Any:
        """The table as it is now; None if there is none."""
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
        """Commit against ``table``, or behind it as long as ``unmoved`` gives a later state."""
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
                    raise  # Nobody else committed: it is this commit that cannot be.
                if later.metadata().id != table.metadata().id:
                    raise LedgerError(self._replaced()) from None
                table, why = later, error
        raise LedgerUnavailableError(
            f"{self._name}: other writers deleted rows of it or altered it during each of {REFUSED_TRIES} tries: {why}"
        )

    def _replaced(self) -> str:
        return (
            f"{self._name}: it was removed meanwhile, or another table took its place, and nothing of this transaction "
            "was committed: read the marks again"
        )

    def _create(self, rows: "pa.Table | None") -> None:
        """Make an empty table for these rows, if it can hold them, unless another process makes one meanwhile."""
        if rows is None:
            raise LedgerSchemaError(
                f"{self._name}: there is no table yet and no row that tells its columns, so the marks cannot be kept. "
                "Create it: deltalake.DeltaTable.create(uri, schema)"
            )
        # By default deltalake tries again behind a table that was created meanwhile, and so replaces its schema.
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
        """deltalake's errors as the ledger's. Their cause is left out: it may repeat an option's secret."""
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
            # deltalake raises these too; others are bugs, or errors of ours.
            if type(error) is not Exception and not isinstance(error, ValueError | RuntimeError):
                raise
            raise LedgerError(self._text(error)) from None

    def _text(self, error: Exception) -> str:
        """What went wrong, without backtrace and secrets."""
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
    """Executors may stand in another folder."""
    return uri if "://" in uri else os.path.abspath(uri)


def _public(uri: str) -> str:
    """Without user and password, and without a query, which may be a signature."""
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
