"""The histories find each wrong rule of `tests.spark.sink.histories.mutants`."""

import pytest

from tests.spark.sink.histories.mutants import MUTANTS, RECORDED


@pytest.mark.parametrize("rule", MUTANTS)
def test_the_recorded_seed_finds_the_wrong_rule(rule: str) -> None:
    RECORDED.check(rule)


def test_every_recorded_seed_belongs_to_a_wrong_rule() -> None:
    assert RECORDED.unknown() == set()


@pytest.mark.campaign
@pytest.mark.parametrize("rule", MUTANTS)
def test_a_search_finds_the_wrong_rule(rule: str) -> None:
    RECORDED.search(rule)
