"""Sessions of brokers: contract/replication.md#36, #38, #39, #40."""

from itertools import product

import pytest

from pykafka_core.metadata.broker_sessions import (
    BrokerSessions,
    BrokerState,
    Wish,
    next_state,
    state_of,
)
from tests.metadata.partitions import broker

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
STOPPING, STOP = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW
TIMEOUT = 9_000
ONE, TWO, THREE = (broker(node) for node in (1, 2, 3))
ALL = (ONE, TWO, THREE)


def sessions(began_ns: int = 0) -> BrokerSessions:
    return BrokerSessions(TIMEOUT, began_ns)


def wish(
    fence: bool = False,
    shut_down: bool = False,
    caught_up: bool = True,
    leads: bool = False,
    others_know: bool = True,
) -> Wish:
    return Wish(fence, shut_down, caught_up, leads, others_know)


@pytest.mark.parametrize(
    ("state", "asked", "then"),
    [
        (FENCED, wish(), UNFENCED),
        (FENCED, wish(fence=True), FENCED),
        (FENCED, wish(caught_up=False), FENCED),
        (FENCED, wish(shut_down=True, caught_up=False), STOP),
        (FENCED, wish(shut_down=True, fence=True), STOP),
        (UNFENCED, wish(caught_up=False), UNFENCED),
        (UNFENCED, wish(fence=True), FENCED),
        (UNFENCED, wish(fence=True, shut_down=True, leads=True), STOP),
        (UNFENCED, wish(shut_down=True, leads=True), STOPPING),
        (UNFENCED, wish(shut_down=True), STOP),
        (STOPPING, wish(shut_down=True, leads=True), STOPPING),
        (STOPPING, wish(shut_down=True, others_know=False), STOPPING),
        (STOPPING, wish(shut_down=True), STOP),
        (STOPPING, wish(fence=True), STOP),
    ],
    ids=str,
)
def test_heartbeat_moves_a_broker_from_state_to_state(
    state: BrokerState, asked: Wish, then: BrokerState
) -> None:
    assert next_state(state, asked) is then


def test_every_state_except_the_last_answers_every_heartbeat() -> None:
    for state, flags in product(BrokerState, product((False, True), repeat=5)):
        if state is not STOP:
            assert isinstance(next_state(state, Wish(*flags)), BrokerState)


def test_rule_38_a_broker_is_unfenced_only_when_it_has_applied_its_registration() -> None:
    assert next_state(FENCED, wish(caught_up=False)) is FENCED
    assert next_state(FENCED, wish()) is UNFENCED


@pytest.mark.parametrize(
    ("fenced", "stopping", "state"),
    [(False, False, UNFENCED), (True, False, FENCED), (False, True, STOPPING), (True, True, FENCED)],
)  # fmt: skip
def test_state_is_that_of_the_committed_registration(
    fenced: bool, stopping: bool, state: BrokerState
) -> None:
    found = state_of(broker(1, fenced=fenced, in_controlled_shutdown=stopping))
    assert found is state
    assert found.is_fenced is fenced


def test_rule_39_only_the_broker_silent_for_longest_is_stale() -> None:
    now = sessions().touched(1, ONE.epoch, 300, 5).touched(2, TWO.epoch, 100, 5)
    now = now.touched(3, THREE.epoch, 200, 5)
    assert now.deadline_ns(ALL) == 100 + TIMEOUT
    assert now.stale(ALL, 100 + TIMEOUT) is None
    assert now.stale(ALL, 500 + TIMEOUT) == TWO
    assert now.stale((ONE, THREE), 500 + TIMEOUT) == THREE


def test_rule_39_a_new_controller_restarts_all_sessions() -> None:
    old = sessions().touched(1, ONE.epoch, 100, 5)
    assert old.stale(ALL, 5_000 + TIMEOUT) is not None
    new = sessions(began_ns=5_000)
    assert new.deadline_ns(ALL) == 5_000 + TIMEOUT
    assert new.stale(ALL, 5_000 + TIMEOUT) is None
    assert new.stale(ALL, 5_001 + TIMEOUT) == ONE


def test_rule_39_a_heartbeat_counts_from_its_arrival_even_if_it_was_queued() -> None:
    held = sessions().touched(1, ONE.epoch, 100, 5)
    arrived, decided = 9_000, 9_101 + 5_000
    late = held.touched(1, ONE.epoch, arrived, 6)
    assert held.stale((ONE,), decided) == ONE
    assert late.stale((ONE,), decided) is None
    assert late.deadline_ns((ONE,)) == arrived + TIMEOUT
    # A heartbeat that arrived before another one does not move the deadline back.
    assert late.touched(1, ONE.epoch, 50, 6).deadline_ns((ONE,)) == arrived + TIMEOUT


def test_a_fenced_broker_is_not_stale_and_has_no_deadline() -> None:
    fenced = ONE._replace(fenced=True)
    now = sessions().touched(1, ONE.epoch, 0, 5)
    assert now.stale((fenced,), 10 * TIMEOUT) is None
    assert now.deadline_ns((fenced,)) is None


def test_rule_36_a_session_is_valid_up_to_its_timeout() -> None:
    now = sessions().touched(1, ONE.epoch, 100, 5)
    assert now.is_valid(ONE, 100 + TIMEOUT)
    assert not now.is_valid(ONE, 101 + TIMEOUT)


def test_rule_36_a_fenced_broker_that_registered_recently_has_a_valid_session() -> None:
    fenced = ONE._replace(fenced=True)
    assert not sessions().is_valid(fenced, 0)
    assert sessions().registered(1, ONE.epoch, 0).is_valid(fenced, TIMEOUT)


def test_session_belongs_to_one_broker_epoch() -> None:
    now = sessions().touched(1, ONE.epoch, 5_000, 5)
    next_process = ONE._replace(epoch=ONE.epoch + 1, fenced=True)
    assert not now.is_valid(next_process, 5_000)
    assert now.ended(1, ONE.epoch + 1) == now
    assert now.registered(1, ONE.epoch, 7_000) == now.touched(1, ONE.epoch, 7_000, 5)
    assert now.registered(1, ONE.epoch + 1, 7_000).is_valid(next_process, 7_000)


def test_broker_whose_session_ended_may_register_again_at_once() -> None:
    now = sessions().touched(1, ONE.epoch, 5_000, 5).ended(1, ONE.epoch)
    assert not now.is_valid(ONE._replace(fenced=True), 5_000)


def test_rule_40_a_stop_waits_until_all_active_brokers_have_applied_the_changes() -> None:
    stopping = THREE._replace(in_controlled_shutdown=True)
    brokers = (ONE, TWO, stopping, broker(4, fenced=True))
    now = sessions().shutting_down(3, THREE.epoch, 20).touched(3, THREE.epoch, 1, 3)
    assert now.shutdown_offset(stopping) == 20
    now = now.touched(1, ONE.epoch, 1, 25)
    assert not now.has_applied(brokers, 20), "nothing is known of broker 2"
    assert not now.touched(2, TWO.epoch, 1, 19).has_applied(brokers, 20)
    assert now.touched(2, TWO.epoch, 1, 20).has_applied(brokers, 20)
    assert sessions().has_applied((stopping,), 20), "nobody is left to tell"
