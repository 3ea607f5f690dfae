"""The rows of a task, or of a batch on the driver, as one table in bounded memory."""

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

import pyarrow as pa

MEMORY_BYTES: Final = 64 << 20
"""Rows of more bytes than this are written to a file in the process's temporary folder
(``$TMPDIR``)."""


@contextmanager
def spooled(
    batches: Iterator[pa.RecordBatch], memory_bytes: int = MEMORY_BYTES
) -> Iterator[pa.Table]:
    """Yield all rows as a table that is valid within the block. Empty input has no columns.

    A file is memory-mapped, so the system loads and evicts its pages as needed.
    """
    held, size = [], 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            break
    else:
        yield pa.Table.from_batches(held) if held else pa.table({})
        return
    with tempfile.TemporaryFile(
        prefix="pykafka-spool-"
    ) as file:  # unnamed, so it is always removed
        with pa.ipc.new_file(file, held[0].schema) as writer:
            for batch in chain(held, batches):
                writer.write_batch(batch)
        file.flush()
        del held, batch
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield pa.ipc.open_file(pa.py_buffer(mapped)).read_all()
