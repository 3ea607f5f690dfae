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


NEW_ID = bytes(15) + b"\1"
OLD_ID = bytes(15) + b"\2"


def loaded_again(world: ShardWorld) -> ShardWorld:
    """With all that has to be searched for after a load; the topic has its new id."""
    again = world.reload(topic_id=NEW_ID)
    again.pass_ms(10)
    return again


def test_a_pending_offset_of_a_new_topic_survives_what_the_log_has_of_the_old_one() -> None:
    """The search for offsets of deleted topics took all pending ones of that name.

    The log still had a record of the old topic, so that each load began such a search.
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


def test_a_pending_offset_of_a_new_topic_keeps_its_place_from_the_old_ones_tombstone() -> None:
    world = ShardWorld()
    world.ask(commit(at(5, topic_id=OLD_ID)))
    world.write(7, ROW, stored(9, NEW_ID))
    again = loaded_again(world)
    again.end(7, committed=True)
    assert offset(again) == offset(again.reload(topic_id=NEW_ID)) == 9


def test_the_offset_of_a_deleted_topic_goes_once_no_pending_one_is_in_its_place() -> None:
    world = ShardWorld()
    world.ask(commit(at(5, topic_id=OLD_ID)))
    world.write(7, ROW, stored(9, NEW_ID))
    again = loaded_again(world)
    again.end(7, committed=False)
    again.pass_ms(600_000)
    assert offset(again) is None
