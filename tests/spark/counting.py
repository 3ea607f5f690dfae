"""The crash suite's query, in the session of the tests or in a separate driver.

The driver is `python -m tests.spark.counting JSON`, with the fields of `Counting`, a master and the
point of a crash.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pykafka_core.idempotent import Ledger
from spark_udfs.sink.message_ids import message_header
from spark_udfs.sink.sink import IdempotentSink
from tests.idempotent.databases import database_at
from tests.spark.faults import DriversCrash, through_python
from tests.support.processes.crash import Crashed, CrashingLedger
from tests.support.spark.pipeline import COLUMNS, ID_HEADER, insert_values, run, stream
from tests.support.spark.session import start_session
from tests.support.spark.standalone import SPECULATIVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP = "bank"

Batch = Callable[["DataFrame", int], None]
Effect = Callable[[Any, Any], object]
Memory = Literal["ledger", "dropDuplicates"]
EffectOn = Literal["driver", "executors"]


@dataclass(frozen=True)
class Counting:
    """Counts a topic's records in a database, each message id once; ``memory`` stores the ids."""

    bootstrap: str
    topic: str
    database: str
    checkpoint: str
    trap: str
    memory: Memory = "ledger"
    effect_on: EffectOn = "driver"

    def run(self, spark: "SparkSession", ledger: Ledger, effect: Effect) -> None:
        """Run to the current end of the topic, in batches of about 50 records.

        Raises:
            StreamingQueryException: The query failed.
        """
        df = stream(spark, self.bootstrap, self.topic, maxOffsetsPerTrigger=50)
        df = through_python(df.selectExpr(*COLUMNS), Path(self.trap))
        count = self._by_ledger
        if self.memory == "dropDuplicates":
            df = df.withColumn("id", message_header(ID_HEADER)).dropDuplicates(["id"])
            count = self._whatever_comes
        run(df, Path(self.checkpoint), _reporting_crashes(count(ledger, effect)))

    def _by_ledger(self, ledger: Ledger, effect: Effect) -> Batch:
        ids = message_header(ID_HEADER)
        consumer = IdempotentSink(
            ledger,
            GROUP,
            ids,
            effect=effect,
            brokers=self.bootstrap,
            effect_on=self.effect_on,
        )
        return consumer.foreach_batch

    def _whatever_comes(self, ledger: Ledger, effect: Effect) -> Batch:
        """Use one transaction per batch, as with the ledger, but without claims and marks."""

        def batch(df: "DataFrame", batch_id: int) -> None:
            table = df.toArrow()
            with ledger.transaction(GROUP) as transaction:
                effect(transaction.connection, table)

        return batch

    def in_another_driver(self, **how: Any) -> list[str]:
        """Return the command; ``how`` is a master, and the arguments of a `Crash`."""
        return [sys.executable, "-m", "tests.spark.counting", json.dumps(asdict(self) | how)]


def slower(effect: Effect, seconds: float) -> Effect:
    """Delay the effect, more for higher partitions, so that Spark runs their tasks twice."""

    def slowly(connection: Any, table: Any) -> None:
        time.sleep(seconds * table["partition"][0].as_py())
        effect(connection, table)

    return slowly


def _reporting_crashes(count: Batch) -> Batch:
    """Convert crashes to exceptions, because only these pass the bridge to Java."""

    def batch(df: "DataFrame", batch_id: int) -> None:
        try:
            count(df, batch_id)
        except Crashed as crash:
            raise RuntimeError("crashed") from crash

    return batch


def main(master: str, crash: dict[str, Any] | None = None, seconds: float = 0, **what: Any) -> None:
    """Run the query with an effect that takes so many seconds longer per partition number."""
    counting = Counting(**what)
    database = database_at(counting.database)
    effect = slower(insert_values(database.placeholder), seconds)
    with tempfile.TemporaryDirectory() as folder, closing(database.ledger()) as ledger:
        spark = start_session(Path(folder), master, **(SPECULATIVE if seconds else {}))
        if crash is None:
            counting.run(spark, ledger, effect)
        else:
            dying = DriversCrash(**crash)
            counting.run(spark, CrashingLedger(ledger, dying), dying.effect(effect))
        spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
