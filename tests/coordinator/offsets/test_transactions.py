"""Offsets of transactions: the later offset in the log wins, in any order of the markers."""

from tests.coordinator.offsets.shard_world import Row, ShardWorld, at, commit, delete, stored

ROW: Row = ("g", "t", 0)


def offset(world: ShardWorld) -> int | None:
    committed = world.rows().get(ROW)
    return None if committed is None else committed.offset


def test_commit_replaces_the_offset_of_an_open_transaction() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(1))
    world.ask(commit(at(5)))
    world.end(7, committed=True)
    assert offset(world) == offset(world.reload()) == 5
    assert not world.pending()


def test_offset_written_last_wins_if_its_transaction_ends_first() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    world.write(8, ROW, stored(9))
    world.end(8, committed=True)
    world.end(7, committed=True)
    assert offset(world) == 9


def test_aborted_transaction_replaces_nothing() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    world.write(8, ROW, stored(9))
    world.end(8, committed=False)
    world.end(7, committed=True)
    assert offset(world) == 6


def test_deleted_offset_does_not_return_with_its_marker() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(6))
    assert world.ask(delete("g", ("t", 0))) == frozenset()
    world.end(7, committed=True)
    assert offset(world) is offset(world.reload()) is None


NEW_ID = bytes(15) + b"\1"
OLD_ID = bytes(15) + b"\2"


def loaded_again(world: ShardWorld) -> ShardWorld:
    """Return a loaded world after all searches that follow a load; the topic has its new id."""
    again = world.reload(topic_id=NEW_ID)
    again.pass_ms(10)
    return again


def test_pending_offset_of_a_new_topic_survives_records_of_the_old_topic() -> None:
    """The search for offsets of deleted topics removed all pending offsets of that topic name.

    The log still had a record of the old topic, so each load started such a search.
    """
    world = ShardWorld()
    world.ask(commit(at(5, topic_id=OLD_ID)))
    world.ask(delete("g", ("t", 0)))
    world.write(7, ROW, stored(9, NEW_ID))
    again = loaded_again(world)
    assert again.pending() == {ROW}
    again.end(7, committed=True)
    assert offset(again) == offset(again.reload(topic_id=NEW_ID)) == 9


def test_a_pending_offset_of_a_deleted_topic_is_removed() -> None:
    world = ShardWorld()
    world.write(7, ROW, stored(9, OLD_ID))
    again = loaded_again(world)
    again.end(7, committed=True)
    assert offset(again) is None


def test_tombstone_of_the_old_topic_keeps_the_pending_offset_of_the_new_one() -> None:
    world = ShardWorld()
    world.ask(commit(at(5, topic_id=OLD_ID)))
    world.write(7, ROW, stored(9, NEW_ID))
    again = loaded_again(world)
    again.end(7, committed=True)
    assert offset(again) == offset(again.reload(topic_id=NEW_ID)) == 9


def test_offset_of_a_deleted_topic_is_removed_once_no_pending_offset_replaces_it() -> None:
    world = ShardWorld()
    world.ask(commit(at(5, topic_id=OLD_ID)))
    world.write(7, ROW, stored(9, NEW_ID))
    again = loaded_again(world)
    again.end(7, committed=False)
    again.pass_ms(600_000)
    assert offset(again) is None
