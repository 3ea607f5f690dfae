"""Duplicates removed in Spark: from tables, from streams by ids that a folder remembers, from redelivery by marks.

`dedup_offsets` is the cheapest and knows redelivery only; `dedup_stream` remembers ids and knows producers that send
twice too; `dedup_batch` looks at one table, or one micro-batch, alone.
"""

from spark_udfs.dedup.batch import dedup_batch
from spark_udfs.dedup.fingerprints import fingerprint
from spark_udfs.dedup.offsets import dedup_offsets
from spark_udfs.dedup.stream import dedup_stream

__all__ = ["dedup_batch", "dedup_offsets", "dedup_stream", "fingerprint"]
