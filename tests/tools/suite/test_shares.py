"""`tests/support/runs/shares.py`: a run takes one share of the tests."""

from itertools import chain

import pytest

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "tests.support.runs.shares")
COUNT = 40


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A test file of 40 tests."""
    pytester.makepyfile("\n".join(f"def test_{number}(): pass" for number in range(COUNT)))
    return pytester


def _tests(inner: pytest.Pytester, *options: str) -> list[str]:
    lines = inner.runpytest_inprocess(*PLUGIN, "--collect-only", "-q", *options).outlines
    return [line.partition("::")[2] for line in lines if "::" in line]


def test_shares_are_disjoint_and_together_all_tests(inner: pytest.Pytester) -> None:
    every = _tests(inner)
    shares = [_tests(inner, "--share", f"{number}/3") for number in (1, 2, 3)]
    assert len(every) == COUNT
    assert sorted(chain(*shares)) == sorted(every)
    assert all(shares)


def test_share_is_taken_from_the_tests_that_other_options_select(inner: pytest.Pytester) -> None:
    share = _tests(inner, "--share", "1/3")
    selected = _tests(inner, "--share", "1/3", "-k", f"{share[0]} or {share[1]}")
    assert {share[0], share[1]} <= set(selected) < set(share)


def test_deselected_tests_are_counted(inner: pytest.Pytester) -> None:
    passed = len(_tests(inner, "--share", "2/3"))
    result = inner.runpytest_inprocess(*PLUGIN, "--share", "2/3")
    result.assert_outcomes(passed=passed, deselected=COUNT - passed)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "1.0/3"])
def test_invalid_share_is_rejected(inner: pytest.Pytester, text: str) -> None:
    result = inner.runpytest_inprocess(*PLUGIN, f"--share={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--share takes NUMBER/COUNT*not {text!r}"])
