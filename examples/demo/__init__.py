"""The demo sends real data through a broker and back, with failures, and counts it with Spark.

Its parts are a round trip, a group that processes exactly once, three brokers that fail, and Spark.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from .exactly_once import compute_exactly_once
from .failover import survive
from .pipeline import check_spark, count_with_spark
from .records import prepare, progress_bars
from .round_trip import send_and_read_back

NEXT = """[bold]Where to go next[/bold]
  pykafka-core serve --data data              a broker for clients in any language
  pykafka-core topics create orders           then produce, consume, configs
  def test_it(kafka_topic, kafka_bootstrap_servers):   in pytest, the same broker inside your tests"""


def run(data: Path | None, count: int, spark: bool, plots: Path) -> None:
    """Run the demo and print the results.

    Args:
        data: The broker's data directory, which is kept; None creates a temporary one.
        count: The number of flights, from the first of the source.
        spark: Whether to run the last part, which needs Java, PySpark and its Kafka connector.
        plots: The folder for the plots of the last part.

    Raises:
        CliError: The records that were read are not the ones that were sent, or something that
            Spark needs is missing.
    """
    import confluent_kafka  # noqa: F401  (an error here comes before anything starts)

    from pykafka_core import Broker

    if spark:
        check_spark()
    console = Console()
    started = time.monotonic()
    with _directory(data) as directory, Broker(directory) as broker:
        ready_ms = (time.monotonic() - started) * 1000
        console.print(f"A broker serves at {broker.bootstrap_servers} after {ready_ms:.0f} ms.")
        with progress_bars(console) as progress:
            source = prepare(progress, count)
        send_and_read_back(broker, source, console)
        compute_exactly_once(broker, source, console)
        survive(source, console)
        if spark:
            count_with_spark(broker, source, console, plots)
    console.print(NEXT)


@contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    """The given directory, which is kept, or a temporary one."""
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="pykafka-core-demo-") as name:
        yield Path(name)
