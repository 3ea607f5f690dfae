"""Producer epochs: which producers are fenced, and which may continue."""

import pytest

from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from tests.coordinator.transaction.world import (
    COMPLETE_ABORT,
    EMPTY,
    ONGOING,
    T0,
    TIMEOUT_MS,
    U0,
    World,
    abort,
    add,
    commit,
    init,
    producer,
    shape,
    transaction,
    verify,
)


def test_a_second_producer_fences_the_first() -> None:
    world = World()
    assert producer(world.ask(init())) == (100, 0)
    assert producer(world.ask(init())) == (100, 1)
    assert [world.ask(one(100, 0)) for one in (init, commit, abort)] == [90, 90, 90]
    assert world.ask(commit(100, 0, version=TV1)) == 90
    assert world.ask(add(100, 0, T0)) == 90
    assert world.ask(verify(100, 0, T0)) == 90


def test_repeated_init_gets_the_same_answer_until_the_epoch_is_used() -> None:
    world = World(transaction(epoch=5))
    for _ in range(3):
        assert producer(world.ask(init(7, 5))) == (7, 6)
    assert producer(world.ask(init(7, 6))) == (7, 7)
    assert world.ask(init(7, 5)) == 90
    assert producer(world.ask(init(7, 6))) == (7, 7)


def test_a_repeated_init_is_fenced_by_a_new_client() -> None:
    world = World(transaction(epoch=5))
    world.ask(init(7, 5))
    assert producer(world.ask(init())) == (7, 7)
    assert world.ask(init(7, 5)) == 90
    assert world.ask(init(7, 6)) == 90


def test_repeated_init_is_fenced_after_a_load_as_in_kafka() -> None:
    world = World(transaction(epoch=5))
    world.ask(init(7, 5))
    world = world.reload()
    assert world.ask(init(7, 5)) == 90
    assert producer(world.ask(init(7, 6))) == (7, 7)


def test_init_after_a_lost_end_response_continues_with_the_new_epoch() -> None:
    # The client did not get the response to EndTxn, and starts again with its last epoch.
    world = World(transaction(ONGOING))
    assert producer(world.ask(commit(7, 5))) == (7, 6)
    assert world.ask(init(7, 5)) == 51
    world.write_markers()
    assert producer(world.ask(init(7, 5))) == (7, 6)
    assert shape(world.one()) == (EMPTY, 7, 6)


def test_a_client_whose_id_expired_gets_a_new_producer_id() -> None:
    assert producer(World().ask(init(7, 5))) == (100, 0)


@pytest.mark.parametrize("version", [TV1, TV2])
def test_new_producer_aborts_the_open_transaction_of_the_old_one(version: int) -> None:
    world = World(transaction(ONGOING, version=version))
    assert world.ask(init()) == 51
    # The epoch rises for the fence, and again for the new producer, so they never share an epoch.
    assert world.effects == [WriteMarkers("x", 7, 6, False, frozenset({T0, U0}), TV2)]
    assert world.ask(init()) == 51
    assert len(world.effects) == 1
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_ABORT, 7, 6)
    assert producer(world.ask(init())) == (7, 7)
    assert world.ask(commit(7, 5)) == 90
    assert world.ask(commit(7, 5, version=TV1)) == 90


def test_timed_out_producer_can_continue_with_tv2() -> None:
    world = World(transaction(ONGOING))
    world.pass_ms(TIMEOUT_MS + 1)
    assert world.ask(abort(7, 5)) == 51
    world.write_markers()
    assert world.ask(commit(7, 5)) == 48
    assert producer(world.ask(abort(7, 5))) == (7, 6)
    assert producer(world.ask(add(7, 6, T0))) == 0


def test_timed_out_producer_is_fenced_with_tv1() -> None:
    world = World(transaction(ONGOING, version=TV1))
    world.pass_ms(TIMEOUT_MS + 1)
    world.write_markers()
    assert world.ask(commit(7, 5, version=TV1)) == 90
    assert world.ask(abort(7, 5, version=TV1)) == 90
    assert producer(world.ask(init(7, 5))) == (7, 6)


def test_repeated_ends_of_tv2_return_the_epoch_of_the_first() -> None:
    world = World(transaction(ONGOING))
    assert producer(world.ask(commit(7, 5))) == (7, 6)
    assert world.ask(commit(7, 5)) == 51
    world.write_markers()
    for _ in range(2):
        assert producer(world.ask(commit(7, 5))) == (7, 6)
        world = world.reload()
    assert world.ask(abort(7, 5)) == 48


def test_repeated_ends_of_tv1_succeed() -> None:
    world = World(transaction(ONGOING, version=TV1))
    assert producer(world.ask(abort(7, 5, version=TV1))) == 0
    assert world.ask(abort(7, 5, version=TV1)) == 51
    world.write_markers()
    assert producer(world.ask(abort(7, 5, version=TV1))) == 0
    assert world.ask(commit(7, 5, version=TV1)) == 48


def test_a_late_end_of_tv2_does_not_decide_the_next_transaction() -> None:
    world = World(transaction(ONGOING))
    world.ask(commit(7, 5))
    world.write_markers()
    world.ask(add(7, 6, T0))
    assert world.ask(commit(7, 5)) == 90
    assert world.ask(abort(7, 5)) == 90
    assert shape(world.one()) == (ONGOING, 7, 6)


def test_client_of_tv1_after_one_of_tv2_and_back() -> None:
    world = World()
    world.ask(init())
    world.ask(add(100, 0, T0))
    assert producer(world.ask(commit(100, 0))) == (100, 1)
    world.write_markers()
    assert producer(world.ask(init())) == (100, 2)
    for end in (commit, abort):
        world.ask(add(100, 2, T0, version=TV1))
        assert producer(world.ask(end(100, 2, version=TV1))) == 0
        assert world.effects[0].transaction_version == TV1
        world.write_markers()
        assert world.one().producer_epoch == 2
    assert producer(world.ask(init())) == (100, 3)
    world.ask(add(100, 3, T0))
    assert producer(world.ask(abort(100, 3))) == (100, 4)
    assert world.effects[0].transaction_version == TV2


def test_fenced_producer_does_not_get_the_epoch_of_its_successor() -> None:
    for end in (commit, abort):
        world = World(transaction(epoch=4))
        assert producer(world.ask(init())) == (7, 5)
        world.ask(add(7, 5, T0, version=TV1))
        world.ask(end(7, 5, version=TV1))
        world.write_markers()
        assert world.ask(commit(7, 4)) == 90
        assert world.ask(abort(7, 4)) == 90
