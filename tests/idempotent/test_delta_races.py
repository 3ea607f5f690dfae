"""Several writers of one Delta table: of one partition exactly one commits, and one that is killed leaves no half."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from pykafka_core.errors import LedgerError, LedgerUnavailableError
from pykafka_core.idempotent import DeltaLedger, PartitionKey

GROUP = "billing"
KEYS = [PartitionKey(b"\1" * 16, "orders", number) for number in range(4)]
ROUNDS = 30
SPAWN = multiprocessing.get_context("spawn")  # deltalake's threads do not survive a fork


def rows(*values: int) -> Any:
    return pa.table({"x": pa.array(values, pa.int64())})


def process(ledger: DeltaLedger, at: int, count: int) -> int:
    """Append the next ``count`` records of a partition; the mark afterwards."""
    with ledger.partitions_transaction(GROUP, [KEYS[at]]) as transaction:
        mark = transaction.marks()[KEYS[at]]
        transaction.connection.append(rows(*(1000 * at + n for n in range(mark, mark + count))))
        transaction.advance({KEYS[at]: mark + count})
    return mark + count


def written(uri: str) -> list[int]:
    return sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["x"].to_pylist())


def race(uri: str, barrier: Barrier, results: Any) -> None:
    """Both processes read each round's mark before either commits."""
    ledger, won = DeltaLedger(uri), []
    for _ in range(ROUNDS):
        try:
            with ledger.partitions_transaction(GROUP, [KEYS[0]]) as transaction:
                mark = transaction.marks()[KEYS[0]]
                transaction.connection.append(rows(mark))
                transaction.advance({KEYS[0]: mark + 1})
                barrier.wait(60)
            won.append(mark)
        except LedgerUnavailableError:
            raise
        except LedgerError:
            pass
        barrier.wait(60)
    results.put(won)


@pytest.mark.parametrize("exists", [True, False])
def test_of_two_processes_on_one_partition_exactly_one_commits(
    tmp_path: Path, exists: bool
) -> None:
    uri = str(tmp_path / "table")
    if exists:
        deltalake.DeltaTable.create(uri, rows().schema)
    barrier, results = SPAWN.Barrier(2), SPAWN.Queue()
    children = [SPAWN.Process(target=race, args=(uri, barrier, results)) for _ in range(2)]
    for child in children:
        child.start()
    won = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert sorted(won[0] + won[1]) == written(uri) == list(range(ROUNDS))


def test_different_partitions_commit_beside_each_other(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    deltalake.DeltaTable.create(uri, rows().schema)

    def work(at: int) -> int:
        ledger = DeltaLedger(uri)
        return [process(ledger, at, 1) for _ in range(15)][-1]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [15] * 4
    assert written(uri) == [1000 * at + n for at in range(4) for n in range(15)]


def test_a_transaction_of_the_group_and_one_of_a_partition_exclude_each_other(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path / "table")
    one, other = DeltaLedger(uri), DeltaLedger(uri)
    process(one, 0, 2)
    process(one, 1, 2)
    with pytest.raises(LedgerError, match="moved a mark"):
        with one.transaction(GROUP) as whole:
            process(other, 0, 1)
            whole.connection.append(rows(1002))
            whole.advance({KEYS[1]: 3})
    assert written(uri) == [0, 1, 2, 1000, 1001]


def test_other_writers_of_the_table_disturb_nothing(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    with ledger.transaction(GROUP) as transaction:
        deltalake.write_deltalake(uri, rows(77), mode="append")
        transaction.connection.append(rows(1))
        transaction.advance({KEYS[0]: 2})
    assert written(uri) == [0, 1, 77]


def test_a_replay_after_a_lost_answer_finds_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit takes place, and its writer gets an error instead of an answer."""
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    write = deltalake.write_deltalake

    def lost(*args: Any, **options: Any) -> None:
        write(*args, **options)
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(deltalake, "write_deltalake", lost)
        with pytest.raises(LedgerUnavailableError, match="no answer"):
            process(ledger, 0, 5)
    assert process(ledger, 0, 1) == 7
    assert written(uri) == list(range(7))


def endless(uri: str) -> None:
    ledger = DeltaLedger(uri)
    while True:
        process(ledger, 0, 3)


def test_a_killed_writer_leaves_each_record_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    deltalake.DeltaTable.create(uri, rows().schema)
    key = KEYS[0]
    for _ in range(6):
        with DeltaLedger(uri).partitions_transaction(GROUP, [key]) as transaction:
            before = transaction.marks()[key]
        child = SPAWN.Process(target=endless, args=(uri,))
        child.start()
        mark = before
        while mark < before + 9 and child.is_alive():
            with DeltaLedger(uri).partitions_transaction(GROUP, [key]) as transaction:
                mark = transaction.marks()[key]
        child.kill()
        child.join(60)
    with DeltaLedger(uri).transaction(GROUP) as transaction:
        mark = transaction.marks()[key]
    assert mark >= 6 * 9
    assert written(uri) == list(range(mark))
