"""Offsets of transactions: the later one in the log counts, whichever marker comes first."""

from tests.coordinator.offsets.shard_world import Row, ShardWorld, at, commit, delete, stored

ROW: Row = ("g", "t", 0)


def offset(world: ShardWorld) -> int | None:
    committed = world.rows().get(ROW)
    return None if committed is None else committed.offset


def test_a_commit_overtakes_an_open_transaction() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(1))
    world.ask(commit(at(5)))
    world.end(7, committed=True)
    assert offset(world) == offset(world.reload()) == 5
    assert not world.pending()


def test_a_later_transaction_that_ends_first_counts() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    world.write(8, ROW, stored(9))
    world.end(8, committed=True)
    world.end(7, committed=True)
    assert offset(world) == 9


def test_an_aborted_transaction_overtakes_nothing() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    world.write(8, ROW, stored(9))
    world.end(8, committed=False)
    world.end(7, committed=True)
    assert offset(world) == 6


def test_an_offset_that_is_deleted_does_not_come_back_with_its_marker() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    assert world.ask(delete("g", ("t", 0))) == frozenset()
    world.end(7, committed=True)
    assert offset(world) is offset(world.reload()) is None
