"""A ledger in a Delta Lake table: rows and marks are one commit of its log. Needs deltalake (extra ``delta``).

Theory of operation. Delta's log keeps, for each *application id*, the last version that was committed under it. A mark
is one of them: the id is the text of group, topic id, topic and partition, the version is the next offset. Nothing is
locked. A transaction reads one version of the table, and its commit is tried against that version::

    begin       open the table; the marks are those of its version v
    effect      collects rows; nothing is written yet
    commit      one commit with the files of the rows and the marks. Where others committed since v, deltalake reads
                their commits: one with an application id of ours means that a mark moved, and ours is refused;
                otherwise it is tried again after them.

So of two transactions that process the same offsets one commits and the other raises `LedgerError`, with nothing
written that a reader can see. Each commit names all marks that the transaction may have decided by, also those that
stay where they are: only what is named is compared.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from pykafka_core.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent.ledger import PartitionKey
from pykafka_core.idempotent.sql import check_name

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_TRIES: Final = 1_000
"""How often a commit is tried after those of other writers; each lost try means that another one committed."""

RETENTION: Final = "delta.setTransactionRetentionDuration"
_SECRET: Final = re.compile(r"secret|password|token|key|credential|sas|signature", re.IGNORECASE)
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)"
)


def app_id(group: str, key: PartitionKey) -> str:
    """The application id of a mark: a JSON array, so that no two marks share a text."""
    return json.dumps(["pykafka-mark", group, key.topic_id.hex(), key.topic, key.partition])


def _marked(group: str, app: str) -> PartitionKey | None:
    """Whose mark an application id is; None if it is not one of the group's."""
    if not app.startswith('["pykafka-mark", '):
        return None
    _, of, topic_id, topic, partition = json.loads(app)
    return PartitionKey(bytes.fromhex(topic_id), topic, partition) if of == group else None


class DeltaRows:
    """What the effect writes to: rows of the commit to come."""

    def __init__(self, schema: "pa.Schema | None") -> None:
        self._schema, self._tables = schema, list["pa.Table"]()
        self._open = True

    @property
    def num_rows(self) -> int:
        """Rows appended so far."""
        return sum(table.num_rows for table in self._tables)

    def append(self, table: "pa.Table") -> None:
        """Add rows to the commit; they are in memory until then.

        Args:
            table: With the table's columns, in any order. Types may differ as far as no value changes (int32 for
                int64). Where there is no table yet, the first rows' schema becomes its own.

        Raises:
            LedgerSchemaError: Columns are missing, unknown, or have values that the table's types do not.
            UsageError: The transaction has ended.
        """
        import pyarrow as pa

        if not self._open:
            raise UsageError("the ledger's transaction has ended: append inside its with block")
        if not isinstance(table, pa.Table):
            raise UsageError(f"append takes a pyarrow.Table, not {type(table).__name__}")
        if self._schema is None:
            self._schema = table.schema
        self._tables.append(_fitted(table, self._schema))

    def collected(self) -> "pa.Table | None":
        """All rows, from the transaction; None if there are none."""
        import pyarrow as pa

        return pa.concat_tables(self._tables) if self.num_rows else None

    def finish(self) -> None:
        """From here on `append` is an error."""
        self._open = False


def _fitted(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    if sorted(table.column_names) != sorted(schema.names):
        raise LedgerSchemaError(
            f"the rows have the columns {', '.join(table.column_names)}, the Delta table has "
            f"{', '.join(schema.names)}: select and rename before the append, or alter the table"
        )
    try:
        fitted = table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise LedgerSchemaError(
            f"the rows do not fit the Delta table's columns: {error}"
        ) from error
    for field in schema:
        if not field.nullable and fitted[field.name].null_count:
            raise LedgerSchemaError(f"column {field.name} of the Delta table takes no nulls")
    return fitted


class DeltaTransaction:
    """One commit to come, of a whole group or of some of its partitions."""

    def __init__(
        self, marks: Mapping[PartitionKey, int], schema: "pa.Schema | None", *, whole_group: bool
    ) -> None:
        self._read, self._marks, self._whole_group = dict(marks), dict(marks), whole_group
        self._rows = DeltaRows(schema)
        self._open = True

    @property
    def connection(self) -> DeltaRows:
        """Where the effect appends its rows."""
        self._check_open()
        return self._rows

    def marks(self) -> dict[PartitionKey, int]:
        """The next offset to process of each partition; a commit that moves one makes ours fail."""
        self._check_open()
        return dict(self._marks)

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions.

        Raises:
            UsageError: A mark would go back, is no offset, or is not of the transaction's partitions.
        """
        self._check_open()
        for key, offset in marks.items():
            if not isinstance(key, PartitionKey) or len(key.topic_id) != 16:
                raise UsageError(f"a mark's key is a PartitionKey with 16 bytes of id, not {key!r}")
            if not self._whole_group and key not in self._marks:
                raise UsageError(f"the transaction is not of {key.topic}-{key.partition}")
            known = self._marks.get(key, 0)
            if type(offset) is not int or not known <= offset < 2**63:
                raise UsageError(
                    f"the mark of {key.topic}-{key.partition} cannot go from {known} to {offset!r}"
                )
        self._marks |= marks

    def claim(self, ids: Any) -> Any:
        """Nothing for no ids; a Delta table has no index that could keep any.

        Raises:
            UsageError: There are ids.
        """
        self._check_open()
        if len(ids):
            raise UsageError(
                "DeltaLedger keeps marks only, which stop redelivery. Drop what producers sent twice before the sink "
                "(spark_udfs.dedup), or claim ids in a PostgresLedger"
            )
        if not hasattr(ids, "__arrow_c_array__"):
            return []
        import pyarrow as pa

        return pa.array([], pa.bool_())

    def begin_batch(self, query_id: str, batch_id: int) -> NoReturn:
        """Not here: progress is counted by offsets.

        Raises:
            UsageError: Always.
        """
        raise UsageError(
            'DeltaLedger does not note batches: use progress="offsets", or a PostgresLedger'
        )

    def batches(self) -> dict[str, int]:
        """None were ever noted."""
        self._check_open()
        return {}

    def finish(self) -> None:
        """From here on every call is an error: the block has ended."""
        self._open = False
        self._rows.finish()

    def to_commit(self) -> "tuple[pa.Table | None, dict[PartitionKey, int]] | None":
        """The rows, if there are any, and all marks; None if nothing changes."""
        rows = self._rows.collected()
        moved = any(at != self._read.get(key, 0) for key, at in self._marks.items())
        return (rows, self._marks) if moved or rows is not None else None

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the ledger's transaction has ended: use it inside its with block")


class DeltaLedger:
    """A ledger in a Delta table, the one that the effect appends to. Marks only: it claims no ids.

    Transactions do not wait for each other, in contrast to those of the ledgers in databases: the second one of a
    partition fails at its commit. Rows that were appended and marks that moved are one commit; a transaction with
    neither writes nothing. It can be pickled. Only one thread at a time has a transaction; others wait.

    A table that does not exist is created by the first rows, with their schema. Make it yourself to partition it or to
    set its properties.

    Args:
        table_uri: A path, or a URL that deltalake knows: ``s3://bucket/table``, ``abfss://…``, ``gs://…``.
        storage_options: As for ``deltalake.DeltaTable``. Passwords in it stay out of errors and repr, and are pickled.

    Raises:
        ConfigurationError: Arguments that cannot be used; an option by which commits may overwrite each other.
        ImportError: deltalake is not installed.
    """

    def __init__(self, table_uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        _check_arguments(table_uri, storage_options)
        _deltalake()
        self._uri, self._options = table_uri, dict(storage_options or {})
        self._name = f"Delta table {_public(table_uri)}"
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._process = os.getpid()
        self._closed = False

    @contextmanager
    def transaction(self, group: str) -> Iterator[DeltaTransaction]:
        """Open a transaction of all of a group's partitions; it commits at the end of the block.

        Raises:
            LedgerError: A mark of the group moved since the block began: nothing was committed, try again.
            LedgerUnavailableError: The storage does not answer. During the commit: the next transaction's marks say
                whether it took place.
            LedgerSchemaError: Rows that do not fit, or a table that forgets its marks.
            UsageError: A transaction within a transaction.
        """
        check_name("group", group)
        with self._committing(group, lambda table: self._all_marks(table, group), True) as begun:
            yield begun

    @contextmanager
    def partitions_transaction(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> Iterator[DeltaTransaction]:
        """Open a transaction of some of a group's partitions; as `transaction`, but for this:

        Those of other partitions commit beside it. It knows and moves the marks of its own partitions.
        """
        check_name("group", group)
        keys = sorted(set(partitions))

        def read(table: Any) -> dict[PartitionKey, int]:
            return {key: table.transaction_version(app_id(group, key)) or 0 for key in keys}

        with self._committing(group, read, False) as begun:
            yield begun

    def close(self) -> None:
        """Wait for the open transaction; afterwards there are none. Closing twice is no error."""
        if self._process != os.getpid():
            return
        if self._owner == threading.get_ident():
            raise UsageError("close within a transaction of this ledger")
        with self._lock:
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DeltaLedger({self._name})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled, it is what it was made with, the passwords of its options too."""
        return _ledger, (self._uri, self._options)

    @contextmanager
    def _committing(
        self, group: str, read: Callable[[Any], dict[PartitionKey, int]], whole_group: bool
    ) -> Generator[DeltaTransaction]:
        with self._alone():
            with self._errors():
                table = self._opened()
                marks = read(table) if table else read(_NoTable())
                schema = _arrow_schema(table) if table else None
            transaction = DeltaTransaction(marks, schema, whole_group=whole_group)
            try:
                yield transaction
                commit = transaction.to_commit()
            finally:
                transaction.finish()
            if commit is not None:
                rows, moved = commit
                with self._errors():
                    self._commit(table or self._created(rows, read, marks), rows, group, moved)

    def _opened(self) -> Any:
        """The table as it is now; None if there is none."""
        deltalake = _deltalake()
        if not deltalake.DeltaTable.is_deltatable(self._uri, self._options):
            return None
        table = deltalake.DeltaTable(self._uri, storage_options=self._options)
        if RETENTION in table.metadata().configuration:
            raise LedgerSchemaError(
                f"{self._name}: its property {RETENTION} makes it forget marks, and records would be processed again; "
                "unset it"
            )
        return table

    def _created(
        self,
        rows: "pa.Table | None",
        read: Callable[[Any], dict[PartitionKey, int]],
        known: Mapping[PartitionKey, int],
    ) -> Any:
        """An empty table for these rows, or the one that another process made meanwhile."""
        deltalake = _deltalake()
        if rows is None:
            raise LedgerSchemaError(
                f"{self._name}: there is no table yet and no row that tells its columns, so the marks cannot be kept. "
                "Create it: deltalake.DeltaTable.create(uri, schema)"
            )
        try:
            deltalake.DeltaTable.create(
                self._uri, rows.schema, mode="error", storage_options=self._options
            )
        except Exception:
            if self._opened() is None:
                raise
        table = self._opened()
        if read(table) != known:
            raise LedgerError(f"{self._name}: {_MOVED}")
        _fitted(rows, _arrow_schema(table))
        return table

    def _commit(
        self, table: Any, rows: "pa.Table | None", group: str, marks: Mapping[PartitionKey, int]
    ) -> None:
        deltalake = _deltalake()
        properties = deltalake.CommitProperties(
            max_commit_retries=COMMIT_TRIES,
            app_transactions=[
                deltalake.Transaction(app_id(group, key), offset) for key, offset in marks.items()
            ],
        )
        if rows is None:
            table.create_write_transaction(
                [], "append", table.schema(), commit_properties=properties
            )
        else:
            deltalake.write_deltalake(table, rows, mode="append", commit_properties=properties)

    def _all_marks(self, table: Any, group: str) -> dict[PartitionKey, int]:
        """deltalake looks up one application id, and lists none: the log itself is read."""
        if isinstance(table, _NoTable):
            return {}
        versions = _application_versions(table)
        keys = {app: _marked(group, app) for app in versions}
        return {key: versions[app] for app, key in keys.items() if key is not None}

    @contextmanager
    def _alone(self) -> Generator[None]:
        if self._process != os.getpid():
            raise ForkedError(f"{self!r} was made by the parent process; make one in the child")
        if self._owner == threading.get_ident():
            raise UsageError(f"{self!r}: a transaction within a transaction")
        with self._lock:
            if self._closed:
                raise ClosedError(f"{self!r} was closed")
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    @contextmanager
    def _errors(self) -> Generator[None]:
        """deltalake's errors as the ledger's; it raises ``Exception`` itself too. The cause is left out: it may repeat
        an option's password."""
        from deltalake.exceptions import DeltaProtocolError, SchemaMismatchError

        try:
            yield
        except (LedgerError, UsageError):
            raise
        except (DeltaProtocolError, SchemaMismatchError) as error:
            raise LedgerSchemaError(self._text(error)) from None
        except Exception as error:
            if "oncurrent transaction" in str(error):
                raise LedgerError(f"{self._name}: {_MOVED}") from None
            raise LedgerUnavailableError(self._text(error)) from None

    def _text(self, error: Exception) -> str:
        text = str(error).replace(self._uri, _public(self._uri))
        for option, value in self._options.items():
            if value and _SECRET.search(option):
                text = text.replace(value, "***")
        return f"{self._name}: {type(error).__name__}: {text}"


_MOVED: Final = (
    "another transaction moved a mark of this one meanwhile; nothing of this one was committed. "
    "Read the marks again"
)


class _NoTable:
    """A table that does not exist yet has no versions."""

    def transaction_version(self, app: str) -> None:
        return None


def _ledger(uri: str, options: Mapping[str, str]) -> DeltaLedger:
    return DeltaLedger(uri, storage_options=options)


def _arrow_schema(table: Any) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _application_versions(table: Any) -> dict[str, int]:
    """The last version of every application id: from the newest checkpoint and the commits after it.

    Raises:
        LedgerError: A commit that is needed is not there.
    """
    import pyarrow.fs as fs
    from deltalake.fs import DeltaStorageHandler

    files = fs.PyFileSystem(DeltaStorageHandler.from_table(table._table))
    names = {
        info.base_name
        for info in files.get_file_info(fs.FileSelector("_delta_log", recursive=False))
    }
    at, parts = _newest_checkpoint(names, table.version())
    versions: dict[str, int] = {}
    for part in parts:
        versions |= _of_checkpoint(files, f"_delta_log/{part}")
    for version in range(at + 1, table.version() + 1):
        commit = f"{version:020}.json"
        if commit not in names:
            raise LedgerError(f"the table's log has no {commit}, and no checkpoint after it")
        versions |= _of_json(files, f"_delta_log/{commit}")
    return versions


def _newest_checkpoint(names: Iterable[str], version_max: int) -> tuple[int, list[str]]:
    """Version and files of the newest whole checkpoint up to ``version_max``; -1 and none if there is none."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in sorted(names):
        match = _CHECKPOINT.fullmatch(name)
        if match is None or int(match[1]) > version_max:
            continue
        count = int(match[3] or 1)
        found.setdefault((int(match[1]), count), []).append(name)
    # Several of one part at a version are alternatives: one of them is enough.
    whole = {
        at: names if count > 1 else names[:1]
        for (at, count), names in found.items()
        if len(names) >= count
    }
    at = max(whole, default=-1)
    return at, whole.get(at, [])


def _of_checkpoint(files: Any, path: str) -> dict[str, int]:
    if path.endswith(".json"):
        return _of_json(files, path)
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(files.open_input_file(path))
    if "txn" not in parquet.schema_arrow.names:
        return {}
    actions = parquet.read(columns=["txn"])["txn"].drop_null().to_pylist()
    return {action["appId"]: action["version"] for action in actions if action["appId"] is not None}


def _of_json(files: Any, path: str) -> dict[str, int]:
    with files.open_input_stream(path) as stream:
        actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
    txns = [action["txn"] for action in actions if "txn" in action]
    return {txn["appId"]: txn["version"] for txn in txns}


def _check_arguments(table_uri: object, options: object) -> None:
    if not isinstance(table_uri, str) or not table_uri:
        raise ConfigurationError(
            [f"table_uri must be a path or URL, not {type(table_uri).__name__}"]
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
