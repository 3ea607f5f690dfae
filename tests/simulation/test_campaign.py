"""A campaign reports its first failing seed, with the command that repeats it."""

import sys

import pytest

from tests.simulation.campaign import main


def test_a_failed_seed_is_named_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[int] = []

    def run_seed(seed: int) -> str:
        ran.append(seed)
        assert seed != 7, "the seventh fails"
        return ""

    monkeypatch.setattr(sys, "argv", ["seeds", "--first", "5", "--seeds", "10"])
    assert main("tests.some", run_seed) == 1
    assert ran == [5, 6, 7]
    out, error = capsys.readouterr()
    assert "the seventh fails" in error
    assert "PYTHONHASHSEED=0 python -m tests.some --first 7 --seeds 1" in out
    monkeypatch.setattr(sys, "argv", ["seeds", "--first", "8", "--seeds", "2"])
    assert main("tests.some", run_seed) == 0
    assert ran == [5, 6, 7, 8, 9]
