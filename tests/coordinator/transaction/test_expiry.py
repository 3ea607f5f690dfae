"""Unused transactional ids expire, except those with a transaction."""

import pytest

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.timers.expiry import SEARCHED_MAX
from tests.coordinator.transaction.world import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    MS,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    SETTINGS,
    T0,
    World,
    add,
    commit,
    init,
    producer,
    transaction,
)

EXPIRATION_MS, INTERVAL_MS = SETTINGS.id_expiration_ms, SETTINGS.remove_expired_interval_ms


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_unused_id_is_removed_after_its_expiration_time(state: TransactionState) -> None:
    world = World(transaction(state))
    world.pass_ms(EXPIRATION_MS - 1)
    assert world.one().state is state
    world.pass_ms(INTERVAL_MS)
    assert not world.shard.by_id
    assert world.records[-1][1] is None
    assert not world.reload().shard.by_id
    assert world.shard.bytes_used == 0


@pytest.mark.parametrize("state", [ONGOING, PREPARE_COMMIT, PREPARE_ABORT])
def test_an_id_with_a_transaction_never_expires(state: TransactionState) -> None:
    world = World(transaction(state, timeout_ms=-1))
    world.pass_ms(10 * EXPIRATION_MS)
    assert world.one().state is state


def test_any_stored_change_delays_the_expiry_of_an_id() -> None:
    world = World(transaction())
    world.pass_ms(EXPIRATION_MS - INTERVAL_MS // 2)
    world.ask(add(7, 5, T0))
    world.ask(commit(7, 5))
    world.write_markers()
    world.pass_ms(EXPIRATION_MS - 1)
    assert world.one().state is COMPLETE_COMMIT
    world.pass_ms(INTERVAL_MS)
    assert not world.shard.by_id


def test_expired_id_starts_with_a_new_producer_id() -> None:
    world = World(transaction())
    world.pass_ms(EXPIRATION_MS + INTERVAL_MS)
    assert world.ask(commit(7, 5)) == 49
    assert producer(world.ask(init(7, 5))) == (100, 0)


def test_search_continues_in_the_next_turn() -> None:
    count = 2 * SEARCHED_MAX + 1
    world = World(*[transaction(transactional_id=f"x{one}") for one in range(count)])
    world.now_ms += EXPIRATION_MS
    left = []
    while world.shard.by_id:
        result = world.turn()
        world.shard.run_due(result)
        assert len(result.records) <= SEARCHED_MAX
        left.append(len(world.shard.by_id))
        assert world.shard.deadlines.next_ns() > result.now_ns
        world.now_ms += 1
    assert left == [SEARCHED_MAX + 1, 1, 0]
    assert world.shard.deadlines.next_ns() == (EXPIRATION_MS + 2 + INTERVAL_MS) * MS


def test_tombstones_that_do_not_fit_into_a_batch_follow_in_the_next() -> None:
    world = World(*[transaction(transactional_id=f"x{one:04}") for one in range(100)])
    world.bytes_max = 1_000
    world.pass_ms(EXPIRATION_MS + INTERVAL_MS)
    assert not world.shard.by_id
    assert not world.reload().shard.by_id


def test_a_tombstone_that_fits_into_no_batch_does_not_end_the_search() -> None:
    names = ["short", "long" * 500, "other"]
    world = World(*[transaction(transactional_id=name) for name in names])
    world.bytes_max = 1_000
    world.pass_ms(EXPIRATION_MS + INTERVAL_MS)
    assert list(world.shard.by_id) == [names[1]]


def test_ids_added_and_removed_during_a_search_do_not_disturb_it() -> None:
    world = World(*[transaction(transactional_id=f"x{one}") for one in range(SEARCHED_MAX + 1)])
    world.now_ms += EXPIRATION_MS
    world.shard.run_due(world.turn())
    assert len(world.shard.by_id) == 1
    (left,) = world.shard.by_id
    world.ask(init(name="new"))
    world.ask(init(name=left))
    world.pass_ms(INTERVAL_MS)
    assert set(world.shard.by_id) == {"new", left}
