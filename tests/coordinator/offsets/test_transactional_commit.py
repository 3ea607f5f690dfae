"""TxnOffsetCommit: offsets wait for the marker, and are rejected if no marker will follow."""

from functools import partial

import pytest

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.group.offsets.commit import (
    NO_RETENTION,
    Commit,
    NewOffset,
    stored_offset,
)
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.offsets.transaction import (
    TransactionalCommit,
    begin_commit,
    commit_in_transaction,
    end_transaction,
)
from pykafka_core.coordinator.group.offsets.transactions import ENDS_KEPT, Guard, OpenTransactions
from pykafka_core.coordinator.shard import TransactionEnd
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from pykafka_core.errors import (
    CoordinatorLoadInProgressError,
    IllegalGenerationError,
    InvalidTxnStateError,
    UnknownMemberIdError,
)
from tests.coordinator.classic.world import World as GroupWorld
from tests.coordinator.offsets.shard_world import ShardWorld, at, stored
from tests.coordinator.offsets.shard_world import commit as commit_at_once

PRODUCER, EPOCH = 7, 3


def asked(
    *offsets: NewOffset,
    member_id: str = "",
    generation_id: int = -1,
    producer_id: int = PRODUCER,
    producer_epoch: int = EPOCH,
) -> TransactionalCommit:
    wanted = Commit(
        "g",
        member_id,
        None,
        generation_id,
        [
            stored_offset(OffsetRecords("g", one.topic), one, NO_RETENTION, 1_000)
            for one in offsets or (at(5),)
        ],
        None,
    )
    return TransactionalCommit(wanted, producer_id, producer_epoch)


def end(
    world: ShardWorld,
    *,
    committed: bool,
    producer_id: int = PRODUCER,
    epoch: int = EPOCH,
    version: int = TV1,
) -> None:
    marker = TransactionEnd(producer_id, epoch, 0, committed, version)
    assert world.ask(partial(end_transaction, marker)) is None


def guard_of(world: ShardWorld, wanted: TransactionalCommit) -> Guard:
    guard = world.ask(partial(begin_commit, wanted))
    assert isinstance(guard, Guard)
    return guard


def commit(world: ShardWorld, wanted: TransactionalCommit) -> object:
    guard = guard_of(world, wanted)
    return world.ask(partial(commit_in_transaction, wanted, guard))


def offset(world: ShardWorld) -> int | None:
    found = world.rows().get(("g", "t", 0))
    return None if found is None else found.offset


@pytest.mark.parametrize("committed", [True, False])
def test_offset_is_visible_after_its_transaction_commits(committed: bool) -> None:
    world = ShardWorld()
    assert commit(world, asked()) is None
    for one in (world, world.reload()):
        assert (offset(one), one.pending()) == (None, {("g", "t", 0)})
        end(one, committed=committed)
        assert (offset(one), one.pending()) == (5 if committed else None, set())
        assert offset(one.reload()) == offset(one)


def test_the_second_commit_of_a_transaction_is_not_verified() -> None:
    world = ShardWorld()
    commit(world, asked(at(5)))
    assert world.ask(partial(begin_commit, asked(at(6)))) is None
    end(world, committed=True)
    assert offset(world) == offset(world.reload()) == 6


def test_a_commit_of_another_epoch_is_verified() -> None:
    world = ShardWorld()
    commit(world, asked())
    guard_of(world, asked(producer_epoch=EPOCH - 1))


def test_pending_offset_of_before_a_load_is_verified_again() -> None:
    world = ShardWorld()
    commit(world, asked())
    guard_of(world.reload(), asked())


def test_commit_after_the_marker_of_its_transaction_is_rejected() -> None:
    world = ShardWorld()
    guard = guard_of(world, asked())
    end(world, committed=False)
    assert world.ask(partial(commit_in_transaction, asked(), guard)) == InvalidTxnStateError.code
    assert not world.pending()


def test_marker_of_another_producer_rejects_no_commit() -> None:
    world = ShardWorld()
    guard = guard_of(world, asked())
    end(world, committed=True, producer_id=PRODUCER + 1)
    assert world.ask(partial(commit_in_transaction, asked(), guard)) is None


@pytest.mark.parametrize(
    ("version", "marker_epoch", "expected"),
    [
        (TV2, EPOCH, None),
        (TV2, EPOCH + 1, InvalidTxnStateError.code),
        (TV2, EPOCH + 2, InvalidTxnStateError.code),
        (TV1, EPOCH - 1, None),
        (TV1, EPOCH, InvalidTxnStateError.code),
        (TV1, EPOCH + 1, InvalidTxnStateError.code),
    ],
)
def test_marker_of_the_previous_transaction_rejects_no_commit(
    version: int, marker_epoch: int, expected: int | None
) -> None:
    """A client of TV2 starts the next transaction when the last one is decided, maybe before the
    markers of the last one are written.

    Before, any marker caused the commit to be rejected, with an error that is fatal for the Java
    producer.
    """
    world = ShardWorld()
    guard = guard_of(world, asked())
    end(world, committed=True, epoch=marker_epoch, version=version)
    assert world.ask(partial(commit_in_transaction, asked(), guard)) == expected


def test_guard_of_a_reloaded_shard_fails_with_load_in_progress() -> None:
    world = ShardWorld()
    guard = guard_of(world, asked())
    again = world.reload()
    code = again.ask(partial(commit_in_transaction, asked(), guard))
    assert code == CoordinatorLoadInProgressError.code
    assert not again.pending()


def test_guard_is_valid_as_long_as_later_ends_are_kept() -> None:
    table = OpenTransactions()
    first = table.guard()
    for producer_id in range(ENDS_KEPT):
        table.end(TransactionEnd(producer_id, EPOCH, 0, True, TV1))
    assert table.knows(first)
    assert table.has_ended(first, 0, EPOCH)
    assert not table.has_ended(first, ENDS_KEPT, EPOCH)
    table.end(TransactionEnd(ENDS_KEPT, EPOCH, 0, True, TV1))
    assert not table.knows(first)
    assert table.knows(table.guard())
    assert not table.has_ended(table.guard(), 1, EPOCH)


def test_a_group_with_members_needs_no_name_within_a_transaction() -> None:
    world = GroupWorld()
    world.stable("a")
    world.group.check_commit("", None, -1, None)
    with pytest.raises(UnknownMemberIdError):
        world.group.check_commit("", None, -1, 9)


def test_a_generation_of_a_group_that_does_not_exist_is_refused() -> None:
    world = ShardWorld()
    wanted = asked(member_id="m", generation_id=1)
    guard = guard_of(world, wanted)
    code = world.ask(partial(commit_in_transaction, wanted, guard))
    assert code == IllegalGenerationError.code


@pytest.mark.parametrize("committed", [True, False])
def test_offset_of_a_deleted_group_does_not_return_after_a_transaction(committed: bool) -> None:
    """The tombstone was skipped for a transaction's offset, also if the transaction aborted."""
    world = ShardWorld(bytes_max=100)
    for partition in range(4):
        assert world.ask(commit_at_once(at(5, partition=partition))) is None
    commit(world, asked(at(6, topic="other")))
    deletion = world._turn()
    delete_group("g", world.shard, "deletion", deletion)
    world._take(deletion)
    assert deletion.responses == []
    wanted = asked(at(9, partition=3))
    code = world.ask(partial(begin_commit, wanted))
    while world.shard.offsets.detached:
        world.pass_ms(1)
    if code == CoordinatorLoadInProgressError.code:
        assert world.ask(partial(begin_commit, wanted)) is None
    end(world, committed=committed)
    world.pass_ms(100)
    expected = {("g", "t", 3): 9} if committed else {}
    for one in (world, world.reload()):
        assert {row: found.offset for row, found in one.rows().items()} == expected


OLD_ID, NEW_ID = b"o" * 16, b"n" * 16


@pytest.mark.parametrize("committed", [True, False])
def test_offset_of_a_deleted_topic_does_not_return_after_a_transaction(committed: bool) -> None:
    """Offsets without a topic id stay at a load if there is a topic of that name."""
    world = ShardWorld(topic_id=NEW_ID)
    world.write(-1, ("g", "t", 0), stored(5))
    assert commit(world, asked(at(9, topic_id=NEW_ID))) is None
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    world.pass_ms(10)
    end(world, committed=committed)
    world.pass_ms(10)
    expected = 9 if committed else None
    assert offset(world) == offset(world.reload(NEW_ID)) == expected


def test_transaction_after_the_load_of_a_recreated_topic_delays_no_other() -> None:
    """All offsets of the new topic were noted as hidden, though no offset was removed there. The
    group rejected offsets of transactions after each transaction.
    """
    world = ShardWorld(topic_id=OLD_ID)
    assert world.ask(commit_at_once(at(5, topic_id=OLD_ID))) is None
    world.topic_id = NEW_ID
    assert world.ask(commit_at_once(at(6, topic_id=NEW_ID))) is None
    again = world.reload(NEW_ID)
    again.pass_ms(10)
    for number in (7, 8):
        assert commit(again, asked(at(number, topic_id=NEW_ID))) is None
        end(again, committed=True)
        assert offset(again) == number


def test_hidden_offsets_of_a_group_wait_for_their_tombstones_together() -> None:
    """Each waited separately, and each commit of a transaction searched all of them."""
    world = ShardWorld(topic_id=NEW_ID)
    for partition in range(3):
        world.write(-1, ("g", "t", partition), stored(5, OLD_ID))
    replacing = [at(9, partition=partition, topic_id=NEW_ID) for partition in range(3)]
    assert commit(world, asked(*replacing)) is None
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    world.pass_ms(10)
    end(world, committed=False)
    assert len(world.shard.offsets.detached) == 1
    world.pass_ms(10)
    assert not world.shard.offsets.detached
    assert world.rows() == world.reload(NEW_ID).rows() == {}
