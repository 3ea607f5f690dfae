"""A sink into a Delta Lake table: rows and marks are one commit of the table."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pykafka_core.errors import ConfigurationError, UsageError
from pykafka_core.idempotent import DeltaLedger
from spark_udfs.sink import IdempotentSink
from tests.idempotent.delta.delta_tables import contents
from tests.support.brokers import Serve
from tests.support.spark.pipeline import Sent, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("effect_on", ["driver", "executors"])
def test_each_record_is_in_the_table_once_over_batches_and_a_new_checkpoint(
    serve: Serve, spark: "SparkSession", tmp_path: Path, effect_on: Literal["driver", "executors"]
) -> None:
    sent = [Sent(n % 3, f"order {n:02}") for n in range(60)]
    with serve() as broker, DeltaLedger(str(tmp_path / "orders")) as ledger:
        broker.create_topic("orders", partitions=3)
        send(broker.bootstrap_servers, "orders", sent[:45])
        sink = IdempotentSink(
            ledger,
            "g",
            effect=lambda table, rows: table.append(rows),
            brokers=broker.bootstrap_servers,
            effect_on=effect_on,
        )
        df = stream(spark, broker.bootstrap_servers, "orders", maxOffsetsPerTrigger=30)
        df = df.selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        run(df, tmp_path / "first", sink.foreach_batch)
        send(broker.bootstrap_servers, "orders", sent[45:])
        for checkpoint in ("first", "new"):
            run(df, tmp_path / checkpoint, sink.foreach_batch)
    assert sorted(contents(str(tmp_path / "orders"))["value"].to_pylist()) == [
        one.value for one in sent
    ]
    assert sink.statistics().processed == sink.statistics().redelivered == 60


@pytest.mark.parametrize("effect_on", ["driver", "executors"])
def test_ids_are_rejected_before_the_first_batch_in_the_words_of_the_claim(
    tmp_path: Path, effect_on: Literal["driver", "executors"]
) -> None:
    with DeltaLedger(tmp_path / "orders") as ledger:
        with pytest.raises(UsageError) as claim, ledger.transaction("g") as transaction:
            transaction.claim([b"id"])
        with pytest.raises(ConfigurationError) as refusal:
            IdempotentSink(
                ledger,
                "g",
                "id",
                effect=lambda table, rows: table.append(rows),
                brokers="localhost:9092",
                effect_on=effect_on,
            )
    assert refusal.value.problems == (str(claim.value),)
