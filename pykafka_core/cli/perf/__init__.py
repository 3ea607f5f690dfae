"""``perf``: measure a running broker as a client sees it."""

from typing import Annotated, Literal

import typer

from pykafka_core.cli.options import Acks, Bootstrap, Json

app = typer.Typer(
    help="Measure produce, consume and latency of a running broker.", no_args_is_help=True
)

RECORDS_MAX = 10**12
SIZE_MAX = 2**30
Topic = Annotated[str, typer.Argument(help="An existing topic.")]
Size = Annotated[int, typer.Option(min=1, max=SIZE_MAX, help="Size of each value in bytes.")]


@app.command()
def produce(
    topic: Topic,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, max=RECORDS_MAX, help="Number of records.")
    ] = 100_000,
    size: Size = 100,
    acks: Acks = "all",
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(help="Compression of batches."),
    ] = "none",
    linger_ms: Annotated[
        int, typer.Option(min=0, max=60_000, help="How long a batch waits for more records.")
    ] = 5,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Send records as fast as the broker accepts them. Ctrl-C stops and shows the result so far.

    For example: `pykafka-core perf produce t --records 1000000 --size 100 --acks 1`
    """
    from .produce import PerfProduceOptions, perf_produce

    perf_produce(
        PerfProduceOptions(
            topic=topic,
            bootstrap=bootstrap,
            records=records,
            size=size,
            acks=acks,
            compression=compression,
            linger_ms=linger_ms,
            as_json=as_json,
        )
    )


@app.command()
def consume(
    topic: Topic,
    records: Annotated[
        int | None,
        typer.Option(
            "--records", "-n", min=1, max=RECORDS_MAX, help="Number of records; default: all."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Read a topic from its beginning as fast as possible, with one consumer without a group.

    For example: `pykafka-core perf consume t --records 1000000 --json`
    """
    from .consume import PerfConsumeOptions, perf_consume

    perf_consume(
        PerfConsumeOptions(topic=topic, bootstrap=bootstrap, records=records, as_json=as_json)
    )


@app.command()
def latency(
    topic: Topic,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, max=RECORDS_MAX, help="Number of round trips.")
    ] = 1_000,
    size: Size = 100,
    acks: Acks = "all",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Send records one by one through partition 0; measure the time until a consumer receives each.

    For example: `pykafka-core perf latency t --records 5000 --acks 1`
    """
    from .latency import PerfLatencyOptions, perf_latency

    perf_latency(
        PerfLatencyOptions(
            topic=topic,
            bootstrap=bootstrap,
            records=records,
            size=size,
            acks=acks,
            as_json=as_json,
        )
    )
