"""TxnOffsetCommit: offsets wait for the marker, and are rejected if no marker will follow."""

from functools import partial

import pytest

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
from tests.coordinator.offsets.shard_world import ShardWorld, at

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
