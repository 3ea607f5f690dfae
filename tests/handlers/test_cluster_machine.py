"""The controller's rules together, in histories that nobody chose."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.handlers.cluster_machine import ClusterMachine
from tests.handlers.cluster_mutants import MUTANTS

TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)

FOUND_WITHIN = settings(
    max_examples=1000,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""As far as a wrong rule is looked for: the same histories each time, and none is made smaller."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ClusterMachine, settings=FOUND_WITHIN)
