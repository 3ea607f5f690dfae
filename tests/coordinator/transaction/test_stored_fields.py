"""The stored times, timeouts and protocol versions of transactions."""

from functools import partial

import pytest

from pykafka_core.coordinator.transaction.markers_written import markers_written
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from tests.coordinator.transaction.world import (
    NOW_MS,
    T0,
    T1,
    Operation,
    World,
    abort,
    add,
    commit,
    init,
    transaction,
)


def test_each_record_contains_its_time_and_the_start_of_its_transaction() -> None:
    world = World(transaction(version=TV1))

    def times(operation: Operation) -> tuple[int, int]:
        world.pass_ms(10)
        world.ask(operation)
        return world.one().start_ms - NOW_MS, world.one().last_update_ms - NOW_MS

    written_6 = partial(markers_written, "x", 7, 6)
    assert times(add(7, 5, T0)) == (10, 10)
    assert times(add(7, 5, T1)) == (10, 20)
    assert times(commit(7, 5)) == (10, 30)
    assert times(written_6) == (10, 40)
    assert times(abort(7, 6)) == (50, 50)
    assert times(partial(markers_written, "x", 7, 7)) == (50, 60)
    assert times(add(7, 7, T0)) == (70, 70)
    assert times(init()) == (70, 80)
    assert times(partial(markers_written, "x", 7, 8)) == (70, 90)
    assert times(init()) == (-1 - NOW_MS, 100)


def test_init_sets_the_timeout_unless_it_is_rejected() -> None:
    world = World(transaction())
    world.ask(init(timeout_ms=11))
    assert world.one().timeout_ms == 11
    world.ask(add(7, 6, T0))
    assert world.ask(init(timeout_ms=22)) == 51
    world.write_markers()
    assert world.one().timeout_ms == 11
    world.ask(init(timeout_ms=22))
    assert world.one().timeout_ms == 22


@pytest.mark.parametrize("version", [TV1, TV2])
@pytest.mark.parametrize("before", [TV1, TV2])
def test_each_change_stores_the_transaction_version_of_its_client(
    before: int, version: int
) -> None:
    world = World(transaction(version=before))
    world.ask(init())
    assert world.one().client_version == before
    world.ask(add(7, 6, T0, version=version))
    assert world.one().client_version == version
    world.ask(commit(7, 6, version=before))
    assert world.one().client_version == before
    world.write_markers()
    assert world.one().client_version == before
