"""Spark's daemon that forks Python workers, with pandas and pyarrow loaded once for all of them.

Importing them in each worker takes longer than the work of most tests. The value of
``spark.python.daemon.module``.
"""

import pandas as _pandas  # noqa: F401
import pyarrow as _pyarrow  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
