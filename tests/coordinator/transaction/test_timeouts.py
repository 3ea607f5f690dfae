"""Open transactions are aborted after their timeout, and never before."""

import pytest

from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from tests.coordinator.transaction.world import (
    COMPLETE_COMMIT,
    HOUR_MS,
    NOW_MS,
    ONGOING,
    PREPARE_ABORT,
    SETTINGS,
    T0,
    T1,
    TIMEOUT_MS,
    World,
    add,
    commit,
    init,
    shape,
    transaction,
)


def begun(timeout_ms: int = TIMEOUT_MS) -> World:
    world = World()
    world.ask(init(timeout_ms=timeout_ms))
    world.pass_ms(10)
    world.ask(add(100, 0, T0))
    return world


@pytest.mark.parametrize("timeout_ms", [1, 2, TIMEOUT_MS, SETTINGS.max_timeout_ms])
def test_a_transaction_is_aborted_one_millisecond_after_its_timeout(timeout_ms: int) -> None:
    world = begun(timeout_ms)
    world.pass_ms(timeout_ms)
    assert shape(world.one()) == (ONGOING, 100, 0)
    world.pass_ms(1)
    assert shape(world.one()) == (PREPARE_ABORT, 100, 1)
    assert world.effects == [WriteMarkers("x", 100, 1, False, frozenset({T0}), TV2)]
    assert world.is_quiet


def test_timeout_counts_from_the_first_partition() -> None:
    world = begun()
    world.pass_ms(TIMEOUT_MS - 1)
    world.ask(add(100, 0, T1))
    world.pass_ms(2)
    assert world.one().state is PREPARE_ABORT


def test_each_transaction_of_an_id_has_the_whole_timeout() -> None:
    world = begun()
    world.pass_ms(TIMEOUT_MS - 1)
    world.ask(commit(100, 0))
    world.write_markers()
    assert world.is_quiet
    world.ask(add(100, 1, T0))
    world.pass_ms(TIMEOUT_MS)
    assert world.one().state is ONGOING
    world.pass_ms(1)
    assert world.one().state is PREPARE_ABORT


def test_a_decided_transaction_waits_for_its_markers_forever() -> None:
    world = begun()
    world.ask(commit(100, 0))
    world.pass_ms(1_000 * HOUR_MS)
    assert world.one().state.is_prepared
    world.write_markers()
    assert world.one().state is COMPLETE_COMMIT


def test_load_does_not_extend_the_timeout() -> None:
    world = begun()
    world.pass_ms(TIMEOUT_MS - 1)
    world = world.reload()
    world.pass_ms(1)
    assert world.one().state is ONGOING
    world.pass_ms(1)
    assert world.one().state is PREPARE_ABORT


def test_transaction_that_timed_out_before_a_load_is_aborted_soon_after_it() -> None:
    world = World(transaction(ONGOING, start_ms=NOW_MS - 10 * TIMEOUT_MS, version=TV1))
    world.pass_ms(1)
    assert shape(world.one()) == (PREPARE_ABORT, 7, 6)


def test_clock_that_moves_back_extends_no_timeout() -> None:
    world = World(transaction(ONGOING, start_ms=NOW_MS + HOUR_MS))
    world.pass_ms(TIMEOUT_MS)
    assert world.one().state is ONGOING
    world.pass_ms(1)
    assert world.one().state is PREPARE_ABORT


def test_clock_that_moves_forward_ends_no_open_transaction() -> None:
    world = begun()
    world.now_ms += HOUR_MS
    world.began_ms += HOUR_MS
    world.ask(add(100, 0, T1))
    world.pass_ms(TIMEOUT_MS)
    assert world.one().state is ONGOING
    world.pass_ms(1)
    assert world.one().state is PREPARE_ABORT


@pytest.mark.parametrize("timeout_ms", [-1, 0, 2**31 - 1])
def test_a_transaction_of_two_phase_commit_has_no_timeout(timeout_ms: int) -> None:
    world = World(transaction(ONGOING, timeout_ms=timeout_ms))
    world.pass_ms(1_000 * HOUR_MS)
    assert world.one().state is ONGOING


def test_without_a_free_producer_id_the_abort_is_retried() -> None:
    world = World(transaction(ONGOING, epoch=32766))
    world.ids_at_hand = False
    world.pass_ms(TIMEOUT_MS + 1 + 3 * SETTINGS.abort_timed_out_interval_ms)
    assert world.one().state is ONGOING
    world.ids_at_hand = True
    world.pass_ms(SETTINGS.abort_timed_out_interval_ms)
    assert world.one().state is PREPARE_ABORT


def test_record_that_does_not_fit_is_retried() -> None:
    world = World(transaction(ONGOING))
    world.bytes_max = 10
    world.pass_ms(2 * TIMEOUT_MS)
    assert world.one().state is ONGOING
    world.bytes_max = 1_000
    world.pass_ms(SETTINGS.abort_timed_out_interval_ms)
    assert world.one().state is PREPARE_ABORT


def test_many_timeouts_are_spread_over_turns() -> None:
    world = World(*[transaction(ONGOING, transactional_id=f"x{one}") for one in range(50)])
    world.pass_ms(TIMEOUT_MS + 1)
    assert len(world.effects) == 50
    result = world.turn()
    world.shard.run_due(result)
    assert not result.records
