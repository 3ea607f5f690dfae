"""Transactions of some of a group's partitions: they run concurrently and are still exact."""

import pickle
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pyarrow as pa
import pytest

from pykafka_core.errors import LedgerUnavailableError, UsageError
from pykafka_core.idempotent import PartitionKey, PostgresLedger, Retention
from pykafka_core.idempotent.postgres import ids as postgres_ids
from tests.support.patience import eventually

KEYS = [PartitionKey(b"\1" * 16, "orders", number) for number in range(4)]
GROUP = "billing"


@pytest.fixture
def ledgers(postgres_dsn: str) -> Iterator[list[PostgresLedger]]:
    """Ledgers of different processes, with short lock timeouts."""
    ledgers = [PostgresLedger(postgres_dsn, timeout_ms=300) for _ in range(2)]
    with ledgers[0].transaction(GROUP):
        """There is such a group."""
    yield ledgers
    for ledger in ledgers:
        ledger.close()


def marks(ledger: PostgresLedger) -> dict[PartitionKey, int]:
    with ledger.transaction(GROUP) as transaction:
        return transaction.marks()


def test_partitions_do_not_wait_for_each_other(ledgers: list[PostgresLedger]) -> None:
    one, other = ledgers
    with one.partitions_transaction(GROUP, [KEYS[0]]) as first:
        with other.partitions_transaction(GROUP, [KEYS[1]]) as second:
            assert second.marks() == {KEYS[1]: 0}
            assert second.claim([b"b"]) == [True]
            second.advance({KEYS[1]: 7})
        assert first.claim([b"a", b"b"]) == [True, False]
        first.advance({KEYS[0]: 5})
    assert marks(one) == {KEYS[0]: 5, KEYS[1]: 7}


def test_partition_waits_for_its_other_transaction(ledgers: list[PostgresLedger]) -> None:
    one, other = ledgers
    with one.partitions_transaction(GROUP, KEYS[:2]) as first:
        first.advance({KEYS[1]: 3})
        with (
            pytest.raises(LedgerUnavailableError),
            other.partitions_transaction(GROUP, KEYS[1:3]),
        ):
            pass
    with other.partitions_transaction(GROUP, KEYS[1:3]) as second:
        assert second.marks() == {KEYS[1]: 3, KEYS[2]: 0}


def test_whole_group_waits_for_its_partitions(ledgers: list[PostgresLedger]) -> None:
    one, other = ledgers
    with (
        one.partitions_transaction(GROUP, KEYS[:1]),
        pytest.raises(LedgerUnavailableError),
        other.transaction(GROUP),
    ):
        pass
    with (
        one.transaction(GROUP),
        pytest.raises(LedgerUnavailableError),
        other.partitions_transaction(GROUP, KEYS[:1]),
    ):
        pass
    with one.partitions_transaction(GROUP, KEYS[:1]), other.transaction("another"):
        pass


def test_failed_transaction_leaves_no_changes(ledgers: list[PostgresLedger]) -> None:
    one, _ = ledgers
    with (
        pytest.raises(ValueError, match="fault"),
        one.partitions_transaction(GROUP, KEYS[:1]) as transaction,
    ):
        transaction.claim([b"a"])
        transaction.advance({KEYS[0]: 3})
        raise ValueError("fault")
    assert marks(one) == {}
    with one.partitions_transaction(GROUP, KEYS[:1]) as transaction:
        assert transaction.claim([b"a"]) == [True]


def test_invalid_use_of_a_partition_transaction_is_rejected(ledgers: list[PostgresLedger]) -> None:
    one, _ = ledgers
    with one.partitions_transaction(GROUP, KEYS[:1]) as transaction:
        with pytest.raises(UsageError, match="not of orders-1"):
            transaction.advance({KEYS[0]: 1, KEYS[1]: 1})
        with pytest.raises(UsageError, match="whole group"):
            transaction.begin_batch("query", 0)
        transaction.claim([b"a"])
        with pytest.raises(UsageError, match="claims once"):
            transaction.claim([b"b"])
    with pytest.raises(UsageError, match="ended"):
        transaction.advance({KEYS[0]: 1})
    assert marks(one) == {KEYS[0]: 0}


def test_ids_are_counted_and_the_whole_group_forgets_them(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn, retention=Retention(count=3)) as ledger:
        for number, ids in enumerate([[b"a", b"b"], [b"c", b"d"], [b"e", b"d"]]):
            with ledger.partitions_transaction(GROUP, [KEYS[number]]) as transaction:
                transaction.claim(ids)
        with ledger.transaction(GROUP) as transaction:
            transaction.claim([])
        with ledger.transaction(GROUP) as transaction:
            assert transaction.claim([b"a", b"c"]) == [True, False]
    with psycopg.connect(postgres_dsn) as connection:
        counted = connection.execute("SELECT ids_count FROM pykafka_groups").fetchall()
        held = connection.execute("SELECT count(*) FROM pykafka_ids").fetchall()
    assert counted == held == [(4,)]


def test_pickled_ledger_uses_the_same_database(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger, ledger.transaction(GROUP) as transaction:
        transaction.advance({KEYS[0]: 3})
        with pickle.loads(pickle.dumps(ledger)) as other:
            assert repr(other) == repr(ledger)
    with pickle.loads(pickle.dumps(other)) as again:
        assert marks(again) == {KEYS[0]: 3}


@pytest.mark.parametrize("parameter_bytes_max", [0, 1 << 20])
def test_claims_that_share_ids_do_not_deadlock(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int
) -> None:
    """The first transaction pauses between two ids that the second one claims in reverse order."""
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)

    def claim(number: int, ids: list[bytes]) -> list[bool]:
        with (
            PostgresLedger(postgres_dsn) as ledger,
            ledger.partitions_transaction(GROUP, [KEYS[number]]) as transaction,
        ):
            claimed: list[bool] = transaction.claim(ids)
            return claimed

    with PostgresLedger(postgres_dsn) as ledger, ThreadPoolExecutor(2) as threads:
        with ledger.transaction(GROUP):
            """There is such a group."""
        with ledger.partitions_transaction(GROUP, [KEYS[0]]) as transaction:
            transaction.claim([b"m"])
            first = threads.submit(claim, 1, [b"a", b"m", b"z"])
            wait_for_waiting(postgres_dsn, 1)
            second = threads.submit(claim, 2, [b"z", b"a"])
            wait_for_waiting(postgres_dsn, 2)
        assert first.result() == [True, False, True]
        assert second.result() == [False, False]


def wait_for_waiting(dsn: str, count: int) -> None:
    """Wait until this number of the test's transactions wait for others."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(dsn, autocommit=True) as connection:
        eventually(lambda: connection.execute(waiting).fetchall()[0][0] >= count)


@pytest.mark.parametrize("parameter_bytes_max", [0, 1 << 20])
def test_concurrent_transactions_with_random_failures_do_everything_once(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int
) -> None:
    """Each of four partitions has 40 batches with the same ids, in random order."""
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("CREATE TABLE effects (id bytea)")

    def work(seed: int) -> None:
        choice = random.Random(seed)
        with PostgresLedger(postgres_dsn) as ledger:
            while any(mark < 40 for mark in step(ledger, choice).values()):
                pass

    def step(ledger: PostgresLedger, choice: random.Random) -> dict[PartitionKey, int]:
        keys = choice.sample(KEYS, choice.randrange(1, 3))
        try:
            with ledger.partitions_transaction(GROUP, keys) as transaction:
                before = transaction.marks()
                ids = [b"%d" % choice.randrange(2_000) for _ in range(60)]
                mask = transaction.claim(pa.array(ids)).to_pylist()
                for value, is_new in zip(ids, mask, strict=True):
                    if is_new:
                        transaction.connection.execute("INSERT INTO effects VALUES (%s)", [value])
                transaction.advance({key: mark + 1 for key, mark in before.items()})
                if choice.random() < 0.2:
                    raise ValueError
        except ValueError:
            return dict.fromkeys(keys, 0)
        return marks(ledger)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    with psycopg.connect(postgres_dsn) as connection:
        [[done, different, claimed, counted]] = connection.execute(
            "SELECT (SELECT count(*) FROM effects), (SELECT count(DISTINCT id) FROM effects), "
            "(SELECT count(*) FROM pykafka_ids), (SELECT ids_count FROM pykafka_groups)"
        ).fetchall()
    assert done == different == claimed == counted > 1_000
