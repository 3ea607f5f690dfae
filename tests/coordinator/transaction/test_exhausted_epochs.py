"""Producer ids whose epochs are used up."""

from collections.abc import Callable

import pytest

from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import TV1
from tests.coordinator.transaction.world import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    T0,
    TIMEOUT_MS,
    U0,
    Operation,
    World,
    abort,
    add,
    commit,
    init,
    producer,
    shape,
    transaction,
)

LAST, MAX = 32766, 32767


@pytest.mark.parametrize("end", [commit, abort])
def test_the_last_epoch_ends_with_a_new_producer_id(end: Callable[[int, int], Operation]) -> None:
    world = World(transaction(ONGOING, epoch=LAST))
    assert producer(world.ask(end(7, LAST))) == (100, 0)
    assert world.effects[0].producer_epoch == MAX
    assert world.one().next_producer_id == 100
    # Another node may assign the new id than the one that promised it.
    world = world.reload()
    assert world.ask(end(7, LAST)) == 51
    world.write_markers()
    complete = COMPLETE_COMMIT if end is commit else COMPLETE_ABORT
    assert shape(world.one()) == (complete, 100, 0)
    world = world.reload()
    for _ in range(2):
        assert producer(world.ask(end(7, LAST))) == (100, 0)
    other = abort if end is commit else commit
    assert world.ask(other(7, LAST)) == 48
    assert world.ask(end(7, LAST - 1)) == 49
    assert producer(world.ask(add(100, 0, T0))) == 0
    assert world.ask(end(7, LAST)) == 49


def test_last_epoch_follows_the_one_before_it() -> None:
    world = World(transaction(ONGOING, epoch=LAST - 1))
    assert producer(world.ask(commit(7, LAST - 1))) == (7, LAST)
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_COMMIT, 7, LAST)


def test_init_after_the_end_with_a_new_producer_id_gets_that_id() -> None:
    world = exchanged()
    for _ in range(2):
        assert producer(world.ask(init(7, LAST))) == (100, 0)
    assert producer(world.ask(init(100, 0))) == (100, 1)
    assert world.ask(init(7, LAST)) == 90


def exchanged() -> World:
    """Return a world with a producer that got a new id with the end of its last transaction."""
    world = World(transaction(ONGOING, epoch=LAST))
    world.ask(commit(7, LAST))
    world.write_markers()
    return world


def test_only_the_last_epoch_of_the_old_producer_id_is_accepted() -> None:
    world = exchanged()
    for epoch in (0, LAST - 1, MAX):
        assert world.ask(init(7, epoch)) == 90
        assert world.ask(commit(7, epoch)) == 49
    assert world.ask(commit(7, LAST, version=TV1)) == 49


def test_the_old_producer_id_is_forgotten_when_the_new_one_is_used() -> None:
    used = exchanged()
    used.ask(add(100, 0, T0))
    assert used.ask(init(7, LAST)) == 90
    assert used.one().state is ONGOING
    used = exchanged()
    used.ask(abort(100, 0))
    assert used.one().previous_producer_id == -1
    used.write_markers()
    assert used.ask(init(7, LAST)) == 90


def test_tv1_ends_transactions_of_the_last_epoch_in_place() -> None:
    world = World(transaction(ONGOING, epoch=LAST, version=TV1))
    assert producer(world.ask(commit(7, LAST, version=TV1))) == 0
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_COMMIT, 7, LAST)
    assert producer(world.ask(init())) == (100, 0)


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
@pytest.mark.parametrize("epoch", [LAST, MAX])
def test_init_replaces_an_exhausted_producer_id(state: TransactionState, epoch: int) -> None:
    world = World(transaction(state, epoch=epoch))
    for _ in range(2):
        assert producer(world.ask(init(7, epoch))) == (100, 0)
    assert world.one().previous_producer_id == 7
    assert producer(world.ask(init())) == (100, 1)
    assert world.ask(init(7, epoch)) == 90


def test_new_client_fences_the_producer_that_exhausted_its_id() -> None:
    world = World(transaction(epoch=LAST))
    assert producer(world.ask(init())) == (100, 0)
    assert world.ask(init(7, LAST)) == 90


def test_init_that_returned_the_last_epoch_can_be_repeated() -> None:
    world = World(transaction(epoch=LAST - 1))
    for _ in range(2):
        assert producer(world.ask(init(7, LAST - 1))) == (7, LAST)


@pytest.mark.parametrize("by_timeout", [True, False])
def test_fence_at_the_last_epoch_gives_no_client_the_highest_epoch(by_timeout: bool) -> None:
    world = World(transaction(ONGOING, epoch=LAST))
    if by_timeout:
        world.pass_ms(TIMEOUT_MS + 1)
    else:
        assert world.ask(init()) == 51
    assert world.effects == [WriteMarkers("x", 7, MAX, False, frozenset({T0, U0}), TV1)]
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_ABORT, 100, 0)
    assert producer(world.ask(abort(7, LAST))) == (100, 0)
    assert producer(world.ask(init())) == (100, 1)


def test_a_fence_raises_the_epoch_once() -> None:
    # KAFKA-19367: two increments overflowed at the last epoch but one.
    world = World(transaction(ONGOING, epoch=LAST - 1))
    world.pass_ms(TIMEOUT_MS + 1)
    assert shape(world.one()) == (PREPARE_ABORT, 7, LAST)


@pytest.mark.parametrize("state", [ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT])
def test_transaction_stored_by_kafka_with_the_highest_epoch_can_end(
    state: TransactionState,
) -> None:
    world = World(transaction(state, epoch=MAX))
    assert world.ask(add(7, MAX, T0)) in (90, 51)
    assert world.ask(commit(7, MAX)) in (90, 51)
    world.pass_ms(TIMEOUT_MS + 1)
    assert {effect.transaction_version for effect in world.effects} <= {TV1}
    world.write_markers()
    response = producer(world.ask(init()))
    assert isinstance(response, tuple)
    assert response[0] >= 100


def test_without_a_free_producer_id_nothing_changes() -> None:
    world = World(transaction(epoch=LAST), transaction(ONGOING, transactional_id="y", epoch=LAST))
    world.ids_at_hand = False
    assert world.ask(init(name="z")) == 14
    assert world.ask(init()) == 14
    assert world.ask(abort(7, LAST)) == 14
    assert world.ask(init(name="y")) == 14
    assert world.ask(commit(7, LAST, name="y")) == 14
    world.ids_at_hand = True
    assert producer(world.ask(init())) == (100, 0)
    assert producer(world.ask(init(name="z"))) == (101, 0)
