"""Transactions of the Delta ledger: rows and application versions that become one commit."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.deduplication import check_mark
from pykafka_core.idempotent.delta.log import batch_id as batch_app
from pykafka_core.idempotent.delta.log import mark_id, marked, query_of
from pykafka_core.idempotent.delta.rows import DeltaRows
from pykafka_core.idempotent.ids import arrow_ids, is_arrow
from pykafka_core.idempotent.ledger import PartitionKey
from pykafka_core.idempotent.sql import check_name

if TYPE_CHECKING:
    import pyarrow as pa

VERSION_MAX: Final = 2**63 - 1
"""Versions are signed 64-bit integers."""

IDS_REFUSED: Final = (
    "a DeltaLedger keeps no message ids, only marks, which stop redelivery. Leave ids out and remove what "
    "producers sent twice before it (spark_udfs.dedup_stream), or use a PostgresLedger"
)


class DeltaTransaction:
    """The next commit, of a whole group or of some of its partitions.

    Args:
        group: The group.
        versions: Its application versions as read; the commit fails if one of them changed.
        schema: The Delta table's schema; None if there is no table yet.
        whole_group: False: only the marks among ``versions`` may move.
    """

    def __init__(
        self,
        group: str,
        versions: Mapping[str, int],
        schema: "pa.Schema | None",
        *,
        whole_group: bool,
    ) -> None:
        self._group, self._read, self._whole_group = group, versions, whole_group
        self._versions = dict(versions)
        self._rows = DeltaRows(schema)
        self._open = True

    @property
    def connection(self) -> DeltaRows:
        """The collector to which the effect appends rows."""
        self._check_open()
        return self._rows

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Return False if this or a later batch of the query is already committed."""
        self._check_open()
        check_name("query_id", query_id)
        if not self._whole_group:
            raise UsageError("batches are noted in a transaction of the whole group")
        if type(batch_id) is not int or not 0 <= batch_id <= VERSION_MAX:
            raise UsageError(f"batch_id is an integer from 0, not {batch_id!r}")
        app = batch_app(self._group, query_id)
        if batch_id <= self._versions.get(app, -1):
            return False
        self._versions[app] = batch_id
        return True

    def batches(self) -> dict[str, int]:
        """Return the last committed batch of each query."""
        self._check_open()
        queries = {query_of(app): version for app, version in self._versions.items()}
        return {query: version for query, version in queries.items() if query is not None}

    def marks(self) -> dict[PartitionKey, int]:
        """Return the next offset of each partition; the commit fails if one moves concurrently."""
        self._check_open()
        keys = {marked(app): version for app, version in self._versions.items()}
        return {key: version for key, version in keys.items() if key is not None}

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions.

        Raises:
            UsageError: A mark would decrease, is not an offset, or is of another partition.
        """
        known = self.marks()
        for key, offset in marks.items():
            check_mark(key, offset, known.get(key, 0))
            if not self._whole_group and key not in known:
                raise UsageError(f"the transaction is not of {key.topic}-{key.partition}")
        self._versions |= {mark_id(self._group, key): offset for key, offset in marks.items()}

    def claim(self, ids: Any) -> Any:
        """Return an empty mask if there are no ids: a Delta table has no unique index for ids.

        Raises:
            UsageError: There are ids.
        """
        self._check_open()
        arrow = is_arrow(ids)
        if not arrow and (isinstance(ids, bytes | str) or not isinstance(ids, Sequence)):
            raise UsageError(
                f"claim takes a sequence of bytes or an Arrow array, not {type(ids).__name__}"
            )
        if len(arrow_ids(ids) if arrow else ids):
            raise UsageError(IDS_REFUSED)
        if not arrow:
            return []
        import pyarrow as pa

        return pa.array([], pa.bool_())

    def settled(self) -> "tuple[pa.Table | None, Mapping[str, int]] | None":
        """Return rows and application versions to commit; None if there are none.

        Unchanged versions are included: only ids that a commit names are compared with other
        commits.

        Raises:
            UsageError: Rows without progress: if the result of the commit were lost, they would be
                appended twice.
        """
        rows = self._rows.collected()
        moved = any(at != self._read.get(app, 0) for app, at in self._versions.items())
        moved |= any(query_of(app) is not None for app in self._versions.keys() - self._read.keys())
        if rows is not None and not moved:
            raise UsageError(
                "rows were appended and no mark moved: advance the marks to the end of the records of these rows"
            )
        return (rows, self._versions) if moved else None

    def finish(self) -> None:
        """Mark the transaction as ended; later calls raise an error."""
        self._open = False
        self._rows.finish()

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the ledger's transaction has ended: use it inside its with block")
