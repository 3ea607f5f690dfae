"""Concurrent writers of one Delta table: exactly one of them commits the next records of a
partition, and a killed writer leaves no partial commit.
"""

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import deltalake
import pytest

from pykafka_core.errors import (
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
)
from pykafka_core.idempotent import DeltaLedger, PartitionKey
from tests.idempotent.delta.delta_tables import rows, written
from tests.support.patience import PATIENCE_S

GROUP = "billing"
KEYS = [PartitionKey(b"\1" * 16, "orders", number) for number in range(4)]
ROUNDS = 30
SPAWN = multiprocessing.get_context("spawn")  # deltalake's threads do not survive a fork


def process(ledger: DeltaLedger, at: int, count: int) -> int:
    """Append the next ``count`` records of a partition; return the resulting mark."""
    with ledger.partitions_transaction(GROUP, [KEYS[at]]) as transaction:
        mark = transaction.marks()[KEYS[at]]
        transaction.connection.append(rows(*(1000 * at + n for n in range(mark, mark + count))))
        transaction.advance({KEYS[at]: mark + count})
    return mark + count


def race(uri: str, barrier: Barrier, results: Any) -> None:
    """Commit in rounds; in each, both processes read the mark before either commits."""
    ledger, won = DeltaLedger(uri), []
    for _ in range(ROUNDS):
        try:
            with ledger.partitions_transaction(GROUP, [KEYS[0]]) as transaction:
                mark = transaction.marks()[KEYS[0]]
                transaction.connection.append(rows(mark))
                transaction.advance({KEYS[0]: mark + 1})
                barrier.wait(PATIENCE_S)
            won.append(mark)
        except LedgerUnavailableError:
            raise
        except LedgerError:
            pass
        barrier.wait(PATIENCE_S)
    results.put(won)


@pytest.mark.parametrize("exists", [True, False])
def test_exactly_one_of_two_processes_on_a_partition_commits(tmp_path: Path, exists: bool) -> None:
    uri = str(tmp_path / "table")
    if exists:
        deltalake.DeltaTable.create(uri, rows().schema)
    barrier, results = SPAWN.Barrier(2), SPAWN.Queue()
    children = [SPAWN.Process(target=race, args=(uri, barrier, results)) for _ in range(2)]
    for child in children:
        child.start()
    won = [results.get(timeout=PATIENCE_S) for _ in children]
    for child in children:
        child.join(PATIENCE_S)
        assert child.exitcode == 0
    assert sorted(won[0] + won[1]) == written(uri) == list(range(ROUNDS))


def test_different_partitions_commit_concurrently(tmp_path: Path) -> None:
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


def appended(table: Any) -> None:
    deltalake.write_deltalake(table, rows(77), mode="append")


def deleted(table: Any) -> None:
    table.delete("x = 0")


def altered(table: Any) -> None:
    table.alter.set_table_properties({"delta.checkpointInterval": "7"})


def compacted(table: Any) -> None:
    table.optimize.compact()


@pytest.mark.parametrize("other", [appended, deleted, altered, compacted])
@pytest.mark.parametrize("whole_group", [True, False])
def test_other_writers_of_the_table_do_not_disturb_commits(
    tmp_path: Path, other: Callable[[Any], None], whole_group: bool
) -> None:
    """deltalake rejects a commit after some of them; it is retried, because no mark has changed."""
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    process(ledger, 0, 1)
    opened = (
        ledger.transaction(GROUP) if whole_group else ledger.partitions_transaction(GROUP, KEYS[:1])
    )
    with opened as transaction:
        other(deltalake.DeltaTable(uri))
        transaction.connection.append(rows(2))
        transaction.advance({KEYS[0]: 3})
    expected: dict[Callable[[Any], None], list[int]] = {appended: [0, 1, 2, 77], deleted: [1, 2]}
    assert written(uri) == expected.get(other, [0, 1, 2])
    with DeltaLedger(uri).transaction(GROUP) as transaction:
        assert transaction.marks() == {KEYS[0]: 3}


def test_constant_commits_of_other_writers_make_the_table_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    write = deltalake.write_deltalake

    def write_behind(table: Any, *args: Any, **options: Any) -> None:
        altered(deltalake.DeltaTable(uri))
        write(table, *args, **options)

    monkeypatch.setattr(deltalake, "write_deltalake", write_behind)
    with pytest.raises(LedgerUnavailableError, match="10 tries"):
        process(ledger, 0, 1)
    assert written(uri) == [0]


def test_column_added_during_a_transaction_is_an_error_instead_of_a_commit(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    with pytest.raises(LedgerSchemaError, match="new"):
        with ledger.partitions_transaction(GROUP, KEYS[:1]) as transaction:
            field = deltalake.Field("new", deltalake.schema.PrimitiveType("long"))
            deltalake.DeltaTable(uri).alter.add_columns(field)
            transaction.connection.append(rows(1))
            transaction.advance({KEYS[0]: 2})
    assert written(uri) == [0]


def test_files_of_a_rejected_commit_do_not_belong_to_the_table(tmp_path: Path) -> None:
    """They were written before the commit, as by a process that dies before it commits."""
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    with pytest.raises(LedgerError, match="moved a mark"):
        with ledger.partitions_transaction(GROUP, KEYS[:1]) as transaction:
            process(DeltaLedger(uri), 0, 1)
            transaction.connection.append(rows(1))
            transaction.advance({KEYS[0]: 2})
    assert written(uri) == [0, 1]
    files = {path.name for path in Path(uri).glob("*.parquet")}
    table = deltalake.DeltaTable(uri)
    assert len(files) == 3
    assert len(table.file_uris()) == 2
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert len(list(Path(uri).glob("*.parquet"))) == 2
    assert process(ledger, 0, 1) == 3


def test_table_is_created_once_by_concurrent_writers(tmp_path: Path) -> None:
    """With deltalake's default, a second creation follows the first one and replaces the schema."""
    ready = threading.Barrier(4)

    def work(at: int) -> int:
        ready.wait(PATIENCE_S)
        return process(DeltaLedger(uri), at, 1)

    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            uri = str(tmp_path / f"table{number}")
            assert list(pool.map(work, range(4))) == [1] * 4
            assert written(uri) == [0, 1000, 2000, 3000]
            log = [path.read_text() for path in Path(uri, "_delta_log").glob("*.json")]
            assert sum(text.count('"metaData"') for text in log) == 1


def test_replay_after_a_lost_reply_finds_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit succeeds, but its writer gets an error."""
    uri = str(tmp_path / "table")
    ledger = DeltaLedger(uri)
    process(ledger, 0, 1)
    write = deltalake.write_deltalake

    def lost(*args: Any, **options: Any) -> None:
        write(*args, **options)
        raise OSError("no response")

    with monkeypatch.context() as patch:
        patch.setattr(deltalake, "write_deltalake", lost)
        with pytest.raises(LedgerUnavailableError, match="no response"):
            process(ledger, 0, 5)
    assert process(ledger, 0, 1) == 7
    assert written(uri) == list(range(7))


def endless(uri: str) -> None:
    ledger = DeltaLedger(uri)
    while True:
        process(ledger, 0, 3)


@pytest.mark.kill
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
        child.join(PATIENCE_S)
    with DeltaLedger(uri).transaction(GROUP) as transaction:
        mark = transaction.marks()[key]
    assert mark >= 6 * 9
    assert written(uri) == list(range(mark))
