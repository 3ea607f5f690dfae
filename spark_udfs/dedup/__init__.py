"""Deduplication in Spark: of tables, of streams by remembered ids, and of redelivery by offsets.

`dedup_offsets` is the cheapest and removes only redelivery; `dedup_stream` remembers ids and also
removes duplicates that producers sent; `dedup_batch` handles one table, or one micro-batch, alone.
"""

from spark_udfs.dedup.batch import dedup_batch
from spark_udfs.dedup.fingerprints import fingerprint
from spark_udfs.dedup.offsets import dedup_offsets
from spark_udfs.dedup.stream import dedup_stream

__all__ = ["dedup_batch", "dedup_offsets", "dedup_stream", "fingerprint"]
