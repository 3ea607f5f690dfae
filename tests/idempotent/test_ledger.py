"""The guarantees of all ledgers, on every database."""

import os
import subprocess
import sys
import threading
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from pykafka_core.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    LedgerSchemaError,
    LedgerUnavailableError,
    MessageIdError,
    UsageError,
)
from pykafka_core.idempotent import ID_SIZE_MAX, PartitionKey, Retention, schema
from pykafka_core.types import ZERO_ID
from tests.idempotent.databases import Database, effect, effects

OLD, NEW = b"\1" * 16, b"\2" * 16
KEY = PartitionKey(OLD, "orders", 0)


class Broken(Exception):
    """The exception of an effect."""


def test_temporary_table_of_an_effect_receives_no_mark(database: Database) -> None:
    """A name without a schema refers to it instead of the ledger's table."""
    with database.ledger() as ledger:
        with ledger.transaction("g") as transaction:
            for table in schema.NAMES:
                transaction.connection.execute(
                    f"CREATE TEMPORARY TABLE {table} AS SELECT * FROM {table}"
                )
            transaction.advance({KEY: 5})
            assert transaction.begin_batch("q", 1)
            assert transaction.claim([b"a"]) == [True]
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 5}
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.marks() == {KEY: 5}
        assert transaction.batches() == {"q": 1}
        assert transaction.claim([b"a"]) == [False]


def test_effect_ids_and_marks_commit_together(database: Database) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim([b"a", b"b"]) == [True, True]
        effect(database, transaction.connection, "a", "b")
        transaction.advance({KEY: 2})
    assert effects(database) == ["a", "b"]
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.marks() == {KEY: 2}
        assert transaction.claim([b"b", b"c"]) == [False, True]


@pytest.mark.parametrize("failure", [Broken, KeyboardInterrupt, GeneratorExit])
def test_exception_leaves_no_changes(database: Database, failure: type[BaseException]) -> None:
    with database.ledger() as ledger:
        with pytest.raises(failure), ledger.transaction("g") as transaction:
            transaction.begin_batch("q", 0)
            transaction.claim([b"a"])
            effect(database, transaction.connection, "a")
            transaction.advance({KEY: 1})
            raise failure
        with ledger.transaction("g") as transaction:
            assert transaction.begin_batch("q", 0)
            assert transaction.claim([b"a"]) == [True]
            assert transaction.marks() == {}
    assert effects(database) == []


def test_first_of_equal_ids_in_one_call_is_new(database: Database) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim([b"a"]) == [True]
        assert transaction.claim([b"b", b"a", b"b", b"c", b"c"]) == [
            True,
            False,
            False,
            True,
            False,
        ]
        assert transaction.claim([]) == []


def test_many_ids_are_claimed_at_once(database: Database) -> None:
    ids = [b"%d" % (number // 2) for number in range(20_000)]
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim(ids) == [True, False] * 10_000
        assert transaction.claim(ids) == [False] * 20_000


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary(2), pa.string(), pa.large_string()], ids=str
)
def test_an_arrow_array_gets_an_arrow_mask(database: Database, kind: pa.DataType) -> None:
    ids = pa.array([b"xx", b"ab", b"cd", b"ab"], pa.binary()).cast(kind).slice(1)
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim(ids).equals(pa.array([True, True, False]))
        assert transaction.claim([b"ab", b"xx"]) == [False, True]
        assert transaction.claim(ids[:0]).equals(pa.array([], pa.bool_()))


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary(2), pa.string(), pa.large_string()], ids=str
)
@pytest.mark.parametrize("repeats", [1, 1_000])
def test_a_chunked_array_gets_one_mask_for_all_chunks(
    database: Database, kind: pa.DataType, repeats: int
) -> None:
    chunks = [[b"xx", b"ab"], [], [b"ab", b"cd"], [b"cd", b"ol"]]
    ids = pa.chunked_array([pa.array(chunk, pa.binary()).cast(kind) for chunk in chunks * repeats])
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim([b"ol"]) == [True]
        first = [True, True, False, True, False, False]
        assert transaction.claim(ids).equals(pa.array(first + [False] * (len(ids) - len(first))))
        assert transaction.claim(ids.slice(1)).equals(pa.array([False] * (len(ids) - 1)))
        assert transaction.claim(ids.slice(0, 0)).equals(pa.array([], pa.bool_()))
        assert transaction.claim(pa.chunked_array([], kind)).equals(pa.array([], pa.bool_()))


@pytest.mark.parametrize(
    "ids",
    [
        [b"good", None],
        [b"good", b""],
        [b"good", b"x" * (ID_SIZE_MAX + 1)],
        [b"good", "text"],
        [b"good", 7],
        [b"good", bytearray(b"x")],
        pa.array([b"good", None]),
        pa.array([b"good", b""]),
        pa.array(["good", "x" * (ID_SIZE_MAX + 1)]),
        pa.array([1, 2]),
        pa.chunked_array([[b"good"], [None]], pa.binary()),
        pa.chunked_array([[b"good"], [b""]]),
        pa.chunked_array([["good"], ["x" * (ID_SIZE_MAX + 1)]]),
        pa.chunked_array([[1], [2]]),
        pa.table({"id": [b"good"]}),
    ],
    ids=lambda ids: str(ids)[:40],
)
def test_bad_id_is_rejected_and_nothing_recorded(database: Database, ids: Any) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        with pytest.raises(MessageIdError):
            transaction.claim(ids)
        longest = b"x" * ID_SIZE_MAX
        assert transaction.claim([b"good", longest]) == [True, True]


@pytest.mark.parametrize("ids", [b"bytes", "text", None, {b"a"}])
def test_invalid_sequence_of_ids_is_rejected(database: Database, ids: Any) -> None:
    with (
        database.ledger() as ledger,
        pytest.raises(UsageError),
        ledger.transaction("g") as transaction,
    ):
        transaction.claim(ids)


def test_ids_in_a_list_need_neither_arrow_nor_numpy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = "import sys, pykafka_core.idempotent; print({'pyarrow', 'numpy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", loaded]) == b"set()\n"
    for name in ("pyarrow", "numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim([b"a", b"a"]) == [True, False]


def test_groups_are_independent(database: Database) -> None:
    with database.ledger() as ledger:
        with ledger.transaction("g") as transaction:
            transaction.begin_batch("q", 3)
            transaction.claim([b"a"])
            transaction.advance({KEY: 9})
        with ledger.transaction("h") as transaction:
            assert transaction.marks() == {}
            assert transaction.claim([b"a"]) == [True]
            assert transaction.begin_batch("q", 3)


def test_recreated_topic_has_no_mark(database: Database) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        transaction.advance({KEY: 100, PartitionKey(ZERO_ID, "old", 1): 5})
        assert KEY._replace(topic_id=NEW) not in transaction.marks()
        transaction.advance({KEY._replace(topic_id=NEW): 1})
        assert len(transaction.marks()) == 3


def test_a_mark_never_goes_back(database: Database) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        transaction.advance({KEY: 5})
        transaction.advance({KEY: 5})
        for bad in (
            {KEY: 4},
            {KEY: -1},
            {KEY: 2**63},
            {KEY: "6"},
            {("orders", 0): 6},
            {KEY._replace(topic_id=b""): 6},
        ):
            with pytest.raises(UsageError):
                positions: dict[Any, Any] = {KEY._replace(partition=1): 1, **bad}
                transaction.advance(positions)
        assert transaction.marks() == {KEY: 5}


def test_committed_batch_is_not_processed_again(database: Database) -> None:
    with database.ledger() as ledger:
        for batch, expected in [
            (0, True),
            (0, False),
            (1, True),
            (0, False),
            (5, True),
            (4, False),
        ]:
            with ledger.transaction("g") as transaction:
                assert transaction.begin_batch("q", batch) is expected
        with ledger.transaction("g") as transaction:
            assert transaction.begin_batch("another", 0)
            assert transaction.batches() == {"q": 5, "another": 0}
            for bad in (-1, "0", None, True):
                with pytest.raises(UsageError):
                    transaction.begin_batch("q", bad)  # type: ignore[arg-type]
            with pytest.raises(UsageError):
                transaction.begin_batch("", 0)


def test_ids_are_forgotten_by_age(database: Database) -> None:
    now = 1_000
    with database.ledger(retention=Retention(age_ms=100), clock=lambda: now) as ledger:
        for now, ids, expected in [
            (1_000, [b"a", b"b"], [True, True]),
            (1_050, [b"c"], [True]),
            (
                1_100,
                [b"a"],
                [False],
            ),  # an id of exactly the maximum age stays; a repetition does not reset its age
            (1_101, [b"a", b"c"], [True, False]),
            (1_151, [b"b", b"c", b"a"], [True, True, False]),
        ]:
            with ledger.transaction("g") as transaction:
                assert transaction.claim(ids) == expected, now
    assert len(database.run("SELECT 1 FROM pykafka_ids")) == 3


def test_ids_are_forgotten_by_count_and_never_too_early(database: Database) -> None:
    with database.ledger(retention=Retention(count=10)) as ledger:
        for number in range(100):
            with ledger.transaction("g") as transaction:
                recent = [b"%d" % n for n in range(max(number - 10, 0), number)]
                assert transaction.claim(recent) == [False] * len(recent)
                assert transaction.claim([b"%d" % number]) == [True]
            with ledger.transaction("h") as transaction:
                transaction.claim([b"%d" % number])
    assert len(database.run("SELECT 1 FROM pykafka_ids")) <= 2 * 12


def test_retention_of_one_group_affects_no_other(database: Database) -> None:
    with database.ledger() as ledger:
        for number in range(10):
            for group in "gh":
                with ledger.transaction(group) as transaction:
                    transaction.claim([b"%d" % number])
    with (
        database.ledger(retention=Retention(count=1)) as ledger,
        ledger.transaction("g") as transaction,
    ):
        transaction.claim([b"new"])
    with database.ledger() as ledger, ledger.transaction("h") as transaction:
        assert transaction.claim([b"%d" % number for number in range(10)]) == [False] * 10


@pytest.mark.parametrize("limit", [{"age_ms": 0}, {"count": -1}, {"age_ms": 1.5}, {"count": True}])
def test_limit_that_is_not_a_positive_integer_is_rejected_by_name(limit: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(limit))):
        Retention(**limit)


@pytest.mark.parametrize("option", [{"timeout_ms": 0}, {"retention": 5}])
def test_bad_argument_is_rejected_by_name(database: Database, option: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        database.ledger(**option)
    with pytest.raises(TypeError, match="retain"):
        database.ledger(retain=1)


@pytest.mark.parametrize("group", ["", "x" * 1025, None, "a\0b"])
def test_bad_group_is_rejected(database: Database, group: Any) -> None:
    with database.ledger() as ledger, pytest.raises(UsageError, match="group"):
        ledger.transaction(group).__enter__()


def test_effect_that_commits_is_rejected_and_rolled_back(database: Database) -> None:
    with database.ledger() as ledger:
        refusals = (UsageError, psycopg.ProgrammingError)
        with pytest.raises(refusals, match="commit"), ledger.transaction("g") as transaction:
            transaction.claim([b"a"])
            effect(database, transaction.connection, "a")
            transaction.connection.commit()
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"a"]) == [True]
    assert effects(database) == []


def test_transaction_can_be_used_only_in_its_block(database: Database) -> None:
    with database.ledger() as ledger:
        with ledger.transaction("g") as transaction:
            with pytest.raises(UsageError, match="within"), ledger.transaction("h"):
                pass
            with pytest.raises(UsageError, match="within"):
                ledger.close()
        for use in (
            transaction.marks,
            lambda: transaction.connection,
            lambda: transaction.claim([]),
        ):
            with pytest.raises(UsageError, match="ended"):
                use()
    ledger.close()
    with pytest.raises(ClosedError):
        ledger.transaction("g").__enter__()


def test_forked_child_must_create_its_own_ledger(database: Database) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        transaction.advance({KEY: 1})
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                ledger.close()
                ledger.transaction("g").__enter__()
            except ForkedError:
                os.write(writer, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == b"refused"
        os.close(reader)
        os.close(writer)


def test_transactions_of_one_group_run_one_after_the_other(database: Database) -> None:
    """Eight threads with two ledgers count to 80 by reads and writes: no thread reads a value that
    another one is changing.
    """
    with database.ledger() as first, database.ledger() as second:

        def count(ledger: Any) -> None:
            for _ in range(10):
                with ledger.transaction("g") as transaction:
                    transaction.advance({KEY: transaction.marks().get(KEY, 0) + 1})

        threads = [threading.Thread(target=count, args=(ledger,)) for ledger in [first, second] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with first.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 80}


def test_waiting_for_another_transaction_times_out(database: Database) -> None:
    with database.ledger() as first, database.ledger(timeout_ms=50) as second:
        with second.transaction("g"):
            pass  # the tables exist
        with first.transaction("g"), pytest.raises(LedgerUnavailableError):
            second.transaction("g").__enter__()
        with second.transaction("g") as transaction:
            assert transaction.marks() == {}


def test_many_ledgers_may_create_the_tables_at_once(database: Database) -> None:
    ready, failures = threading.Barrier(6), []

    def start() -> None:
        with database.ledger() as ledger:
            ready.wait()
            try:
                with ledger.transaction("g") as transaction:
                    transaction.claim([b"x"])
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(database.run("SELECT 1 FROM pykafka_ids")) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE pykafka_ledger SET version = 0", "version 0"),
        ("UPDATE pykafka_ledger SET version = 2", "version 2"),
        ("DELETE FROM pykafka_ledger", "pykafka_ledger"),
        ("DROP TABLE pykafka_ids", "pykafka_ids"),
        ("ALTER TABLE pykafka_marks ADD COLUMN colour text", "pykafka_marks"),
    ],
)
def test_tables_of_another_version_are_rejected_unchanged(
    database: Database, change: str, says: str
) -> None:
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        transaction.advance({KEY: 1})
    database.run(change)
    with database.ledger() as ledger, pytest.raises(LedgerSchemaError, match=says):
        ledger.transaction("g").__enter__()
    assert database.run("SELECT next_offset FROM pykafka_marks") == [(1,)]


def test_foreign_table_of_that_name_is_rejected_unchanged(database: Database) -> None:
    database.run("CREATE TABLE pykafka_ids (what text)")
    with database.ledger() as ledger, pytest.raises(LedgerSchemaError, match="another database"):
        ledger.transaction("g").__enter__()
    with pytest.raises(Exception, match="pykafka_marks"):
        database.run("SELECT * FROM pykafka_marks")
