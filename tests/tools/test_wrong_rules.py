"""Recorded histories of wrong rules: replays and recordings."""

import sys
from pathlib import Path

import pytest

from tests.support.wrong_rules import Recorded, WrongRules, seeds_violating

MUTANTS = WrongRules()


class Counter:
    """The rule under test: every seed counts to itself."""

    @staticmethod
    def count(seed: int) -> int:
        return seed


@MUTANTS.add
def counts_end_at_six(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Counter, "count", staticmethod(lambda seed: min(seed, 6)))


@MUTANTS.add
def counts_of_five_are_four(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Counter, "count", staticmethod(lambda seed: 4 if seed == 5 else seed))


def run(_rule: str, seed: int) -> None:
    if seed == 99:
        raise ValueError("not a seed")
    assert Counter.count(seed) == seed
    assert seed != 3, "the right rules fail here"


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded[int]:
    return Recorded[int](
        rules=MUTANTS,
        run=run,
        finding=lambda rule: seeds_violating(lambda seed: run(rule, seed), range(4, 20)),
        file=tmp_path / "seeds.toml",
        module="tests.some.mutants",
    )


def record(recorded: Recorded[int], text: str) -> None:
    recorded.file.write_text(text)


def test_a_recorded_seed_that_finds_the_wrong_rule_passes(recorded: Recorded[int]) -> None:
    record(recorded, "counts_end_at_six = 7\n")
    recorded.check("counts_end_at_six")
    assert Counter.count(7) == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no recorded history"),
        ("counts_end_at_six = 6\n", "does not find it any more"),
        ("counts_end_at_six = 3\n", "fails without the wrong rule"),
        ("counts_end_at_six = 99\n", "fails without the wrong rule"),
    ],
)
def test_another_recording_fails_with_the_command_that_replaces_it(
    recorded: Recorded[int], text: str, reason: str
) -> None:
    record(recorded, text)
    command = "python -m tests.some.mutants counts_end_at_six"
    with pytest.raises(AssertionError, match=f"{reason}.*{command}"):
        recorded.check("counts_end_at_six")


def test_a_search_starts_at_the_first_seed_whatever_is_recorded(recorded: Recorded[int]) -> None:
    record(recorded, "counts_end_at_six = 9\n")
    assert recorded.search("counts_end_at_six") == 7


def test_an_error_other_than_a_violation_ends_a_search() -> None:
    with pytest.raises(ValueError, match="not a seed"):
        list(seeds_violating(lambda seed: run("", seed), [98, 99]))


def test_main_records_the_rules_whose_recorded_seed_fails(
    recorded: Recorded[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(recorded, "counts_end_at_six = 12\ncounts_of_five_are_four = 6\nno_longer_a_rule = 1\n")
    assert recorded.unknown() == {"no_longer_a_rule"}
    monkeypatch.setattr(sys, "argv", ["mutants"])
    assert recorded.main() == 0
    assert recorded.histories() == {"counts_end_at_six": 12, "counts_of_five_are_four": 5}


def test_main_refuses_a_name_that_is_not_a_wrong_rule(
    recorded: Recorded[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants", "no_longer_a_rule"])
    with pytest.raises(SystemExit):
        recorded.main()
    assert "not wrong rules: no_longer_a_rule" in capsys.readouterr().err
