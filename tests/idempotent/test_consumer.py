"""An idempotent consumer on a real broker: each record is processed once, whatever happens."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from pykafka_core.errors import (
    ConfigurationError,
    ConsumerError,
    DataLossError,
    LedgerError,
    MessageIdError,
)
from pykafka_core.idempotent import (
    Batch,
    IdempotentConsumer,
    Ledger,
    PartitionKey,
    SQLiteLedger,
    header_id,
)
from tests.idempotent.databases import Database, SQLiteDatabase, effect, effects
from tests.idempotent.kafka import (
    QUIET,
    add_partitions,
    admin_of,
    consumer_of,
    delete_topic,
    drain,
    make_topic,
    produce,
)
from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S, exactly
from tests.support.processes.server import serving


class World:
    """A broker's address, a database, and consumers of one group that connect them."""

    def __init__(self, bootstrap: str, database: Database) -> None:
        self.bootstrap, self.database = bootstrap, database

    @contextmanager
    def consuming(
        self, ledger: Ledger | None = None, **options: Any
    ) -> Iterator[IdempotentConsumer]:
        kafka = options.pop("consumer", None) or consumer_of(self.bootstrap)
        own = self.database.ledger()
        chosen = {"topics": ["orders"], "effect": self.insert, "admin": admin_of(self.bootstrap)}
        try:
            yield IdempotentConsumer(kafka, ledger or own, "billing", **(chosen | options))
        finally:
            kafka.close()
            own.close()

    def insert(self, connection: Any, records: list[Any]) -> None:
        effect(self.database, connection, *(record.value().decode() for record in records))

    def effects(self) -> list[str]:
        return effects(self.database)

    def marks(self) -> dict[PartitionKey, int]:
        with self.database.ledger() as ledger, ledger.transaction("billing") as transaction:
            return transaction.marks()


@pytest.fixture
def bootstrap(serve: Serve) -> Iterator[str]:
    """A broker only for this test, with a topic of two partitions."""
    with serve() as broker:
        broker.create_topic("orders", 2)
        yield broker.bootstrap_servers


@pytest.fixture
def world(bootstrap: str, database: Database) -> World:
    return World(bootstrap, database)


@pytest.fixture
def sqlite_world(bootstrap: str, tmp_path: Path) -> World:
    """For tests that do not depend on the kind of database."""
    return World(bootstrap, SQLiteDatabase(tmp_path / "ledger.db"))


def values(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:03}" for number in range(count)]


def test_processed_records_are_not_processed_again(world: World) -> None:
    produce(world.bootstrap, "orders", values("a", 50))
    produce(world.bootstrap, "orders", values("b", 30), partition=1)
    with world.consuming(batch_records_max=20) as consumer:
        assert drain(consumer, 80) == Batch(80, 0, 0, 80)
        produce(world.bootstrap, "orders", ["late"])
        assert drain(consumer, 1) == Batch(1, 0, 0, 1)
    with world.consuming() as consumer:
        assert drain(consumer, 0) == Batch()
    assert world.effects() == sorted([*values("a", 50), *values("b", 30), "late"])
    assert sorted(world.marks().values()) == [30, 51]


def test_a_record_written_twice_is_processed_once_by_its_id(world: World) -> None:
    produce(world.bootstrap, "orders", [*values("a", 10), *values("a", 5)])
    produce(world.bootstrap, "orders", values("a", 12), partition=1)
    with world.consuming(ids=header_id("id"), batch_records_max=7) as consumer:
        assert drain(consumer, 27) == Batch(27, 0, 15, 12)
    assert world.effects() == values("a", 12)
    assert sorted(world.marks().values()) == [12, 15]


@pytest.mark.parametrize("kind", [bytes, str])
def test_id_may_come_from_any_function_of_the_record(world: World, kind: type) -> None:
    """Two shops have orders with equal numbers."""

    def order(record: Any) -> bytes | str:
        number: bytes = record.value()[1:]
        return number if kind is bytes else number.decode()

    produce(world.bootstrap, "orders", values("a", 3))
    produce(world.bootstrap, "orders", values("b", 4), partition=1)
    with world.consuming(ids=order) as consumer:
        assert drain(consumer, 7) == Batch(7, 0, 3, 4)
    assert [value[1:] for value in world.effects()] == ["000", "001", "002", "003"]


def test_failed_effect_gets_the_same_records_again(world: World) -> None:
    produce(world.bootstrap, "orders", values("a", 10))
    seen: list[list[str]] = []

    def failing(connection: Any, records: list[Any]) -> None:
        world.insert(connection, records)
        seen.append([record.value().decode() for record in records])
        if len(seen) < 3:
            raise ZeroDivisionError

    with world.consuming(effect=failing, ids=header_id("id")) as consumer:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                while not consumer.process_batch(1).polled:
                    pass
        assert world.effects() == []
        assert drain(consumer, 10) == Batch(10, 0, 0, 10)
    assert len(seen) >= 3
    assert seen[0][0] == seen[1][0] == seen[2][0] == "a000"
    assert world.effects() == values("a", 10)


@pytest.mark.parametrize("bad", [None, b"", b"x" * 1025], ids=["missing", "empty", "long"])
def test_record_without_a_usable_id_stops_with_its_offset(
    sqlite_world: World, bad: bytes | None
) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("a", 3))
    with world.consuming(ids=header_id("id")) as consumer:
        drain(consumer, 3)
        headers = [] if bad is None else [("id", bad)]
        producer = Producer({"bootstrap.servers": world.bootstrap, **QUIET})
        producer.produce("orders", b"bad", partition=0, headers=headers)
        assert producer.flush(PATIENCE_S) == 0
        for _ in range(2):
            with pytest.raises(MessageIdError, match="offset 3 of orders-0"):
                drain(consumer, 1)
    assert world.effects() == values("a", 3)
    assert sorted(world.marks().values()) == [0, 3]


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_recreated_topic_starts_at_its_first_record(sqlite_world: World, running: bool) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("old", 20))
    start = "earliest" if running else "latest"
    with world.consuming(start=start) as consumer:
        drain(consumer, 0 if start == "latest" else 20)
        if running:
            recreate(world, values("new", 30))
            process_through_errors(consumer, world, 20 + 30)
    if not running:
        recreate(world, values("new", 30))
        with world.consuming(start="latest") as consumer:
            drain(consumer, 30)
    old = values("old", 20) if running else []
    assert world.effects() == sorted([*old, *values("new", 30)])
    assert len(world.marks()) == 4


def recreate(world: World, new: list[str]) -> None:
    delete_topic(world.bootstrap, "orders")
    make_topic(world.bootstrap, "orders", 2)
    produce(world.bootstrap, "orders", new)


def process_through_errors(consumer: IdempotentConsumer, world: World, effects_count: int) -> None:
    """Retry after errors, like a service, until there are this many effects; check that no more
    follow.
    """
    while len(world.effects()) < effects_count:
        with suppress(ConsumerError):
            consumer.process_batch(0.5)
    with suppress(ConsumerError):
        assert not consumer.process_batch(0.1).processed


def test_partitions_added_later_are_read_from_their_start(sqlite_world: World) -> None:
    world = sqlite_world
    with world.consuming(start="latest") as consumer:
        drain(consumer, 0)
        add_partitions(world.bootstrap, "orders", 3)
        produce(world.bootstrap, "orders", values("c", 5), partition=2)
        drain(consumer, 5)
    assert world.effects() == values("c", 5)


def test_only_the_chosen_partitions_are_read(sqlite_world: World) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("a", 5))
    produce(world.bootstrap, "orders", values("b", 5), partition=1)
    with world.consuming(partitions=[1]) as consumer:
        drain(consumer, 5)
    assert world.effects() == values("b", 5)
    with world.consuming(partitions=[2]) as consumer:
        with pytest.raises(ConsumerError, match=r"no partitions \[2\]"):
            consumer.process_batch()


def test_latest_means_the_end_at_the_first_start_even_after_a_crash(sqlite_world: World) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("old", 5))
    with world.consuming(start="latest") as consumer:
        assert drain(consumer, 0) == Batch()
    produce(world.bootstrap, "orders", values("new", 5))
    with world.consuming(start="latest") as consumer:
        assert drain(consumer, 5) == Batch(5, 0, 0, 5)
    assert world.effects() == values("new", 5)


def delete_records(world: World, before: int) -> None:
    place = TopicPartition("orders", 0, before)
    admin = admin_of(world.bootstrap)
    admin.delete_records([place])[place].result()


@pytest.mark.parametrize("policy", ["earliest", "latest", "error"])
def test_records_deleted_before_they_were_processed_are_an_error(
    sqlite_world: World, policy: str
) -> None:
    """This does not depend on how the client handles a deleted offset."""
    world = sqlite_world
    produce(world.bootstrap, "orders", values("a", 10))
    with world.consuming() as consumer:
        drain(consumer, 10)
    produce(world.bootstrap, "orders", values("b", 20))
    delete_records(world, 15)
    kafka = consumer_of(world.bootstrap, **{"auto.offset.reset": policy})
    with world.consuming(consumer=kafka) as consumer:
        for _ in range(2):
            with pytest.raises(DataLossError, match="orders-0 begins at offset 15"):
                consumer.process_batch()
    assert world.effects() == values("a", 10)
    kafka = consumer_of(world.bootstrap, **{"auto.offset.reset": policy})
    with world.consuming(consumer=kafka, fail_on_data_loss=False) as consumer:
        drain(consumer, 15)
    assert world.effects() == [*values("a", 10), *values("b", 20)[5:]]


class Skipping:
    """A client that skips offsets, as real clients do because of compaction and control records."""

    def __init__(self, consumer: Any, skipped: range) -> None:
        self._consumer, self._skipped = consumer, skipped

    def consume(self, *arguments: Any, **options: Any) -> list[Any]:
        records = self._consumer.consume(*arguments, **options)
        return [record for record in records if record.offset() not in self._skipped]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


def test_gap_is_data_loss_only_if_the_log_starts_after_it(sqlite_world: World) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("a", 20))
    with world.consuming(consumer=Skipping(consumer_of(world.bootstrap), range(5, 8))) as consumer:
        drain(consumer, 17)
    assert world.effects() == [*values("a", 5), *values("a", 20)[8:]]
    produce(world.bootstrap, "orders", values("b", 20))
    skipping = Skipping(consumer_of(world.bootstrap), range(20, 30))
    with world.consuming(consumer=skipping, batch_records_max=1) as consumer:
        consumer.process_batch()  # it has resumed, even if no record has arrived
        marks = world.marks()
        produce(world.bootstrap, "orders", values("c", 20))
        skipping._skipped = range(max(marks.values()), 50)
        delete_records(world, 50)
        with pytest.raises(DataLossError):
            while True:
                consumer.process_batch(0.1)
        assert world.marks() == marks


def test_a_log_that_ends_before_the_mark_is_an_error(sqlite_world: World) -> None:
    world = sqlite_world
    produce(world.bootstrap, "orders", values("a", 5))
    with world.consuming() as consumer:
        drain(consumer, 5)
    world.database.run("UPDATE pykafka_marks SET next_offset = 1000")
    for fail in (True, False):
        with world.consuming(fail_on_data_loss=fail) as consumer:
            with pytest.raises(DataLossError, match="ends at offset"):
                consumer.process_batch()


@pytest.mark.interval
def test_two_consumers_of_a_group_share_the_work_without_repeats(world: World) -> None:
    produce(world.bootstrap, "orders", values("a", 40))
    with world.consuming(batch_records_max=3) as one, world.consuming(batch_records_max=5) as two:
        busy = 1
        while busy or sum(world.marks().values()) < 40:
            busy = one.process_batch(0.3).polled + two.process_batch(0.3).polled
    assert world.effects() == values("a", 40)


def test_consumer_goes_back_to_the_marks_of_a_restored_database(
    sqlite_world: World, tmp_path: Path
) -> None:
    world = sqlite_world
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    produce(world.bootstrap, "orders", values("a", 10))
    with world.consuming(ledger=SQLiteLedger(path)) as consumer:
        drain(consumer, 10)
    # The last connection was closed above, so all data are in the one file.
    shutil.copy(path, backup)
    ledger = SQLiteLedger(path)
    with world.consuming(ledger=ledger) as consumer:
        produce(world.bootstrap, "orders", values("b", 10))
        drain(consumer, 10)
        for file in tmp_path.glob("ledger.db*"):
            file.unlink()
        backup.rename(path)
        produce(world.bootstrap, "orders", values("c", 10))
        with pytest.raises(LedgerError):
            drain(consumer, 10)
        drain(consumer, 20)
    ledger.close()
    assert world.effects() == sorted([*values("a", 10), *values("b", 10), *values("c", 10)])


@pytest.mark.interval
def test_unreachable_broker_is_an_error_until_it_returns(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        make_topic(server.address, "orders", 2)
        produce(server.address, "orders", values("a", 10))
        world = World(server.address, SQLiteDatabase(tmp_path / "ledger.db"))
        with world.consuming(
            request_timeout_s=exactly(1, "requests fail, and are repeated")
        ) as consumer:
            process_through_errors(consumer, world, 10)
            server.kill()
            for _ in range(2):
                with pytest.raises(ConsumerError, match="try again"):
                    consumer.process_batch(0.1)
            server.start()
            produce(server.address, "orders", values("b", 10))
            process_through_errors(consumer, world, 20)
        assert world.effects() == [*values("a", 10), *values("b", 10)]


def test_missing_topic_is_an_error(sqlite_world: World) -> None:
    with sqlite_world.consuming(topics=["orders", "nowhere"]) as consumer:
        with pytest.raises(ConsumerError, match="Unknown topic"):
            consumer.process_batch()
    assert sqlite_world.marks() == {}


@pytest.mark.parametrize(
    "option",
    [
        {"consumer": None},
        {"ledger": "x.db"},
        {"group": ""},
        {"group": 5},
        {"topics": "orders"},
        {"topics": []},
        {"topics": [""]},
        {"topics": 5},
        {"admin": None},
        {"effect": None},
        {"ids": "id"},
        {"partitions": []},
        {"partitions": ["0"]},
        {"partitions": 0},
        {"start": "newest"},
        {"fail_on_data_loss": 1},
        {"batch_records_max": 0},
        {"request_timeout_s": -1},
        {"request_timeout_s": float("inf")},
    ],
    ids=str,
)
def test_bad_argument_is_rejected_by_name(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        consumer_with(tmp_path, option)
    [problem] = raised.value.problems
    assert problem.startswith(f"IdempotentConsumer: {next(iter(option))} must be ")


def consumer_with(directory: Path, options: dict[str, Any]) -> IdempotentConsumer:
    """Return a consumer whose clients never reach a broker."""
    nowhere = "127.0.0.1:1"
    with (
        SQLiteLedger(directory / "l.db") as ledger,
        closing(consumer_of(nowhere)) as consumer,
    ):
        good = {
            "consumer": consumer,
            "ledger": ledger,
            "group": "g",
            "topics": ["orders"],
            "admin": admin_of(nowhere),
            "effect": print,
        }
        return IdempotentConsumer(**(good | options))


def test_all_bad_arguments_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        consumer_with(tmp_path, {"ledger": "x.db", "admin": None, "effect": 1})
    assert len(raised.value.problems) == 3


def test_without_confluent_kafka_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer_with(tmp_path, {})
    kafka, admin = consumer_of("127.0.0.1:1"), admin_of("127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"pip install 'pykafka_core\[idempotent\]'"):
        IdempotentConsumer(
            kafka, SQLiteLedger(tmp_path / "l.db"), "g", topics=["o"], admin=admin, effect=print
        )
    kafka.close()
