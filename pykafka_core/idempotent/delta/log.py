"""Application versions in the log of a Delta table: how a ledger stores and reads its state.

Delta's log stores the last version committed for each *application id*; its checkpoints include
them. deltalake can look up a single id. To list the ids of a group, the log itself is read: the
newest checkpoint and the commits after it. Source: the Delta transaction log protocol, sections
"Transaction Identifiers" and "Checkpoints".
"""

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from pykafka_core.errors import LedgerUnavailableError
from pykafka_core.idempotent.ledger import PartitionKey

_MARK, _BATCH = "pykafka-mark", "pykafka-batch"
_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)"
)


def mark_id(group: str, key: PartitionKey) -> str:
    """Return the application id of a mark: an unambiguous JSON array. Its version is the mark."""
    return json.dumps([_MARK, group, key.topic_id.hex(), key.topic, key.partition])


def batch_id(group: str, query_id: str) -> str:
    """Return the application id of a query. Its version is the query's last batch."""
    return json.dumps([_BATCH, group, query_id])


def marked(app: str) -> PartitionKey | None:
    """Return the partition of a group's application id; None if it is of a query."""
    kind, _, *rest = json.loads(app)
    if kind != _MARK:
        return None
    topic_id, topic, partition = rest
    return PartitionKey(bytes.fromhex(topic_id), topic, partition)


def query_of(app: str) -> str | None:
    """Return the query of a group's application id; None if it is of a mark."""
    kind, _, *rest = json.loads(app)
    return rest[0] if kind == _BATCH else None


def looked_up(table: Any, apps: Iterable[str]) -> dict[str, int]:
    """Return the versions of these application ids in a ``DeltaTable``; 0 if missing."""
    return {app: table.transaction_version(app) or 0 for app in apps}


def of_group(table: Any, group: str) -> dict[str, int]:
    """Return the versions of all application ids of a group in a ``DeltaTable``.

    Raises:
        LedgerUnavailableError: Another writer removed a needed part of the log during the read.
    """
    prefixes = tuple(json.dumps([kind, group])[:-1] + "," for kind in (_MARK, _BATCH))
    found = _all_versions(table)
    return {app: version for app, version in found.items() if app.startswith(prefixes)}


def newest_commit(table: Any) -> object:
    """Return the identity of the file of the table's last commit, with one storage request.

    It is equal for a ``DeltaTable`` that was opened earlier, unless another table replaced it.
    """
    found = _files(table).get_file_info(f"_delta_log/{table.version():020}.json")
    return found.type, found.size, found.mtime_ns


def _files(table: Any) -> Any:
    import pyarrow.fs as fs
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler.from_table(table._table))


def _all_versions(table: Any) -> dict[str, int]:
    import pyarrow.fs as fs

    files = _files(table)
    names = {info.base_name for info in files.get_file_info(fs.FileSelector("_delta_log"))}
    at, parts = newest_checkpoint(names, table.version())
    versions: dict[str, int] = {}
    for part in parts:
        versions |= _of_checkpoint(files, f"_delta_log/{part}")
    for version in range(at + 1, table.version() + 1):
        commit = f"{version:020}.json"
        if commit not in names:
            raise LedgerUnavailableError(
                f"the Delta table's log has no {commit}, and no checkpoint from there on that this program knows"
            )
        versions |= _of_json(files, f"_delta_log/{commit}")
    return versions


def newest_checkpoint(names: Collection[str], version_max: int) -> tuple[int, list[str]]:
    """Return version and files of the newest complete checkpoint up to ``version_max``.

    Without one, return -1 and no files.

    Args:
        names: All files of the log.
    """
    found: dict[tuple[int, int], list[str]] = {}
    for name in sorted(names):
        match = _CHECKPOINT.fullmatch(name)
        if match is not None and int(match[1]) <= version_max:
            found.setdefault((int(match[1]), int(match[2] or 1)), []).append(name)
    # Files with the same version and part number are alternatives; any of them is sufficient.
    whole = {
        version: parts[:1] if count == 1 else parts
        for (version, count), parts in found.items()
        if len(parts) >= count
    }
    newest = max(whole, default=-1)
    return newest, whole.get(newest, [])


def _of_checkpoint(files: Any, path: str) -> dict[str, int]:
    if path.endswith(".json"):
        return _of_json(files, path)
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(files.open_input_file(path))
    if "txn" not in parquet.schema_arrow.names:
        return {}
    # One column needs no threads. Threads that outlive the interpreter would abort the process.
    actions = parquet.read(columns=["txn"], use_threads=False)["txn"].drop_null().to_pylist()
    return {action["appId"]: action["version"] for action in actions if action["appId"] is not None}


def _of_json(files: Any, path: str) -> dict[str, int]:
    with files.open_input_stream(path) as stream:
        lines = stream.read().splitlines()
    # Most lines describe data files, with statistics; they are not parsed.
    actions = [json.loads(line).get("txn") for line in lines if b'"txn"' in line]
    return {action["appId"]: action["version"] for action in actions if action is not None}
