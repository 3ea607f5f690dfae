"""The controller's rules in random histories; these histories must also detect each wrong rule."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.handlers.cluster.histories.machine import ClusterMachine
from tests.handlers.cluster.histories.mutants import MUTANTS, RECORDED

SAMPLE = settings(max_examples=10, stateful_step_count=50, deadline=None)
CAMPAIGN = settings(max_examples=100, stateful_step_count=50, deadline=None)


def test_invariants_hold_in_a_sample_of_histories() -> None:
    run_state_machine_as_test(ClusterMachine, settings=SAMPLE)


@pytest.mark.campaign
def test_invariants_hold_in_many_histories() -> None:
    run_state_machine_as_test(ClusterMachine, settings=CAMPAIGN)


@pytest.mark.parametrize("rule", MUTANTS)
def test_the_recorded_history_finds_the_wrong_rule(rule: str) -> None:
    RECORDED.check(rule)


def test_every_recorded_history_belongs_to_a_wrong_rule() -> None:
    assert RECORDED.unknown() == set()


@pytest.mark.campaign
@pytest.mark.parametrize("rule", MUTANTS)
def test_a_search_finds_the_wrong_rule(rule: str) -> None:
    RECORDED.search(rule)
