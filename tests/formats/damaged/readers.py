"""Our readers of a partition: the library, Arrow, `repair` and the broker."""

import contextlib
import io
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from pykafka_core import Broker
from pykafka_core._records import Record, RecordBatchReader
from pykafka_core.cli.errors import CliError
from pykafka_core.cli.files.repair import repair
from pykafka_core.errors import KafkaError, LocalError, error_of
from pykafka_core.log import Log
from pykafka_core.protocol import messages as m
from tests.formats.damaged.damage import HEAD, boundaries
from tests.formats.damaged.results import CRASH, Result, Rows, row
from tests.support.wire import Connection

FETCH, LIST_OFFSETS, EARLIEST = 1, 2, -2
KEPT: Final = {"log.retention.ms": "-1"}
"""Times of the corpus are years ago: retention would take them."""

OnDamage = Literal["raise", "stop"]


def by_log(folder: Path, *, read_only: bool, on_damage: OnDamage = "raise") -> Result:
    """Iterate the log."""
    rows: Rows = []

    def read() -> None:
        with Log.open(folder, read_only=read_only, on_damage=on_damage) as log:
            rows.extend(map(_row, log))

    return _result(rows, read)


def by_arrow(folder: Path) -> Result:
    """Make one table of all records."""
    rows: Rows = []

    def read() -> None:
        with Log.open(folder, read_only=True) as log:
            table = pa.table(log.to_arrow())
        times = table["timestamp"].cast(pa.int64())
        columns = (table["offset"], times, table["key"], table["value"])
        rows.extend(map(row, *(column.to_pylist() for column in columns)))

    return _result(rows, read)


def by_repair(folder: Path) -> Result:
    """Run `repair --yes`, then iterate the log."""
    rows: Rows = []
    shown = io.StringIO()

    def read() -> None:
        with contextlib.redirect_stdout(shown):
            repair(folder, yes=True, keep=False, as_json=False)
        with Log.open(folder, read_only=True) as log:
            rows.extend(map(_row, log))

    result = _result(rows, read)
    result.report = "\n".join(line for line in shown.getvalue().splitlines() if " would " in line)
    return result


def _result(rows: Rows, read: Callable[[], None]) -> Result:
    error = None
    try:
        read()
    except (LocalError, KafkaError, CliError) as caught:
        error = f"{type(caught).__name__}: {caught}"
    except BaseException as caught:  # a panic is not an Exception
        if isinstance(caught, KeyboardInterrupt):
            raise
        error = f"{CRASH} {type(caught).__name__}: {caught}"
    return Result(rows, error)


def _row(record: Record) -> tuple[int, str]:
    return row(record.offset, record.timestamp, record.key, record.value)


def by_broker(cases: Mapping[str, Path], scratch: Path, *, clean: bool) -> dict[str, Result]:
    """Fetch all records from a broker whose topics are these partitions.

    Afterwards the folders are as the broker left them. Its log messages about a partition are the
    report.
    """
    data = scratch / "data"
    _create(data, cases, clean=clean)
    try:
        with _messages() as texts, Broker(data, listeners="127.0.0.1:0", config=KEPT) as broker:
            found = {name: _consumed(broker, name) for name in cases}
    except (LocalError, KafkaError) as error:
        found = {name: Result(error=f"{type(error).__name__}: {error}") for name in cases}
    for name, folder in cases.items():
        shutil.rmtree(folder)
        shutil.move(data / f"{name}-0", folder)
        reports = [text for text in texts if f"{name}-0" in text]
        found[name].report = "; ".join(reports)
    shutil.rmtree(data)
    return found


def _create(data: Path, cases: Mapping[str, Path], *, clean: bool) -> None:
    with Broker(data, listeners="127.0.0.1:0") as broker:
        for name in cases:
            broker.create_topic(name, 1)
    for name, folder in cases.items():
        place = data / f"{name}-0"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder, place, copy_function=shutil.copyfile)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()


@contextlib.contextmanager
def _messages() -> Iterator[list[str]]:
    """The errors and warnings that the package logs inside."""
    texts: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    handler = Kept(logging.WARNING)
    logger = logging.getLogger("pykafka_core")
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)


def _consumed(broker: Broker, topic: str) -> Result:
    """The records from the beginning to the high watermark."""
    result = Result()
    topic_id = broker._image().topics.by_name[topic].topic_id
    try:
        with Connection(broker.bootstrap_servers) as connection:
            _consume(connection, topic, topic_id, result)
    except KafkaError as error:
        result.error = f"{type(error).__name__}: {error}"
    return result


def _consume(connection: Connection, topic: str, topic_id: bytes, result: Result) -> None:
    position = _earliest(connection, topic)
    while True:
        answer = connection.ask(FETCH, 16, _fetch(topic_id, position)).responses[0].partitions[0]
        _check(answer.error_code)
        before = position
        batches = RecordBatchReader(bytes(answer.records or b""), start=position)
        for record in batches:
            result.rows.append(_row(record))
        position = _end_of(bytes(answer.records or b""), position)
        if position >= answer.high_watermark:
            return
        if position == before:
            result.error = f"stuck at {position} of {answer.high_watermark}"
            return


def _end_of(batches: bytes, position: int) -> int:
    """The offset after the last whole batch, or ``position`` if that is higher."""
    for place in boundaries(batches)[:-1]:
        offset = HEAD.unpack_from(batches, place)[0]
        delta = int.from_bytes(batches[place + 23 : place + 27]) if batches[place + 16] == 2 else 0
        position = max(position, offset + delta + 1)
    return position


def _earliest(connection: Connection, topic: str) -> int:
    partition = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    wanted = m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
    request = m.ListOffsetsRequest(replica_id=-1, topics=[wanted])
    found = connection.ask(LIST_OFFSETS, 9, request).topics[0].partitions[0]
    _check(found.error_code)
    return int(found.offset)


def _fetch(topic_id: bytes, position: int) -> m.FetchRequest:
    partition = m.FetchRequest.FetchPartition(
        partition=0, fetch_offset=position, partition_max_bytes=1 << 20
    )
    wanted = m.FetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])
    return m.FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted], session_epoch=-1)


def _check(code: int) -> None:
    if code:
        raise error_of(code)()
