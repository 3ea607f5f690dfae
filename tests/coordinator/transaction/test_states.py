"""The table of a transaction: the response and the next state for each state and event."""

from collections.abc import Callable
from functools import partial

import pytest

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.list_transactions import (
    TransactionFilters,
    list_transactions,
)
from pykafka_core.coordinator.transaction.markers_written import markers_written
from pykafka_core.coordinator.transaction.states import BY_NAME, FOLLOWING, TransactionState
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from pykafka_core.protocol.messages import DescribeTransactionsResponse
from tests.coordinator.transaction.world import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    HOUR_MS,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    SETTINGS,
    T0,
    T1,
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
    verify,
)

COLUMNS = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)
GONE = "gone"

Event = Callable[[World], object]


def request(operation: Operation) -> Event:
    return lambda world: producer(world.ask(operation))


def codes(operation: Operation) -> Event:
    def event(world: World) -> object:
        response = world.ask(operation)
        return tuple(response.values()) if isinstance(response, dict) else response

    return event


def described(world: World) -> object:
    read = world.ask(partial(describe_transaction, "x", Budget(UNRESERVED_BYTES_MAX)))
    assert isinstance(read, Read)
    response = read.value
    assert isinstance(response, DescribeTransactionsResponse.TransactionState)
    return response.transaction_state


def listed(world: World) -> object:
    open_states = {ONGOING, PREPARE_COMMIT, PREPARE_ABORT}
    response = world.ask(list_transactions)
    assert isinstance(response, tuple)
    filters = TransactionFilters(states=open_states)
    return sum(filters.take(one, world.now_ms) for one in response)


def told(producer_id: int, epoch: int) -> Event:
    return request(partial(markers_written, "x", producer_id, epoch))


# The producer has id 7 and epoch 5, and uses TV2; its previous epoch, 4, is no longer stored.
EVENTS: dict[str, Event] = {
    "init: new client": request(init()),
    "init: present": request(init(7, 5)),
    "init: epoch before": request(init(7, 4)),
    "init: next epoch": request(init(7, 6)),
    "init: other id": request(init(8, 5)),
    "init: id alone": request(init(7, -1)),
    "init: epoch alone": request(init(-1, 5)),
    "init: timeout 0": request(init(timeout_ms=0)),
    "init: timeout too long": request(init(timeout_ms=SETTINGS.max_timeout_ms + 1)),
    "add: in": request(add(7, 5, T0)),
    "add: more": request(add(7, 5, T1)),
    "add: more, TV1": request(add(7, 5, T1, version=TV1)),
    "add: epoch before": request(add(7, 4, T0)),
    "add: other id": request(add(8, 5, T0)),
    "verify": codes(verify(7, 5, T0, T1, U0)),
    "verify: epoch before": codes(verify(7, 4, T0)),
    "verify: other id": codes(verify(8, 5, T0)),
    "commit: TV1": request(commit(7, 5, version=TV1)),
    "commit: TV1, epoch before": request(commit(7, 4, version=TV1)),
    "commit: TV1, other id": request(commit(8, 5, version=TV1)),
    "abort: TV1": request(abort(7, 5, version=TV1)),
    "abort: TV1, next epoch": request(abort(7, 6, version=TV1)),
    "commit: TV2": request(commit(7, 5)),
    "commit: TV2, epoch before": request(commit(7, 4)),
    "commit: TV2, two epochs before": request(commit(7, 3)),
    "commit: TV2, other id": request(commit(8, 5)),
    "abort: TV2": request(abort(7, 5)),
    "abort: TV2, epoch before": request(abort(7, 4)),
    "abort: TV2, next epoch": request(abort(7, 6)),
    "abort: TV2, other id": request(abort(8, 4)),
    "markers written": told(7, 5),
    "markers written: epoch before": told(7, 4),
    "markers written: other id": told(8, 5),
    "timeout": lambda world: world.pass_ms(TIMEOUT_MS + 1),
    "almost a timeout": lambda world: world.pass_ms(TIMEOUT_MS),
    "a day": lambda world: world.pass_ms(25 * HOUR_MS),
    "loaded again": lambda world: vars(world).update(vars(world.reload())),
    "describe": described,
    "list open ones": listed,
}

E, ON, PC, PA, CC, CA = COLUMNS
S = "same"
NEW, RETRY, AS_WAS = (7, 6), (7, 5), (0, S)
# The response, and the next state with its epoch; one column for each previous state.
TABLE: dict[str, tuple[tuple[object, object], ...]] = {
    "init: new client": ((NEW, (E, 6)), (51, (PA, 6)), (51, S), (51, S), (NEW, (E, 6)), (NEW, (E, 6))),
    "init: present": ((NEW, (E, 6)), (51, (PA, 6)), (51, S), (51, S), (NEW, (E, 6)), (NEW, (E, 6))),
    # Kafka does not check the epoch while a transaction is open or prepared.
    "init: epoch before": ((90, S), (51, (PA, 6)), (51, S), (51, S), (90, S), (90, S)),
    "init: next epoch": ((90, S), (51, (PA, 6)), (51, S), (51, S), (90, S), (90, S)),
    "init: other id": ((90, S), (90, S), (51, S), (51, S), (90, S), (90, S)),
    "init: id alone": ((42, S),) * 6,
    "init: epoch alone": ((42, S),) * 6,
    "init: timeout 0": ((50, S),) * 6,
    "init: timeout too long": ((50, S),) * 6,
    "add: in": ((0, (ON, 5)), AS_WAS, (51, S), (51, S), (0, (ON, 5)), (0, (ON, 5))),
    "add: more": ((0, (ON, 5)), (0, (ON, 5)), (51, S), (51, S), (0, (ON, 5)), (0, (ON, 5))),
    "add: more, TV1": ((0, (ON, 5)), (0, (ON, 5)), (51, S), (51, S), (0, (ON, 5)), (0, (ON, 5))),
    "add: epoch before": ((90, S), (90, S), (51, S), (51, S), (90, S), (90, S)),
    "add: other id": ((49, S), (49, S), (51, S), (51, S), (49, S), (49, S)),
    "verify": (
        ((120, 120, 120), S), ((0, 120, 0), S), (51, S), (51, S),
        ((120, 120, 120), S), ((120, 120, 120), S),
    ),
    "verify: epoch before": ((90, S),) * 6,
    "verify: other id": ((49, S),) * 6,
    "commit: TV1": ((48, S), (0, (PC, 5)), (51, S), (51, S), AS_WAS, (48, S)),
    "commit: TV1, epoch before": ((90, S),) * 6,
    "commit: TV1, other id": ((49, S),) * 6,
    "abort: TV1": ((48, S), (0, (PA, 5)), (51, S), (51, S), (48, S), AS_WAS),
    "abort: TV1, next epoch": ((90, S),) * 6,
    "commit: TV2": ((48, S), (NEW, (PC, 6)), (51, S), (51, S), (48, S), (48, S)),
    "commit: TV2, epoch before": ((90, S), (90, S), (51, S), (51, S), (RETRY, S), (48, S)),
    "commit: TV2, two epochs before": ((90, S), (90, S), (51, S), (51, S), (90, S), (90, S)),
    "commit: TV2, other id": ((49, S), (49, S), (51, S), (51, S), (49, S), (49, S)),
    "abort: TV2": ((NEW, (PA, 6)), (NEW, (PA, 6)), (51, S), (51, S), (NEW, (PA, 6)), (NEW, (PA, 6))),
    "abort: TV2, epoch before": ((90, S), (90, S), (51, S), (51, S), (48, S), (RETRY, S)),
    "abort: TV2, next epoch": ((90, S), (90, S), (51, S), (51, S), (90, S), (90, S)),
    "abort: TV2, other id": ((49, S), (49, S), (51, S), (51, S), (49, S), (49, S)),
    "markers written": (AS_WAS, AS_WAS, (0, (CC, 5)), (0, (CA, 5)), AS_WAS, AS_WAS),
    "markers written: epoch before": (AS_WAS,) * 6,
    "markers written: other id": (AS_WAS,) * 6,
    "timeout": ((None, S), (None, (PA, 6)), (None, S), (None, S), (None, S), (None, S)),
    "almost a timeout": ((None, S),) * 6,
    "a day": ((None, GONE), (None, (PA, 6)), (None, S), (None, S), (None, GONE), (None, GONE)),
    "loaded again": ((None, S),) * 6,
    "describe": tuple((state.kafka_name, S) for state in COLUMNS),
    "list open ones": ((0, S), (1, S), (1, S), (1, S), (0, S), (0, S)),
}  # fmt: skip


def test_the_table_has_every_event() -> None:
    assert TABLE.keys() == EVENTS.keys()
    assert {len(row) for row in TABLE.values()} == {len(COLUMNS)}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", COLUMNS)
def test_every_event_in_every_state(state: TransactionState, event: str) -> None:
    world = World(transaction(state))
    before, records, asked = world.one(), len(world.records), list(world.effects)
    response = EVENTS[event](world)
    expected, following = TABLE[event][COLUMNS.index(state)]
    assert response == expected
    if following == GONE:
        assert not world.shard.by_id
        assert len(world.records) == records + 1
    elif following == S:
        assert world.one() == before
        assert len(world.records) == records
        assert world.effects == asked
    else:
        assert (world.one().state, world.one().producer_epoch) == following
        assert len(world.records) == records + 1
        assert (len(world.effects) > len(asked)) == world.one().state.is_prepared
    # The stored state is equal to the shard's state.
    assert world.reload().shard.by_id == {
        name: one._replace(last_producer_epoch=-1) for name, one in world.shard.by_id.items()
    }


@pytest.mark.parametrize("state", COLUMNS)
def test_only_decided_transactions_write_markers_after_a_load(
    state: TransactionState,
) -> None:
    world = World(transaction(state))
    is_commit = state is PREPARE_COMMIT
    expected = WriteMarkers("x", 7, 5, is_commit, frozenset({T0, U0}), TV2)
    assert world.effects == ([expected] if state.is_prepared else [])


@pytest.mark.parametrize("source", TransactionState)
@pytest.mark.parametrize("target", TransactionState)
def test_a_transition_that_is_not_in_the_table_changes_nothing(
    source: TransactionState, target: TransactionState
) -> None:
    world = World()
    world.shard.put(transaction(source))
    result = world.turn()
    if target in FOLLOWING[source]:
        world.shard.store(transaction(target), result)
        assert world.one().state is target
        assert len(result.records) == 1
    else:
        with pytest.raises(AssertionError):
            world.shard.store(transaction(target), result)
        assert world.one().state is source
        assert not result.records


@pytest.mark.parametrize(
    "operation",
    [add(7, 5, T0), verify(7, 5, T0), commit(7, 5), abort(7, 5), commit(7, 5, version=TV1)],
)
def test_an_unknown_id_has_no_producer(operation: Operation) -> None:
    world = World()
    assert world.ask(operation) == 49
    assert not world.records


@pytest.mark.parametrize(
    "operation",
    [
        init(name=""),
        add(7, 5, T0, name=""),
        verify(7, 5, T0, name=""),
        commit(7, 5, name=""),
        abort(7, 5, name="", version=TV1),
        partial(describe_transaction, "", Budget(UNRESERVED_BYTES_MAX)),
    ],
)
def test_empty_id_is_rejected(operation: Operation) -> None:
    assert World(transaction()).ask(operation) == 42


def test_unknown_id_cannot_be_described() -> None:
    assert World().ask(partial(describe_transaction, "x", Budget(UNRESERVED_BYTES_MAX))) == 105


def test_markers_of_an_unknown_id_are_ignored() -> None:
    world = World()
    assert told(7, 5)(world) == 0
    assert not world.records


def test_states_have_the_names_of_kafka() -> None:
    assert list(BY_NAME) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_complete_transaction_of_each_version() -> None:
    world = World()
    assert producer(world.ask(init())) == (100, 0)
    assert producer(world.ask(add(100, 0, T0, version=TV1))) == 0
    assert producer(world.ask(commit(100, 0, version=TV1))) == 0
    assert world.effects == [WriteMarkers("x", 100, 0, True, frozenset({T0}), TV1)]
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_COMMIT, 100, 0)
    assert producer(world.ask(add(100, 0, T1))) == 0
    assert producer(world.ask(abort(100, 0))) == (100, 1)
    assert world.effects == [WriteMarkers("x", 100, 1, False, frozenset({T1}), TV2)]
    world.write_markers()
    assert shape(world.one()) == (COMPLETE_ABORT, 100, 1)
    assert world.is_quiet
