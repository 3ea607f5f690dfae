"""The memory that clients can use in a shard is limited; requests above the limit are rejected and
change nothing.
"""

import pytest

from pykafka_core.coordinator.transaction import state as state_module
from pykafka_core.coordinator.transaction.add_partitions import PARTITIONS_MAX
from pykafka_core.coordinator.transaction.records import transaction_record
from tests.coordinator.transaction.world import (
    ONGOING,
    T0,
    World,
    abort,
    add,
    commit,
    init,
    producer,
    transaction,
)

REFUSED = 44


def many(count: int, first: int = 0) -> list[tuple[str, int]]:
    return [("t", partition) for partition in range(first, first + count)]


def test_a_transaction_has_no_more_partitions_than_the_limit() -> None:
    world = World(transaction())
    assert world.ask(add(7, 5, *many(PARTITIONS_MAX + 1))) == REFUSED
    assert producer(world.ask(add(7, 5, *many(PARTITIONS_MAX)))) == 0
    assert world.ask(add(7, 5, ("t", PARTITIONS_MAX))) == REFUSED
    assert producer(world.ask(add(7, 5, *many(10)))) == 0
    assert producer(world.ask(commit(7, 5))) == (7, 6)


@pytest.mark.parametrize("bytes_max", range(300, 700, 7))
@pytest.mark.parametrize("epoch", [5, 32766])
def test_a_transaction_that_fits_into_a_batch_can_always_be_ended(
    bytes_max: int, epoch: int
) -> None:
    world = World(transaction(epoch=epoch, version=0), bytes_max=bytes_max)
    number = 0
    while producer(world.ask(add(7, epoch, ("t", number), version=0))) == 0:
        number += 1
    assert world.ask(add(7, epoch, ("t", number), version=0)) == REFUSED
    assert isinstance(producer(world.ask(abort(7, epoch))), tuple)
    world.write_markers()
    assert world.is_quiet


def test_ids_are_rejected_when_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "BYTES_MAX", 100_000)
    world, count = World(), 0
    while isinstance(producer(world.ask(init(name=f"x{count}"))), tuple):
        count += 1
    assert 150 < count < 200
    assert world.shard.bytes_used <= 100_000
    assert world.ask(init(name="other")) == REFUSED
    # Known ids are still served.
    assert producer(world.ask(init(name="x0"))) == (100, 1)
    assert world.ask(add(100, 1, *many(10), name="x0")) == REFUSED


def test_long_ids_count_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "BYTES_MAX", 100_000)
    world = World()
    responses = [world.ask(init(name=f"{one}{'ü' * 16_000}")) for one in range(10)]
    assert responses[-1] == REFUSED
    assert len(world.shard.by_id) < 7


def test_all_memory_is_released() -> None:
    world = World(transaction(ONGOING))
    empty = World(transaction()).shard.bytes_used
    assert world.shard.bytes_used > empty
    world.ask(commit(7, 5))
    world.write_markers()
    assert world.shard.bytes_used == empty


def test_full_shard_can_still_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "BYTES_MAX", 1_000)
    world = World(*[transaction(ONGOING, transactional_id=f"x{one}") for one in range(10)])
    assert len(world.shard.by_id) == 10
    assert producer(world.ask(commit(7, 5, name="x3"))) == (7, 6)


def test_topic_names_are_shared() -> None:
    world = World(transaction())
    for number in range(3):
        world.ask(add(7, 5, ("".join(["long", "name"]), number)))
    names = {id(topic) for topic, _ in world.one().partitions}
    assert len(names) == 1


def test_nothing_is_stored_for_partitions_already_in_the_transaction() -> None:
    world = World(transaction())
    world.ask(add(7, 5, T0))
    records = len(world.records)
    for _ in range(3):
        assert producer(world.ask(add(7, 5, T0))) == 0
    assert len(world.records) == records
    assert world.records[-1] == transaction_record(world.one())
