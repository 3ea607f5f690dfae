"""A SQL statement as a sink's effect: exact in both forms, and refused if no ledger can run it."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException

from pykafka_core.errors import ConfigurationError
from pykafka_core.idempotent import DeltaLedger, Ledger, SQLiteLedger
from spark_udfs.sink.message_ids import message_header
from spark_udfs.sink.rows import micro_batch
from spark_udfs.sink.sink import IdempotentSink
from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase, effects
from tests.support.brokers import Brokers, Serve
from tests.support.spark.pipeline import COLUMNS, Sent, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC, GROUP, PARTITIONS = "orders", "billing", 3
# Adds up, so that repeated records show. In the order of the keys, because tasks run concurrently.
ADD = """
    INSERT INTO totals
    SELECT value, count(*) FROM staged GROUP BY value ORDER BY value
    ON CONFLICT (value) DO UPDATE SET n = totals.n + excluded.n
"""


class Form(NamedTuple):
    """Where the effect runs, and its database."""

    database: Database
    effect_on: Literal["driver", "executors"]

    @property
    def is_postgres(self) -> bool:
        return isinstance(self.database, PostgresDatabase)

    def totals(self) -> dict[str, int]:
        return dict(self.database.run("SELECT value, n FROM totals"))

    def forbid(self, value: str) -> Callable[[], None]:
        """Make the database refuse totals of one value; return the function that ends this."""
        if self.is_postgres:
            self.database.run(
                f"ALTER TABLE totals ADD CONSTRAINT no_room CHECK (value <> '{value}')"
            )
            return lambda: list.clear(
                self.database.run("ALTER TABLE totals DROP CONSTRAINT no_room")
            )
        self.database.run(
            f"CREATE TRIGGER no_room BEFORE INSERT ON totals WHEN NEW.value = '{value}' "
            "BEGIN SELECT RAISE(ABORT, 'no_room'); END"
        )
        return lambda: list.clear(self.database.run("DROP TRIGGER no_room"))


@pytest.fixture(
    params=[
        ("sqlite", "driver"),
        pytest.param(("postgres", "driver"), marks=pytest.mark.postgres),
        pytest.param(("postgres", "executors"), marks=pytest.mark.postgres),
    ],
    ids=" on the ".join,
)
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Form:
    kind, effect_on = request.param
    database: Database = (
        PostgresDatabase(request.getfixturevalue("postgres_dsn"))
        if kind == "postgres"
        else SQLiteDatabase(tmp_path / "ledger.db")
    )
    database.run("CREATE TABLE totals (value TEXT PRIMARY KEY, n INTEGER NOT NULL)")
    return Form(database, effect_on)


@pytest.fixture
def ledger(form: Form) -> Iterator[Any]:
    with form.database.ledger() as ledger:
        yield ledger


@pytest.fixture
def broker(serve: Serve) -> Iterator[Brokers]:
    with serve() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        yield broker


def sink_of(broker: Brokers, ledger: Ledger, form: Form, **options: Any) -> IdempotentSink:
    given: dict[str, Any] = {"effect": ADD, "brokers": broker.bootstrap_servers, **options}
    return IdempotentSink(ledger, GROUP, effect_on=form.effect_on, **given)


def crashing_once(sink: IdempotentSink) -> "Callable[[DataFrame, int], None]":
    """Return the sink with one crash between its commit and Spark's."""
    crashes = iter([True])

    def batch(df: "DataFrame", batch_id: int) -> None:
        sink.foreach_batch(df, batch_id)
        if next(crashes, False):
            raise RuntimeError("after the commit")

    return batch


@pytest.mark.parametrize("ids", [None, "message-id"])
def test_each_record_counts_once_through_a_failure_a_replay_and_a_new_checkpoint(
    spark: "SparkSession",
    broker: Brokers,
    form: Form,
    ledger: Any,
    tmp_path: Path,
    ids: str | None,
) -> None:
    sent = [Sent(n % PARTITIONS, f"customer {n % 7}", f"id {n}") for n in range(70)]
    again = [one._replace(partition=(one.partition + 1) % PARTITIONS) for one in sent]
    send(broker.bootstrap_servers, TOPIC, sent + again)
    df = stream(spark, broker.bootstrap_servers, TOPIC, maxOffsetsPerTrigger=80)
    df = df.selectExpr(*COLUMNS)
    sink = sink_of(broker, ledger, form, ids=message_header(ids) if ids else None)

    allow = form.forbid("customer 3")
    with pytest.raises(StreamingQueryException, match="no_room") as failure:
        run(df, tmp_path / "checkpoint", sink.foreach_batch)
    assert "The effect is one statement:" in str(failure.value)
    if form.effect_on == "driver":
        assert form.totals() == {}
    allow()
    with pytest.raises(StreamingQueryException, match="after the commit"):
        run(df, tmp_path / "checkpoint", crashing_once(sink))
    for checkpoint in ("checkpoint", "a new one"):
        run(df, tmp_path / checkpoint, sink.foreach_batch)
    assert form.totals() == Counter(one.value for one in (sent if ids else sent + again))


def test_all_columns_of_the_source_can_be_used(
    spark: "SparkSession", broker: Brokers, form: Form, ledger: Any, tmp_path: Path
) -> None:
    sent = [Sent(n % PARTITIONS, f"order {n}", f"id {n}") for n in range(9)]
    send(broker.bootstrap_servers, TOPIC, sent)
    text, header = (
        ("convert_from(value, 'UTF8')", "convert_from(headers[1].value, 'UTF8')")
        if form.is_postgres
        else ("CAST(value AS TEXT)", "(headers ->> '$[0].value')")
    )
    effect = f"""
        INSERT INTO effects SELECT {text} || ' ' || {header} || ' ' || topic || '-' || partition || ' ' || "offset"
        FROM staged WHERE key IS NULL AND timestamp > '2020-01-01' AND "timestampType" = 0
    """
    df = stream(spark, broker.bootstrap_servers, TOPIC)
    run(df, tmp_path / "checkpoint", sink_of(broker, ledger, form, effect=effect).foreach_batch)
    ids = [f"id {n}" if form.is_postgres else f"id {n}".encode().hex().upper() for n in range(9)]
    assert effects(form.database) == sorted(
        f"order {n} {ids[n]} {TOPIC}-{n % PARTITIONS} {n // PARTITIONS}" for n in range(9)
    )


def test_a_large_batch_is_staged_part_by_part_in_one_transaction(
    spark: "SparkSession",
    broker: Brokers,
    tmp_path: Path,
    postgres_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts_of = micro_batch.Rows.parts
    monkeypatch.setattr(micro_batch.Rows, "parts", lambda rows: parts_of(rows, 1))
    database = PostgresDatabase(postgres_dsn)
    database.run("CREATE TABLE parts (part bigint, within text)")
    sent = [Sent(n % PARTITIONS, f"order {n}") for n in range(30)]
    send(broker.bootstrap_servers, TOPIC, sent)
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    effect = "INSERT INTO parts SELECT count(*), pg_current_xact_id()::text FROM staged"
    with database.ledger() as ledger:
        sink = sink_of(broker, ledger, Form(database, "driver"), effect=effect)
        run(df.repartition(4, "value"), tmp_path / "checkpoint", sink.foreach_batch)
    parts = database.run("SELECT part, within FROM parts")
    assert len(parts) > 1
    assert sum(count for count, _ in parts) == 30
    assert len({within for _, within in parts}) == 1


def test_the_quarantine_can_be_a_statement(
    spark: "SparkSession", broker: Brokers, form: Form, ledger: Any, tmp_path: Path
) -> None:
    sent = [Sent(0, "with", "id"), Sent(1, "without"), Sent(1, "empty", "")]
    send(broker.bootstrap_servers, TOPIC, sent)
    sink = sink_of(
        broker,
        ledger,
        form,
        ids=message_header("message-id"),
        quarantine="INSERT INTO effects SELECT value FROM staged",
    )
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    run(df, tmp_path / "checkpoint", sink.foreach_batch)
    assert form.totals() == {"with": 1}
    assert effects(form.database) == ["empty", "without"]
    assert (sink.statistics().processed, sink.statistics().quarantined) == (1, 2)


def test_column_that_cannot_be_staged_is_named_and_nothing_is_processed(
    spark: "SparkSession", broker: Brokers, form: Form, ledger: Any, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order")])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(
        *COLUMNS, "map('a', value) AS attributes"
    )
    with pytest.raises(StreamingQueryException, match=r"column 'attributes' .*map.* leave it out"):
        run(df, tmp_path / "checkpoint", sink_of(broker, ledger, form).foreach_batch)
    assert form.totals() == {}
    with ledger.transaction(GROUP) as transaction:
        assert set(transaction.marks().values()) <= {0}


class OtherLedger:
    """A ledger whose rows cannot be reached by SQL."""

    def transaction(self, group: str) -> Any:
        raise AssertionError(group)

    def close(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("what", ["effect", "quarantine"])
@pytest.mark.parametrize("kind", ["delta", "other"])
def test_ledger_without_statements_is_named_when_the_sink_is_created(
    tmp_path: Path, kind: str, what: str
) -> None:
    ledger: Any = DeltaLedger(tmp_path / "table") if kind == "delta" else OtherLedger()
    given: dict[str, Any] = {"effect": print, what: ADD, "brokers": "localhost:9092"}
    with pytest.raises(ConfigurationError) as refusal:
        IdempotentSink(ledger, GROUP, "id" if what == "quarantine" else None, **given)
    assert (
        f"{what} is a function of (connection, table): a {type(ledger).__name__} runs no statements"
        in str(refusal.value)
    )


@pytest.mark.parametrize("what", ["effect", "quarantine"])
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("", "is a function of .* or a statement of SQL"),
        (" \n", "is a function of .* or a statement of SQL"),
        ("COMMIT", "a statement begins with one of DELETE, .*not 'COMMIT'"),
        (b"INSERT INTO effects VALUES (1)", "is a function of .* or a statement of SQL"),
    ],
)
def test_invalid_statement_is_rejected_when_the_sink_is_created(
    tmp_path: Path, what: str, sql: Any, says: str
) -> None:
    given: dict[str, Any] = {"effect": ADD, "brokers": "localhost:9092", what: sql}
    with (
        SQLiteLedger(tmp_path / "a.db") as ledger,
        pytest.raises(ConfigurationError, match=says),
    ):
        IdempotentSink(ledger, GROUP, "id", **given)


def test_statement_can_be_pickled_for_executors(postgres_dsn: str) -> None:
    with PostgresDatabase(postgres_dsn).ledger() as ledger:
        effect = ledger.statement(ADD)
        pickled = cloudpickle.dumps(effect)  # type: ignore[no-untyped-call]
        assert cloudpickle.loads(pickled) == effect
