"""Claims of ids in PostgreSQL: one statement, which returns the row numbers of the new ids.

Each number from the sequence of ``pykafka_claims`` stands for a block of `BLOCK` values of ``seq``,
from the number times `BLOCK` on. Row n of a claim gets value n of the claim's block (of its second
block after `BLOCK` rows, and so on). So the inserted values identify the new rows, and no id needs
to be returned. Earlier versions used the sequence number itself for all ids of a claim, which is
below every later block.

The ids are sent as one array parameter, or by COPY into a temporary table above
`PARAMETER_BYTES_MAX`. The numbers are returned packed, 4 bytes each: with
``COPY (INSERT … RETURNING) TO STDOUT`` the client would get every row as an object, which takes a
hundred times as long.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from pykafka_core.idempotent.sql import Claimed

BLOCK: Final = 1 << 24
PARAMETER_BYTES_MAX: Final = 4 << 20
"""Limit for a parameter; the server holds several copies. A temporary table takes 2 ms more."""

STAGING: Final = "pg_temp.pykafka_staged_ids"
_BYTEA, _BYTEA_ARRAY = 17, 1001  # type OIDs, which are the same in every server
_PARAMETER: Final = (
    "(SELECT id, n - 1 AS n FROM unnest(%b::bytea[]) WITH ORDINALITY AS u (id, n)) AS given"
)

# Ids are inserted in sorted order, so that concurrent claims of the same ids do not deadlock, and
# neighbours share index pages. Results are grouped by 65,536 rows to bound the size of a value.
_INSERT: Final = """
WITH inserted AS (
    INSERT INTO {schema}.pykafka_ids (seq, group_key, id)
    SELECT (%s::bigint[])[1 + (n / {block})::integer] * {block} + n %% {block}, %s::bigint, id
    FROM {source} ORDER BY id, n
    ON CONFLICT (group_key, id) DO NOTHING
    RETURNING seq
)
SELECT seq >> 16, string_agg(int4send((seq & 65535)::integer), ''::bytea) FROM inserted GROUP BY 1
"""

Mark = Callable[[bytearray, int, bytes], None]
"""Sets the mask's bytes at this start plus each packed number."""


class Target(NamedTuple):
    """The destination of a claim's ids.

    Attributes:
        schema: Schema of the ledger's tables, quoted for statements with parameters.
    """

    cursor: Any
    schema: str
    group_key: int


def blocks_needed(count: int) -> int:
    """Return the number of blocks for a claim of ``count`` ids."""
    return -(-count // BLOCK)


def claims_of(blocks: Sequence[int], mask: bytearray) -> list[Claimed]:
    """Return the range and the number of new ids of each block of a claim."""
    claims = []
    for place, block in enumerate(blocks):
        part = mask[place * BLOCK : (place + 1) * BLOCK]
        claims.append(Claimed(block * BLOCK, block * BLOCK + len(part) - 1, part.count(1)))
    return claims


def insert_list(target: Target, blocks: Sequence[int], ids: Sequence[bytes]) -> bytearray:
    """Insert the new ids.

    Returns:
        One byte per id: 1 if it was inserted (of equal ids, the first), else 0.
    """
    mask = bytearray(len(ids))
    if sum(map(len, ids)) <= PARAMETER_BYTES_MAX:
        _insert(target, blocks, _PARAMETER, [ids], mask, _mark_each)
        return mask
    with _staging(target.cursor) as copy:
        copy.set_types(["int8", "bytea"])
        for row in enumerate(ids):
            copy.write_row(row)
    _insert(target, blocks, STAGING, [], mask, _mark_each)
    return mask


def insert_arrow(target: Target, blocks: Sequence[int], ids: Any) -> bytearray:
    """Do the same for a chunked array, without a Python object per id."""
    mask = bytearray(len(ids))
    if ids.nbytes <= PARAMETER_BYTES_MAX:
        _register(target.cursor)
        _insert(target, blocks, _PARAMETER, [_encoded(ids)], mask, _mark_all)
        return mask
    from pykafka_core.idempotent.postgres import binary_copy

    with _staging(target.cursor) as copy:
        for piece in binary_copy.copy_stream(_numbered(ids)):
            copy.write(piece)
    _insert(target, blocks, STAGING, [], mask, _mark_all)
    return mask


def _mark_each(mask: bytearray, start: int, packed: bytes) -> None:
    for number in struct.unpack(f">{len(packed) // 4}i", packed):
        mask[start + number] = 1


def _mark_all(mask: bytearray, start: int, packed: bytes) -> None:
    import numpy as np

    np.frombuffer(mask, "u1")[start + np.frombuffer(packed, ">i4")] = 1


class _Encoded:
    """A bytea[] in PostgreSQL's binary format."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def _encoded(ids: Any) -> _Encoded:
    """Encode an array: dimensions, null flag, type, length, lower bound; sizes and values."""
    import pyarrow as pa

    from pykafka_core.idempotent.postgres import binary_copy

    field = pa.field("id", pa.large_binary())
    parts = [
        binary_copy.values_of(binary_copy.encoded(field, chunk.cast(field.type)))
        for chunk in ids.chunks
    ]
    return _Encoded(b"".join([struct.pack(">5i", 1, 0, _BYTEA, len(ids), 1), *parts]))


def _register(cursor: Any) -> None:
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class EncodedDumper(Dumper):
        format = Format.BINARY
        oid = _BYTEA_ARRAY

        def dump(self, obj: _Encoded) -> bytes:
            return obj.data

    cursor.adapters.register_dumper(_Encoded, EncodedDumper)


def _numbered(ids: Any) -> Any:
    """Return a reader of row numbers and ids."""
    import numpy as np
    import pyarrow as pa

    from pykafka_core.idempotent.postgres import binary_copy

    schema = pa.schema({"n": pa.int64(), "id": pa.large_binary()})

    def batches() -> Iterator[Any]:
        start = 0
        for chunk in ids.chunks:
            for piece in binary_copy.slices(chunk):
                numbers = pa.array(np.arange(start, start + len(piece), dtype="i8"))
                yield pa.record_batch([numbers, piece.cast(schema.types[1])], schema=schema)
                start += len(piece)

    return pa.RecordBatchReader.from_batches(schema, batches())


@contextmanager
def _staging(cursor: Any) -> Iterator[Any]:
    """Open a COPY of (n, id) into an empty temporary table."""
    cursor.execute(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {STAGING} (n bigint, id bytea) ON COMMIT DELETE ROWS"
    )
    cursor.execute(f"TRUNCATE {STAGING}")
    with cursor.copy(f"COPY {STAGING} (n, id) FROM STDIN (FORMAT binary)") as copy:
        yield copy


def _insert(
    target: Target,
    blocks: Sequence[int],
    source: str,
    values: list[Any],
    mask: bytearray,
    mark: Mark,
) -> None:
    statement = _INSERT.format(block=BLOCK, source=source, schema=target.schema)
    parameters = [list(blocks), target.group_key, *values]
    for high, packed in target.cursor.stream(statement, parameters, binary=True):
        block, rest = divmod(high << 16, BLOCK)
        mark(mask, blocks.index(block) * BLOCK + rest, packed)
